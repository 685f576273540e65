// Programs with Mastra, on a Node that it supports. The answers are those of test/support/local-model.
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import { type Registered, registered } from '../integrations/registered.ts';
import { laterNode } from './later-node.ts';

const today = fileURLToPath(new URL('./today/', import.meta.url));

/** The program's agents, workflows and tools. `OPTIONS` are the options of its configuration. */
const PROGRAM = `
  import { Mastra } from '@mastra/core';
  import { Agent } from '@mastra/core/agent';
  import { createTool } from '@mastra/core/tools';
  import { createStep, createWorkflow } from '@mastra/core/workflows';
  import { Observability } from '@mastra/observability';
  import { createOpenAI } from '@ai-sdk/openai';
  import { shutdown, traceable } from 'runspan';
  import { RunspanBridge } from 'runspan/mastra';
  import { z } from 'zod';
  const openai = createOpenAI({ apiKey: 'none', baseURL: process.env.MODEL + '/v1' });
  const find = traceable(async (query) => query + ' is a drink.', { name: 'find' });
  const tool = (execute) => createTool({ id: 'look_up', description: 'Finds', inputSchema: z.object({ query: z.string() }), execute });
  const agent = (model, execute) => new Agent({
    id: model, name: model, instructions: 'Be kind.', model: openai.chat(model), maxRetries: 0,
    tools: execute ? { look_up: tool(execute) } : {},
  });
  const text = z.object({ text: z.string() });
  const schemas = { inputSchema: text, outputSchema: text };
  const workflow = (id, execute) => createWorkflow({ id, ...schemas }).then(createStep({ id: 'step', ...schemas, execute })).commit();
  const other = { name: 'other', exportTracingEvent: async () => {}, flush: async () => {}, shutdown: async () => {} };
  const bridge = new RunspanBridge({ tags: ['own'] });
  const mastra = new Mastra({
    logger: false,
    agents: {
      plain: agent('small'),
      small: agent('small', async ({ query }) => ({ found: await find(query) })),
      broken: agent('small', async () => { throw new TypeError('It broke.'); }),
      failing: agent('fail-400'),
      hanging: agent('hang-mid-stream'),
    },
    workflows: {
      flow: workflow('flow', async ({ inputData, mastra }) => ({ text: (await mastra.getAgent('small').generate(inputData.text)).text })),
      bad: workflow('bad', async () => { throw new RangeError('Too far.'); }),
    },
    observability: new Observability({ configs: { default: { serviceName: 'test', ...OPTIONS } } }),
  });
  const start = async (id) => (await mastra.getWorkflow(id).createRun()).start({ inputData: { text: 'Tea' } });`;

async function run(options: string, main: string, args: readonly string[] = []): Promise<Registered> {
  const code = `${PROGRAM.replace('OPTIONS', options)}\n${main}\nawait mastra.observability.shutdown(); await shutdown(); process.exit();`;
  const command = [laterNode(), ...args, '--input-type=module', '-e', code];
  const ended = await registered(command, {}, today);
  expect([ended.code, ended.stderr]).toEqual([0, '']);
  return ended;
}

const REGISTER = ['--import', import.meta.resolve('runspan/register')];
const AGENT = ['small', '  small', '  look_up', '    find', '  small'];
/** The agent with the requests that `fetch` records beside its model calls. */
const REQUESTED = AGENT.flatMap((line) => (line === '  small' ? [line, '  openai.chat.completions'] : [line]));
const below = (tree: readonly string[]): string[] => tree.map((line) => `  ${line}`);
const ofType = (runs: readonly RunRecord[], type: string): RunRecord[] =>
  runs.filter(({ run_type }) => run_type === type);
const BRIDGE = '{ bridge }';

