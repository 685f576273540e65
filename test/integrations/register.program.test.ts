// Programs that do not import runspan.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../support/folders.ts';
import { registered } from './registered.ts';

const CHAT = 'openai.chat.completions';
const register = ['--import', 'runspan/register'];
/** The program in a module, and as CommonJS. */
const ask = `
  const client = new OpenAI({ apiKey: 'none', baseURL: process.env.MODEL + '/v1' });
  const call = (content) => client.chat.completions.create({ model: 'small', messages: [{ role: 'user', content }] });
  void call('Tea').then(({ choices }) => {
    console.log(choices[0].message.content);
    process.exitCode = 3;
  });`;
const asModule = ['--input-type=module', '-e', `import OpenAI from 'openai';${ask}`];
const asCommonJs = ['--input-type=commonjs', '-e', `const OpenAI = require('openai');${ask}`];
const askWith = (client: string) => ask.replace('apiKey', `fetch: ${client}, apiKey`);
const withUndici = ['-e', `const [OpenAI, undici] = [require('openai'), require('undici')];${askWith('undici.fetch')}`];
const withNamed = `import OpenAI from 'openai'; import { fetch } from 'undici';${askWith('fetch')}`;

const node = (args: readonly string[], env?: Readonly<Record<string, string>>) =>
  registered([process.execPath, ...args], env);
const printed = { code: 3, stdout: 'You said: Tea\n', stderr: '' };

test.each([
  ['--import and a module', [...register, ...asModule]],
  ['--import and CommonJS', [...register, ...asCommonJs]],
  ['--require and CommonJS', ['--require', 'runspan/register', ...asCommonJs]],
  ["--import and undici's fetch in CommonJS", [...register, ...withUndici]],
  ["--import and undici's fetch in a module", [...register, '--input-type=module', '-e', withNamed]],
  ['both, and a module', ['--require', 'runspan/register', ...register, ...asModule]],
])('with %s, delivers its call once at its own exit', async (_, args) => {
  const ended = await node(args);
  expect(ended).toMatchObject(printed);
  expect(ended.tree).toEqual([CHAT]);
});

test.each([
  ['RUNSPAN_ENDPOINT', ''],
  ['RUNSPAN_TRACING', 'false'],
  ['RUNSPAN_INSTRUMENTATIONS', '-fetch'],
  ['RUNSPAN_INSTRUMENTATIONS', 'langchain,openai'],
])('with the environment %s=%s, changes and delivers nothing', async (name, value) => {
  const ended = await node([...register, ...asModule], { [name]: value });
  expect(ended).toMatchObject(printed);
  expect(ended.tree).toEqual([]);
});

const memoryOnly = 'runspan: configuration: the working directory was deleted, so `durability` is `memory`.\n';

test.runIf(process.platform !== 'win32').each([
  [{}, ''],
  [{ RUNSPAN_SPOOL_DIR: 'spool' }, memoryOnly],
  [{ RUNSPAN_SPOOL_DIR: 'spool', RUNSPAN_DURABILITY: 'memory' }, ''],
])('in a deleted working directory, with the environment %j, delivers its call', async (env, stderr) => {
  const inDeleted = ['sh', '-c', 'cd "$(mktemp -d)" && rmdir "$PWD" && exec "$@"', 'sh', process.execPath];
  const call = `fetch(process.env.MODEL + '/v1/chat/completions', { method: 'POST', headers: { 'content-type': 'application/json' },
    body: '{"model":"small","messages":[{"role":"user","content":"Tea"}]}' })`;
  const ask = ['--import', join(root, 'dist/register.js'), '--input-type=commonjs', '-e', call];
  const ended = await registered([...inDeleted, ...ask], env);
  expect(ended).toMatchObject({ code: 0, stdout: '', stderr });
  expect(ended.tree).toEqual([CHAT]);
});

test('an unknown instrumentation is logged once, and the others are started', async () => {
  const { stderr, tree } = await node([...register, ...asModule], { RUNSPAN_INSTRUMENTATIONS: 'fetch, -opneai,bard' });
  expect(stderr).toBe(
    'runspan: RUNSPAN_INSTRUMENTATIONS: unknown names are ignored: -opneai, bard. ' +
      'Known names: propagation, fetch, langchain, ai, openai, anthropic, bedrock, claude-agent, openai-agents, mcp, mastra, opentelemetry, http.\n',
  );
  expect(tree).toEqual([CHAT]);
});

