// Programs that do not import runspan, on a Node whose modules can be patched.
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { transformWithEsbuild } from 'vite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Registered, registered } from '../integrations/registered.ts';
import { root, temporaryFolder } from '../support/folders.ts';
import { testFolder } from '../support/test-folder.ts';
import { laterNode } from './later-node.ts';

const CHAT = 'openai.chat.completions';
const formats = ['module', 'commonjs'] as const;
const folder = (name: string): string => fileURLToPath(new URL(`./${name}/`, import.meta.url));

/** Runs a program that awaits `main` with the hook. `imports` are the lines before it. */
async function run(
  [imports, main]: readonly [imports: string, main: string],
  env?: Readonly<Record<string, string>>,
  format: (typeof formats)[number] = 'module',
  cwd?: string,
  register = import.meta.resolve('runspan/register'),
): Promise<Registered> {
  const code = `${imports}\nvoid (async () => {${main}})();`;
  const text = format === 'module' ? code : (await transformWithEsbuild(code, 'a.mjs', { format: 'cjs' })).code;
  const command = [laterNode(), '--import', register, `--input-type=${format}`, '-e', text];
  const ended = await registered(command, env, cwd);
  const stderr = ended.stderr.replace('No API key provided for OpenAI tracing exporter. Exports will be skipped\n', '');
  expect([ended.code, stderr]).toEqual([0, '']);
  return ended;
}

const SCHEMA = `{ type: 'object', properties: { query: { type: 'string' } } }`;
const setUp = {
  openai: `import OpenAI from 'openai';
    const client = new OpenAI({ apiKey: 'none', baseURL: process.env.MODEL + '/v1' });`,
  anthropic: `import Anthropic from '@anthropic-ai/sdk';
    const client = new Anthropic({ apiKey: 'none', baseURL: process.env.MODEL });`,
  langchain: `import { RunnableLambda } from '@langchain/core/runnables';
    import { ChatOpenAI } from '@langchain/openai';
    const configuration = { baseURL: process.env.MODEL + '/v1' };
    const model = new ChatOpenAI({ model: 'small', apiKey: 'none', configuration });
    const chain = RunnableLambda.from((text) => text + '?').pipe(model);`,
};