test('a bridge makes one tree of an agent, its model calls, its tools and what they call', async () => {
  const { stdout, tree, runs } = await run(
    BRIDGE,
    `const tracingOptions = { metadata: { threadId: 't1', userId: 'ada' }, tags: ['b'] };
    const ask = traceable(() => mastra.getAgent('small').generate('Tea', { tracingOptions }), { name: 'main' });
    console.log((await ask()).text);`,
  );
  expect(stdout).toBe('The tools say: {"found":"Tea is a drink."}\n');
  expect(tree).toEqual(['main', ...below(AGENT)]);
  const usage_metadata = { input_tokens: 3, output_tokens: 1, total_tokens: 4, input_token_details: { cache_read: 2 } };
  expect(runs.find(({ name, run_type }) => name === 'small' && run_type === 'chain')).toMatchObject({
    inputs: { input: 'Tea' },
    outputs: { text: 'The tools say: {"found":"Tea is a drink."}' },
    tags: ['own', 'b'],
    extra: { metadata: { thread_id: 't1', user_id: 'ada', tools: ['look_up'] } },
  });
  expect(ofType(runs, 'tool')).toMatchObject([{ inputs: { query: 'Tea' }, outputs: { found: 'Tea is a drink.' } }]);
  expect(ofType(runs, 'llm')[0]).toMatchObject({
    inputs: {
      messages: [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'Tea' },
      ],
    },
    outputs: { toolCalls: [{ toolName: 'look_up', args: { query: 'Tea' } }], usage_metadata },
    extra: { metadata: { ls_provider: 'openai', ls_model_name: 'small', usage_metadata } },
    events: [{ name: 'new_token' }],
  });
});

test('runspan/register records an untouched program, with whole requests beside, and counts each model call once', async () => {
  const main = `
    await start('flow');
    for await (const chunk of (await mastra.getAgent('small').stream('Tea')).textStream) console.log(typeof chunk);`;
  const { tree, runs } = await run('{ exporters: [other] }', main, REGISTER);
  expect(tree).toEqual(['flow', '  step', ...below(below(REQUESTED)), ...REQUESTED]);
  const messages = [
    { role: 'system' },
    { role: 'user' },
    { role: 'assistant', tool_calls: [{ id: 'call_1' }] },
    { role: 'tool', content: '{"found":"Tea is a drink."}' },
  ];
  const inOrder = runs.toSorted((a, b) => (a.dotted_order < b.dotted_order ? -1 : 1));
  const requests = ofType(inOrder, 'llm').filter(({ name }) => name !== 'small');
  for (const request of [requests[1], requests[3]]) {
    expect(request).toMatchObject({
      inputs: { messages },
      outputs: { choices: [{ message: { content: 'The tools say: {"found":"Tea is a drink."}' } }] },
      extra: { metadata: { recorded_by: ['fetch'], usage_metadata: { input_tokens: 7 } } },
    });
  }
  const calls = ofType(inOrder, 'llm').filter(({ name }) => name === 'small');
  const named = calls.map(({ extra }) => [extra?.metadata?.same_call, extra?.metadata?.usage_metadata]);
  expect(named).toEqual(requests.map(({ id }) => [id, undefined]));
});

test('runspan/register leaves a bridge and an exporter of the program alone', async () => {
  const main = `await mastra.getAgent('small').generate('Tea');`;
  const otherBridge = '{ bridge: { ...other, createSpan() {}, executeInContext: (id, fn) => fn() } }';
  const roots = (await run(otherBridge, main, REGISTER)).tree;
  expect(roots).toEqual(['openai.chat.completions', 'find', 'openai.chat.completions']);
  for (const options of [BRIDGE, '{ bridge, exporters: [bridge] }', '{ exporters: [bridge] }']) {
    const { tree, runs } = await run(options, main, REGISTER);
    expect(tree).toEqual(REQUESTED);
    expect(ofType(runs, 'tool')[0]?.tags).toEqual(['own']);
  }
});

test('as an exporter, a bridge records the tree of the spans', async () => {
  const { tree } = await run('{ exporters: [bridge] }', `await mastra.getAgent('small').generate('Tea');`);
  expect(tree.filter((line) => line !== 'find')).toEqual(AGENT.filter((line) => !line.endsWith('find')));
});

test('payloads that Mastra hides are not recorded from the request either', async () => {
  const main = `
    const tracingOptions = { hideInput: true, hideOutput: true };
    console.log((await mastra.getAgent('plain').generate('Tea', { tracingOptions })).text);`;
  const { stdout, tree, runs } = await run(BRIDGE, main, REGISTER);
  expect(stdout).toBe('You said: Tea\n');
  expect(tree).toEqual(['small', '  small', '  openai.chat.completions']);
  expect(JSON.stringify(runs)).not.toMatch(/Tea|You said|Be kind/);
});