test('an instrumentation that cannot start is logged once, and the program runs', async () => {
  const obstacle = `Object.defineProperty(globalThis, Symbol.for('openai.agents.core.traceProvider'), { value: 1 })`;
  const ended = await node(['--import', `data:text/javascript,${obstacle}`, ...register, ...asModule]);
  const [line, rest] = ended.stderr.split('\n');
  expect(line).toMatch(/^runspan: runspan\/register openai-agents failed, the application is not affected: /);
  expect({ ...ended, stderr: rest }).toMatchObject(printed);
  expect(ended.tree).toEqual([CHAT]);
});

test("LangChain's own tracer is removed, also beside a handler of the program", async () => {
  const program = `
    const { RunnableLambda } = require('@langchain/core/runnables');
    const { RunspanCallbackHandler } = require('runspan/langchain');
    RunnableLambda.from(() => 1).invoke('x', { runName: 'step', callbacks: [new RunspanCallbackHandler()] });`;
  const tracing = { LANGSMITH_TRACING: 'true', LANGSMITH_ENDPOINT: '<receiver>', LANGSMITH_API_KEY: 'none' };
  const ended = await node([...register, '--input-type=commonjs', '-e', program], tracing);
  expect(ended).toMatchObject({ code: 0, stdout: '', stderr: '', tree: ['step'] });
});

test('through NODE_OPTIONS, a worker thread and a child process deliver their own calls', async () => {
  const call = (model: string) => `
    const body = JSON.stringify({ model: '${model}', messages: [{ role: 'user', content: 'Tea' }] });
    const headers = { 'content-type': 'application/json' };
    void fetch(process.env.MODEL + '/v1/chat/completions', { method: 'POST', headers, body }).then((it) => it.json());`;
  const program = `${call('of-main')}
    const inWorker = 'data:text/javascript,' + encodeURIComponent(${JSON.stringify(call('of-worker'))});
    new (require('node:worker_threads').Worker)(new URL(inWorker));
    require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(call('of-child'))}]);`;
  const env = { NODE_OPTIONS: `--import ${import.meta.resolve('runspan/register')}` };
  const ended = await node(['-e', program], env);
  expect(ended).toMatchObject({ code: 0, stdout: '', stderr: '' });
  const models = ended.runs.map(({ extra }) => extra?.metadata?.ls_model_name);
  expect(models.sort()).toEqual(['of-child', 'of-main', 'of-worker']);
});

/** A program that asks inside a span. Its tracer provider has the given span processors. */
const inSpan = (processors: string) => `
  import { context, trace } from '@opentelemetry/api';
  import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
  import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
  import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
  import { RunSpanProcessor } from 'runspan/otel';
  import OpenAI from 'openai';
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [${processors}] }));
  const ask = async () => {${ask.replace('void call', 'await call')}};
  await trace.getTracer('app').startActiveSpan('request', async (span) => {
    await ask();
    span.end();
  });`;

const OTLP = 'new SimpleSpanProcessor(new OTLPTraceExporter())';

test.each([
  ['a provider without processors', '', '', ['request', `  ${CHAT}`]],
  ['an exporter to the receiver', OTLP, '', ['request', `  ${CHAT}`]],
  ['an exporter to the receiver and -opentelemetry', OTLP, '-opentelemetry', ['request', CHAT]],
  ['RunSpanProcessor', 'new RunSpanProcessor({ shouldExport: "all" })', '', ['request', `  ${CHAT}`]],
  ['RunSpanProcessor with a filter', 'new RunSpanProcessor({ shouldExport: () => false })', '', [CHAT]],
])('with %s, records a call inside a span of OpenTelemetry once', async (_, processors, instrumentations, tree) => {
  const program = ['--input-type=module', '-e', inSpan(processors)];
  const ended = await node([...register, ...program], {
    RUNSPAN_INSTRUMENTATIONS: instrumentations,
    OTEL_EXPORTER_OTLP_ENDPOINT: '<receiver>',
  });
  expect(ended).toMatchObject(printed);
  expect(ended.tree).toEqual(tree);
});