describe.each(formats)('with runspan/register, a program of the format %s', (format) => {
  test('has one trace for runTools with its tools, streamed or not', async () => {
    const main = `
      const look = async ({ query }) => query + ' is a drink.';
      const definition = { name: 'look_up', parse: JSON.parse, parameters: ${SCHEMA}, function: look };
      const tools = [{ type: 'function', function: definition }];
      const messages = [{ role: 'user', content: 'Tea' }];
      for (const stream of [false, true]) {
        const runner = client.chat.completions.runTools({ model: 'small', messages, tools, stream });
        console.log(await runner.finalContent());
      }`;
    const { stdout, tree, runs } = await run([setUp.openai, main], {}, format);
    expect(stdout).toBe('The tools say: Tea is a drink.\n'.repeat(2));
    const trace = ['openai.runTools', `  ${CHAT}`, '  look_up', `  ${CHAT}`];
    expect(tree).toEqual([...trace, ...trace]);
    const tool = { run_type: 'tool', inputs: { query: 'Tea' }, outputs: { outputs: 'Tea is a drink.' } };
    expect(runs.filter(({ name }) => name === 'look_up')).toMatchObject([tool, tool]);
  });

  test('has one trace for a tool runner of Anthropic, streamed or not', async () => {
    const main = `
      const run = async ({ query }) => query + ' is a drink.';
      const tools = [{ name: 'look_up', input_schema: ${SCHEMA}, parse: (input) => input, run }];
      for (const stream of [false, true]) {
        const messages = [{ role: 'user', content: 'Tea' }];
        const body = { model: 'small', max_tokens: 99, messages, tools, stream };
        console.log((await client.beta.messages.toolRunner(body).runUntilDone()).content[0].text);
      }`;
    const { stdout, tree, runs } = await run([setUp.anthropic, main], {}, format);
    expect(stdout).toBe('The tool said: Tea is a drink.\n'.repeat(2));
    const trace = ['anthropic.toolRunner', '  anthropic.messages', '  look_up', '  anthropic.messages'];
    expect(tree).toEqual([...trace, ...trace]);
    const message = { role: 'assistant', content: [{ type: 'text', text: 'The tool said: Tea is a drink.' }] };
    const roots = runs.filter((one) => one.parent_run_id === undefined);
    expect(roots).toMatchObject(Array(2).fill({ outputs: { messages: [message] } }));
  });

  test('has each tool runner once if the client is also wrapped', async () => {
    const imports = `${setUp.openai} ${setUp.anthropic.replace('client', 'claude')}
      import { wrapOpenAI } from 'runspan/openai';
      import { wrapAnthropic } from 'runspan/anthropic';`;
    const main = `
      const run = async ({ query }) => query + ' is a drink.';
      const body = { model: 'small', max_tokens: 99, messages: [{ role: 'user', content: 'Tea' }] };
      const definition = { name: 'look_up', parse: JSON.parse, parameters: ${SCHEMA}, function: run };
      const tools = [{ type: 'function', function: definition }];
      await wrapOpenAI(client, { tags: ['own'] }).chat.completions.runTools({ ...body, tools }).done();
      const claudeTools = [{ name: 'look_up', input_schema: ${SCHEMA}, parse: (input) => input, run }];
      await wrapAnthropic(claude, { tags: ['own'] }).beta.messages.toolRunner({ ...body, tools: claudeTools });`;
    const { tree, runs } = await run([imports, main], {}, format);
    const claude = ['anthropic.toolRunner', '  anthropic.messages', '  look_up', '  anthropic.messages'];
    expect(tree).toEqual(['openai.runTools', `  ${CHAT}`, '  look_up', `  ${CHAT}`, ...claude]);
    const roots = runs.filter((one) => one.parent_run_id === undefined);
    expect(roots.map(({ tags }) => tags)).toEqual([['own'], ['own']]);
  });

  test('has the steps of LangChain without callbacks, and each model call once', async () => {
    const { stdout, tree } = await run(
      [setUp.langchain, `console.log((await chain.invoke('Tea')).content)`],
      {},
      format,
    );
    expect(stdout).toBe('You said: Tea?\n');
    expect(tree).toEqual(['RunnableSequence', '  RunnableLambda', '  ChatOpenAI']);
  });
});

test('the stack traces of the AI SDK name the same files, lines and columns as without tracing', async () => {
  const main = `
    const { stack } = await generateText({ model: {}, prompt: 'Tea' }).catch((error) => error);
    console.log(stack.match(/file:\\S+\\/ai\\/\\S+\\d/g).join(' '));`;
  const program = [`import { generateText } from 'ai';`, main] as const;
  const traced = await run(program);
  expect(await run(program, { RUNSPAN_TRACING: 'false' })).toMatchObject({ stdout: traced.stdout, tree: [] });
  expect(traced.tree).toEqual(['generateText']);
});

test.each([
  ['is traced if comments follow its exports', 'export { generateText } /* * */ // end', ['generateText'], /^$/],
  ['is named if code follows', 'export { generateText }; void 0;', [], / exports of file:\S+index.mjs have an .*\n$/],
])('a module of the AI SDK %s', async (_, end, tree, stderr) => {
  const cwd = testFolder({ 'node_modules/ai/dist/index.mjs': `const generateText = () => {};\n  ${end}` });
  const code = `import { generateText } from './node_modules/ai/dist/index.mjs'; generateText({});`;
  const command = [laterNode(), '--import', import.meta.resolve('runspan/register'), '--input-type=module', '-e', code];
  expect(await registered(command, {}, cwd)).toMatchObject({ code: 0, tree, stderr: expect.stringMatching(stderr) });
});

test('a package whose name ends in that of the AI SDK is not taken for a bundled copy of it', async () => {
  const imports = `
    import { CohereClientV2 } from 'cohere-ai';
    import { createServer } from 'node:http';`;
  const main = `
    const server = createServer((request, response) => {
      console.log(/^cohere-ai\\/\\d/.test(request.headers['user-agent']));
      response.setHeader('content-type', 'application/json').end('{"message":{"role":"assistant","content":[]}}');
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const environment = 'http://127.0.0.1:' + server.address().port;
    const client = new CohereClientV2({ token: 'none', environment });
    await client.chat({ model: 'command', messages: [{ role: 'user', content: 'Tea' }] });
    server.close();
    server.closeAllConnections();`;
  expect(await run([imports, main])).toMatchObject({ stdout: 'true\n', tree: ['cohere.chat'] });
});