test('events, late spans and spans whose end is filtered out are recorded', async () => {
  const main = `
    const instance = mastra.observability.getDefaultInstance();
    const span = instance.startSpan({ type: 'agent_run', name: "agent run: 'a'" });
    span.createEventSpan({ type: 'generic', name: 'event', output: { n: 1 } });
    span.createChildSpan({ type: 'generic', name: 'dropped' }).end();
    span.end();
    span.createChildSpan({ type: 'scorer_run', name: "scorer: 'late'" }).end();`;
  const filter = `spanFilter: ({ name, endTime }) => name !== 'dropped' || endTime === undefined`;
  const { tree, runs } = await run(`{ bridge, ${filter} }`, main);
  expect(tree).toEqual(['a', '  event', '  dropped', '  late']);
  expect(runs.map(({ error }) => error)).toEqual([undefined, undefined, undefined, undefined]);
  expect(runs.find(({ name }) => name === 'event')?.outputs).toEqual({ n: 1 });
});

test('with runspan/register, the end of one Observability leaves the spans of another one open', async () => {
  const main = `
    const second = new Observability({ configs: { default: { serviceName: 'second', exporters: [other] } } });
    const span = second.getDefaultInstance().startSpan({ type: 'agent_run', name: "agent run: 'a'" });
    await mastra.getAgent('plain').generate('Tea');
    await mastra.observability.shutdown();
    span.end({ output: { text: 'fine' } });`;
  const { runs } = await run('{ exporters: [other] }', main, REGISTER);
  const ended = runs.find(({ name }) => name === 'a');
  expect([ended?.outputs, ended?.error]).toEqual([{ text: 'fine' }, undefined]);
});

test.each([
  ['alone', [], []],
  ['with runspan/register', REGISTER, [['openai.chat.completions', 'llm', 'HTTP 400: asked to fail with 400']]],
])('errors of models, tools and steps are recorded %s', async (_, args, ofRequests) => {
  const main = `
      await mastra.getAgent('failing').generate('Tea').catch(({ name }) => console.log(name));
      await mastra.getAgent('broken').generate('Tea');
      console.log((await start('bad')).status);`;
  const { stdout, runs } = await run(BRIDGE, main, args);
  expect(stdout).toBe('AI_APICallError\nfailed\n');
  const errors = runs.flatMap(({ name, run_type, error }) =>
    error ? [[name, run_type, error.split('\n', 1)[0]]] : [],
  );
  expect(errors.sort()).toEqual([
    ['bad', 'chain', 'RangeError: Too far.'],
    ['fail-400', 'chain', 'AI_APICallError: asked to fail with 400'],
    ['fail-400', 'llm', 'the model call failed'],
    ['look_up', 'tool', 'TypeError: It broke.'],
    ...ofRequests,
    ['step', 'chain', expect.stringMatching(/Error: Too far.$/)],
  ]);
});

test('an aborted stream is cancelled, with the text until then, and spans that never end are interrupted', async () => {
  const main = `
    const controller = new AbortController();
    const { textStream } = await mastra.getAgent('hanging').stream('Tea', { abortSignal: controller.signal });
    let received = '';
    for await (const text of textStream) if ((received += text) === 'You said: ') controller.abort();
    await mastra.getAgent('hanging').stream('Tea');`;
  const { runs } = await run(BRIDGE, main);
  const reasons = runs.map(({ run_type, error, extra }) => [run_type, extra?.runspan_end_reason, error]);
  const shutdown = 'Interrupted: Mastra was shut down';
  expect(reasons.sort()).toEqual([
    ['chain', 'cancelled', undefined],
    ['chain', 'interrupted', shutdown],
    ['llm', 'cancelled', undefined],
    ['llm', 'interrupted', shutdown],
  ]);
  expect(ofType(runs, 'llm').map(({ outputs }) => outputs?.text)).toContain('You said: ');
});