test.each([['register provider contextManager'], ['provider contextManager register']])(
  'no span is made for the modules that are loaded for a tracer provider: %s',
  async (order) => {
    const program = `
    import fs from 'node:fs';
    import { context, trace } from '@opentelemetry/api';
    import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
    import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
    const spans = [];
    const other = { onStart: (span) => spans.push(span.name), onEnd() {}, async forceFlush() {}, async shutdown() {} };
    for (const name of ['existsSync', 'lstatSync', 'openSync', 'readFileSync', 'realpathSync', 'statSync']) {
      const original = fs[name];
      fs[name] = (path, ...rest) => {
        // The program itself loads 'runspan/register'.
        const span = /^\\/$|otel\\.js$/.test(path) && trace.getTracer('fs').startSpan(name, { attributes: { 'gen_ai.x': 1 } });
        try {
          return original(path, ...rest);
        } finally {
          if (span) span.end();
        }
      };
    }
    const steps = {
      register: () => import('runspan/register'),
      provider: () => trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [other] })),
      contextManager: () => context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()),
    };
    for (const step of '${order}'.split(' ')) await steps[step]();
    fs.existsSync('/');
    console.log(spans.join(' '));`;
    const ended = await node(['--input-type=module', '-e', program]);
    expect(ended).toMatchObject({ code: 0, stdout: 'existsSync\n', stderr: '' });
    expect(ended.tree).toEqual(['existsSync']);
  },
);

test('the flush of a tracer provider does not fail because of the processor that it did not ask for', async () => {
  const program = `
    import { createServer } from 'node:http';
    import { trace } from '@opentelemetry/api';
    import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
    const server = createServer((_, response) => response.writeHead(422).end()).listen(0, async () => {
      process.env.RUNSPAN_ENDPOINT = 'http://127.0.0.1:' + server.address().port;
      await import('runspan/register');
      const provider = new BasicTracerProvider();
      trace.setGlobalTracerProvider(provider);
      trace.getTracer('a').startSpan('refused', { attributes: { 'gen_ai.x': 1 } }).end();
      await provider.forceFlush();
      server.close();
    });`;
  const { code, stderr } = await node(['--input-type=module', '-e', program]);
  expect([code, stderr]).toEqual([0, expect.stringContaining('422')]);
});

test('a tracer provider of unknown structure is left alone, and one line is logged at the level debug', async () => {
  const provider = `
    import { trace } from '@opentelemetry/api';
    trace.setGlobalTracerProvider({ getTracer: () => ({}) });`;
  const program = ['--input-type=module', '-e', provider];
  const { code, stderr } = await node([...register, ...program], { RUNSPAN_LOG: 'debug' });
  expect([code, stderr]).toEqual([
    0,
    'runspan: runspan/register opentelemetry: the tracer provider has no list of span processors, so its spans are not recorded.\n',
  ]);
});

// The program loads a second copy of runspan, as CommonJS.
const REQUESTS = 'test/integrations/programs/requests.cjs';

test('the calls of a request are one trace, and its response and listeners do not change', async () => {
  const [plain, ended] = await Promise.all([
    node([REQUESTS], { RUNSPAN_TRACING: 'false' }),
    node([...register, REQUESTS]),
  ]);
  expect(plain).toMatchObject({ code: 0, stderr: '', tree: [] });
  expect(ended).toMatchObject({ code: 0, stderr: '', stdout: plain.stdout });
  expect([...ended.tree].sort()).toEqual(
    [
      ...['POST /two', `  ${CHAT}`, '  traced', `    ${CHAT}`],
      ...['POST /events', `  ${CHAT}`],
      ...['POST /listeners', `  ${CHAT}`],
      ...['POST /stream', `  ${CHAT}`, `  ${CHAT}`],
    ].sort(),
  );
  const roots = ended.runs.filter(({ parent_run_id }) => parent_run_id === undefined);
  expect(roots).toHaveLength(4);
  for (const { extra, end_time } of roots) {
    expect(end_time).toBeDefined();
    expect(extra?.metadata).toMatchObject({ 'http.response.status_code': 200 });
  }
});

test.each([
  ['RUNSPAN_INSTRUMENTATIONS', '-http'],
  // A platform that may stop the process once the response is sent.
  ['AWS_LAMBDA_FUNCTION_NAME', 'answers'],
])('with %s=%s, the calls of a request are their own traces', async (name, value) => {
  const { tree } = await node([...register, REQUESTS], { [name]: value });
  expect(new Set(tree)).toEqual(new Set([CHAT, 'traced', `  ${CHAT}`]));
});