test.each(formats)('a streamed text of the format %s is cancelled when the browser closes', async (format) => {
  const main = `
    const wait = () => new Promise((resolve) => setTimeout(resolve, 20));
    const parts = [{ type: 'text-start', id: '1' }];
    for (let at = 0; at < 20; at++) parts.push({ type: 'text-delta', id: '1', delta: 'la ' });
    const pull = async (controller) => {
      await wait();
      if (parts.length === 0) controller.close();
      else controller.enqueue(parts.shift());
    };
    const model = new MockLanguageModelV3({ doStream: async () => ({ stream: new ReadableStream({ pull }) }) });
    const server = createServer((_, response) => {
      response.on('close', () => server.close());
      ai.streamText({ model, prompt: 'Sing.' }).pipeTextStreamToResponse(response);
    });
    await new Promise((resolve) => server.listen(0, resolve));
    const controller = new AbortController();
    const { body } = await fetch('http://127.0.0.1:' + server.address().port, { signal: controller.signal });
    await body.getReader().read();
    controller.abort();
    console.log(Object.entries(ai).filter(([, member]) => member === undefined));`;
  const imports = `import * as ai from 'ai';
    import { MockLanguageModelV3 } from 'ai/test';
    import { createServer } from 'node:http';`;
  const { stdout, tree, runs } = await run([imports, main], {}, format);
  // No version of the SDK has all functions that are traced, and the hook adds none.
  expect(stdout).toBe('[]\n');
  expect(tree).toEqual(['GET /', '  streamText', '    mock-model-id']);
  const [request, cancelled, call] = runs.toSorted((one, other) => (one.dotted_order < other.dotted_order ? -1 : 1));
  expect(request?.extra?.runspan_end_reason).toBe('cancelled');
  expect(cancelled?.extra?.runspan_end_reason).toBe('cancelled');
  expect(cancelled?.outputs?.text).toMatch(/^(la ){1,10}$/);
  expect(call?.extra).not.toHaveProperty('runspan_end_reason');
});

describe('with LANGSMITH_TRACING for the same endpoint', () => {
  const langsmith = { LANGSMITH_TRACING: 'true', LANGSMITH_ENDPOINT: '<receiver>', LANGSMITH_API_KEY: 'none' };

  test('a program with traceable of langsmith has its runs, and its other model calls below them', async () => {
    const imports = `${setUp.langchain} ${setUp.openai}
      import { traceable } from 'langsmith/traceable';
      import { wrapOpenAI } from 'langsmith/wrappers';
      import { Client } from 'langsmith';`;
    const main = `
      const langsmith = new Client();
      const { chat } = wrapOpenAI(client, { client: langsmith });
      const ask = traceable(async (content) => {
        await chain.invoke(content);
        await chat.completions.create({ model: 'small', messages: [{ role: 'user', content }] });
        await client.chat.completions.create({ model: 'small', messages: [{ role: 'user', content }] });
      }, { name: 'ask', client: langsmith });
      await ask('Tea');
      await langsmith.awaitPendingTraceBatches();`;
    const { tree } = await run([imports, main], langsmith);
    const chain = ['  RunnableSequence', '    RunnableLambda', '    ChatOpenAI'];
    expect(tree).toEqual(['ask', ...chain, '  ChatOpenAI', `  ${CHAT}`]);
  });
});

/** Runs a program with agents of OpenAI, which use the chat completions unless `main` selects another API. */
function runAgents(main: string, env?: Readonly<Record<string, string>>): Promise<Registered> {
  const imports = `
    import * as agents from '@openai/agents';
    import { z } from 'zod';
    import { flush } from '${import.meta.resolve('runspan')}';
    ${setUp.openai}
    const { Agent, createCustomSpan, run, setOpenAIAPI, setTraceProcessors, tool, withTrace } = agents;
    agents.setDefaultOpenAIClient(client.withOptions({ maxRetries: 0 }));
    setOpenAIAPI('chat_completions');`;
  return run([imports, main], env, 'module', folder('today'));
}

test('agents of OpenAI have one trace with each of its APIs', async () => {
  const main = `
    const execute = async ({ query }) => query + ' is a drink.';
    const lookUp = tool({ name: 'look_up', description: '', parameters: z.object({ query: z.string() }), execute });
    for (const api of ['chat_completions', 'responses']) {
      setOpenAIAPI(api);
      const agent = new Agent({ name: 'Expert', instructions: 'Help.', tools: [lookUp], model: 'small' });
      console.log((await run(agent, 'Tea')).finalOutput);
    }`;
  const { stdout, tree, runs } = await runAgents(main);
  expect(stdout).toBe('The tools say: Tea is a drink.\n'.repeat(2));
  expect(tree).toEqual(
    [CHAT, 'openai.responses'].flatMap((call) => [
      'Agent workflow',
      '  Expert',
      `    ${call}`,
      '    look_up',
      `    ${call}`,
    ]),
  );
  const tool = { run_type: 'tool', inputs: { query: 'Tea' }, outputs: { output: 'Tea is a drink.' } };
  expect(runs.filter(({ name }) => name === 'look_up')).toMatchObject([tool, tool]);
});

test('a failed run of an agent of OpenAI ends its trace with the error, unless the trace continues', async () => {
  const main = `
    const [failing, working] = ['fail-400', 'small'].map((model) => new Agent({ name: model, instructions: '', model }));
    const fail = () => run(failing, 'Tea').catch(() => new Promise(setImmediate));
    await fail();
    await withTrace('with a fallback', async () => {
      await fail();
      await run(working, 'Tea');
    });
    await withTrace('without a run', () => Promise.reject(new Error('early'))).catch(() => {});`;
  const { tree, runs } = await runAgents(main);
  const failed = ['  fail-400', `    ${CHAT}`];
  const trees = ['Agent workflow', ...failed, 'with a fallback', ...failed, '  small', `    ${CHAT}`, 'without a run'];
  expect(tree).toEqual(trees);
  const roots = runs.filter((one) => one.parent_run_id === undefined);
  expect(roots.map(({ end_time, error }) => [end_time !== undefined, error?.split('\n')[0]])).toEqual([
    [true, 'Error in agent run: Error: 400 asked to fail with 400'],
    [true, undefined],
    [true, 'the function of the trace has failed'],
  ]);
  const agent = runs.find(({ name }) => name === 'fail-400');
  expect(agent?.error).toBe('Error in agent run: Error: 400 asked to fail with 400');
});

test('a tool of an agent of OpenAI that fails has the cause, although the agent continues', async () => {
  const main = `
    const execute = () => { throw new RangeError('the kettle is broken'); };
    const parameters = z.object({ query: z.string() });
    const lookUp = tool({ name: 'look_up', description: '', parameters, execute, errorFunction: () => 'sorry' });
    const agent = new Agent({ name: 'Expert', instructions: 'Help.', tools: [lookUp], model: 'small' });
    console.log((await run(agent, 'Tea')).finalOutput);`;
  const { stdout, runs } = await runAgents(main);
  expect(stdout).toBe('The tools say: sorry\n');
  expect(runs.filter(({ error }) => error !== undefined)).toMatchObject([
    { name: 'look_up', error: 'Error running tool (non-fatal): RangeError: the kettle is broken' },
  ]);
});

test('agents of OpenAI that their caller stops are cancelled at each level, and have failed after a timeout', async () => {
  const main = `
    const [agent, streamed] = ['hang', 'hang-mid-stream'].map((model) => new Agent({ name: 'Expert', model }));
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 200);
    await run(agent, 'Tea', { signal: stop.signal }).catch(() => {});
    const read = async (stream) => { for await (const { data } of stream) if (data?.delta) return; };
    await run(streamed, 'Tea', { stream: true }).then(read);
    const signal = AbortSignal.timeout(200);
    await run(streamed, 'Tea', { stream: true, signal }).then((stream) => stream.completed).catch(() => {});
    await flush();`;
  const { tree, runs } = await runAgents(main);
  expect(tree).toEqual(
    Array(3)
      .fill(['Agent workflow', '  Expert', `    ${CHAT}`])
      .flat(),
  );
  const ends = runs.map(({ error, extra }) => extra?.runspan_end_reason ?? (error ? 'failed' : 'ok'));
  expect(ends).toEqual(['cancelled', 'cancelled', 'failed'].flatMap((end) => [end, end, end]));
});

test('above 10,000 open spans of the agents of OpenAI, the run of the oldest open span ends as interrupted', async () => {
  const main = `
    setTraceProcessors([]);
    await withTrace('oldest', async () => {
      const spans = Array.from({ length: 10_000 }, (_, index) => createCustomSpan({ data: { name: 'step ' + index } }));
      for (const span of spans) span.start();
      for (const span of spans) span.end();
    });
    await flush({ timeoutMs: 20_000 });`;
  // The exporter warns about the number of open runs.
  const { runs } = await runAgents(main, { RUNSPAN_LOG: 'error' });
  expect(runs).toHaveLength(10_001);
  expect(runs.filter(({ end_time }) => end_time === undefined)).toEqual([]);
  const failed = runs.filter(({ error }) => error !== undefined);
  expect(failed.map(({ name, error, extra }) => [name, error, extra?.runspan_end_reason])).toEqual([
    ['oldest', 'Interrupted: 10000 other steps are open', 'interrupted'],
  ]);
});

describe('in a span of OpenTelemetry', () => {
  const inSpan = `
    const body = JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'Tea' }] });
    const headers = { 'content-type': 'application/json' };
    const ask = () => fetch(process.env.MODEL + '/v1/chat/completions', { method: 'POST', headers, body });
    await trace.getTracer('app').startActiveSpan('request', async (span) => {
      await (await ask()).json();
      span.end();
    });`;
  const api = `import { trace } from '@opentelemetry/api';`;
  const nodeProvider = `${api}
    import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
    new NodeTracerProvider().register();`;
  const tracerProvider = `${api}
    import { context } from '@opentelemetry/api';
    import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
    import { TracerProvider } from '@opentelemetry/sdk-trace';
    context.setGlobalContextManager(new AsyncLocalStorageContextManager());
    trace.setGlobalTracerProvider(new TracerProvider());`;
  const nodeSdk = `${api}
    import { NodeSDK } from '@opentelemetry/sdk-node';
    new NodeSDK({ instrumentations: [] }).start();`;
  const sentry = `${api}
    import * as Sentry from '@sentry/node-10';
    Sentry.init({ dsn: 'http://key@127.0.0.1:9/1', tracesSampleRate: 1, openTelemetryBasicTracerProvider: true });`;
  const tree = ['request', `  ${CHAT}`];
  // Without an exporter, `NodeSDK` creates no provider.
  const exporters = { OTEL_TRACES_EXPORTER: 'console', OTEL_METRICS_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none' };

  test.each([
    ['NodeTracerProvider 1.x', 'otel-1', nodeProvider],
    ['NodeTracerProvider 2.x', 'otel', nodeProvider],
    ['NodeSDK 2.x', 'otel', nodeSdk],
    ['NodeSDK 3.x', 'today', nodeSdk],
    ['TracerProvider 3.x', 'today', tracerProvider],
    ['Sentry 10', 'otel', sentry],
  ])('of %s, a model call is a child of the span', async (_, name, imports) => {
    const ended = await run([imports, inSpan], exporters, 'module', folder(name));
    // Sentry also records the request.
    expect(ended.tree.filter((line) => !line.includes('POST'))).toEqual(tree);
  });

  test('a copy of the package without @opentelemetry/api uses that of the application', async () => {
    const copy = temporaryFolder();
    onTestFinished(copy.remove);
    const modules = join(copy.path, 'node_modules');
    for (const file of ['dist', 'package.json']) {
      cpSync(join(root, file), join(modules, 'runspan', file), { recursive: true });
    }
    cpSync(join(root, 'node_modules/undici'), join(modules, 'undici'), { recursive: true });
    const register = pathToFileURL(join(modules, 'runspan/dist/register.js')).href;
    const ended = await run([nodeProvider, inSpan], exporters, 'module', folder('otel'), register);
    expect(ended.tree).toEqual(tree);
  });
});
