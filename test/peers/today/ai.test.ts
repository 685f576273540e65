// A program with version 7 of the AI SDK: bare, and recorded with runspan/register as a bundle, with patched modules and
// with wrappers.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createReceiver } from '#src/receiver.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { type ModelRequest, startOpenAiServer, USAGE_METADATA } from '../../support/openai-server.ts';
import { type Ended, startProgram } from '../../support/program.ts';
import { laterNode } from '../later-node.ts';
import { type DrawnRun, drawn } from '../otel-runs.ts';

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const program = pathOf('ai-program.mjs');
const register = import.meta.resolve('runspan/register');
const bundles = temporaryFolder();
afterAll(bundles.remove);
const bundle = join(bundles.path, 'ai-program.mjs');
const otelBundle = join(bundles.path, 'ai-otel-program.mjs');

beforeAll(async () => {
  await build({
    entryPoints: [program, pathOf('ai-otel-program.mjs')],
    outdir: bundles.path,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    // The bundle is in another folder.
    alias: { 'runspan/ai': fileURLToPath(import.meta.resolve('runspan/ai')) },
    banner: { js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);` },
    logLevel: 'error',
  });
});

interface Executed extends Ended {
  readonly requests: readonly ModelRequest[];
  readonly runs: readonly DrawnRun[];
}

/** Executes parts of the program, separated by spaces. */
async function execute(parts: string, file = program, env: Readonly<Record<string, string>> = {}): Promise<Executed> {
  const [server, receiver] = await Promise.all([startOpenAiServer(), createReceiver()]);
  const command = [laterNode(), '--expose-gc', file, ...parts.split(' ')];
  const given = { MODEL: server.url, RUNSPAN_ENDPOINT: receiver.url, AI_SDK_LOG_WARNINGS: 'false', ...env };
  const ended = await startProgram(command, given).ended;
  const runs = drawn(await receiver.runs());
  await Promise.all([server.close(), receiver.close()]);
  return { ...ended, runs, requests: server.requests };
}

const registered = { NODE_OPTIONS: `--import ${register}` };
const executions = {
  bundled: (parts: string) => execute(parts, bundle, registered),
  patched: (parts: string) => execute(parts, program, registered),
  'bundled and wrapped': (parts: string) => execute(parts, bundle, { ...registered, WRAP: 'sdk' }),
  'bundled with wrapped models': (parts: string) => execute(parts, bundle, { ...registered, WRAP: 'model' }),
};

/** The SDK does not publish these parameters of a model call. Each recorder has a name of its own. */
const UNPUBLISHED = ['tool_choice', 'response_format', 'provider_options', 'recorded_by'];

const comparable = (runs: readonly DrawnRun[]): unknown =>
  JSON.parse(JSON.stringify(runs, (key, value) => (UNPUBLISHED.includes(key) ? undefined : value)));

const visible = ({ code, signal, stdout, stderr, requests }: Executed): object => ({
  ...{ code, signal, stdout, stderr },
  // Calls in parallel have no order. The request that gets no answer may time out before it arrives.
  requests: requests.flatMap(({ body, path }) => (body.model === 'silent' ? [] : JSON.stringify([path, body]))).sort(),
});

test('each part behaves as without recording, and has the same runs however it is recorded', async () => {
  const parts = 'text stream tools embeddings errors abort parallel';
  const bare = await execute(parts);
  expect([bare.code, bare.stderr, bare.runs]).toEqual([0, '', []]);
  const recorded: Executed[] = [];
  for (const start of Object.values(executions)) recorded.push(await start(parts));
  for (const one of recorded) expect(visible(one)).toEqual(visible(bare));
  const [bundled, ...others] = recorded.map(({ runs }) => comparable(runs.map(withoutPairs)));
  for (const other of others) expect(other).toEqual(bundled);
});

/** Returns a run in which each model call that is published and recorded by a wrapper has only the record with the usage. */
function withoutPairs(run: DrawnRun): DrawnRun {
  const { below = [], ...own } = run;
  const [inner] = below;
  const isPair = inner !== undefined && run.type !== 'chain' && inner.type === run.type;
  if (isPair) expect([inner.name, [run, inner].filter(isMarked).length]).toEqual([run.name, 1]);
  if (isPair) return isMarked(inner) ? own : inner;
  return below.length === 0 ? own : { ...own, below: below.map(withoutPairs) };
}

const isMarked = ({ metadata }: DrawnRun): boolean => metadata?.same_call !== undefined;

/** Returns a line for each run: the name, the type, and how it ended unless it succeeded. */
const lines = (runs: readonly DrawnRun[], depth = 0): string[] =>
  runs.flatMap(({ name, type, error, end: reason, isOpen, below = [] }) => {
    const end = isOpen ? 'open' : (reason ?? error?.split(':')[0] ?? '');
    return [`${'  '.repeat(depth)}${name} (${type}) ${end}`.trimEnd(), ...lines(below, depth + 1)];
  });

const flat = (runs: readonly DrawnRun[]): DrawnRun[] => runs.flatMap((run) => [run, ...flat(run.below ?? [])]);

const messagesOf = (inputs: unknown) => (inputs as { messages: { role: string; content: unknown }[] }).messages;

const WEATHER = ['  weather (tool)', '    generateText (chain)', '      inner (llm)'];
const STEPS = ['  gpt (llm)', '  gpt (llm)', ...WEATHER];

test('a bundled text has its model calls and tools, and what a tool calls is below the tool', async () => {
  const { runs } = await executions.bundled('text');
  expect(lines(runs)).toEqual(['generateText (chain)', ...STEPS]);
  expect(runs).toMatchObject([
    {
      inputs: { model: 'gpt', prompt: 'Rain?', instructions: 'Be short.', temperature: 0.5, tools: ['weather'] },
      outputs: { text: 'It is raining.', finishReason: 'stop', steps: 2 },
      metadata: { function_id: 'forecast' },
    },
  ]);
  const tool = flat(runs).find(({ type }) => type === 'tool');
  expect(tool).toMatchObject({
    inputs: { city: 'Cork' },
    outputs: { city: 'Cork', toolCallId: 'call_1', text: 'It is raining.' },
    metadata: { tool_call_id: 'call_1' },
  });
  const calls = flat(runs).filter(({ type }) => type === 'llm');
  expect(calls.map(({ metadata }) => metadata?.usage_metadata)).toEqual(Array(3).fill(USAGE_METADATA));
  const first = calls.find(({ inputs }) => messagesOf(inputs).length === 2);
  expect(first).toMatchObject({
    inputs: {
      messages: [
        { role: 'system', content: 'Be short.' },
        { role: 'user', content: 'Rain?' },
      ],
    },
    metadata: { ls_provider: 'openai', ls_temperature: 0.5, response_model: 'gpt-2026', response_id: 'chatcmpl-1' },
  });
});

test('a bundled tool that fails has the error, and a tool of the client is only in the outputs', async () => {
  const { runs } = await executions.bundled('tools');
  expect(lines(runs)).toEqual([
    ...['generateText (chain)', '  failing (tool) RangeError', '  gpt (llm)', '  gpt (llm)'],
    ...['generateText (chain)', '  gpt (llm)'],
    ...['streamText (chain)', '  failing (tool) RangeError', '  gpt (llm)', '  gpt (llm)'],
    ...['streamText (chain)', '  gpt (llm)'],
  ]);
  const toolCalls = [{ toolCallId: 'call_1', toolName: 'locate', input: { city: 'Cork' } }];
  const located = { outputs: { toolCalls, finishReason: 'tool-calls', steps: 1 } };
  expect(runs.filter((_, at) => at % 2 === 1)).toMatchObject([located, located]);
});

test('a bundled call that fails or is aborted ends all its runs', async () => {
  const [errors, aborts] = await Promise.all([executions.bundled('errors'), executions.bundled('abort')]);
  expect(lines(errors.runs)).toEqual([
    ...['generateText (chain) AI_APICallError', '  broken (llm) AI_APICallError'],
    ...['streamText (chain) AI_APICallError', '  broken (llm) AI_APICallError'],
    ...['streamText (chain) AI_APICallError', '  cut (llm) AI_APICallError'],
  ]);
  expect(errors.runs[2]?.outputs).toMatchObject({ text: 'It is raining.' });
  expect(lines(aborts.runs)).toEqual([
    ...['generateText (chain) TimeoutError', '  silent (llm) TimeoutError'],
    ...['streamText (chain) cancelled', '  endless (llm) cancelled'],
  ]);
});

test('each of 100 parallel texts in a bundle has its own model calls and tools', async () => {
  const { runs } = await executions.bundled('parallel');
  expect(runs).toHaveLength(100);
  for (const run of runs) {
    expect(lines([run])).toEqual(['generateText (chain)', ...STEPS]);
    const calls = flat([run]).filter(({ name }) => name === 'gpt');
    const { prompt } = run.inputs as { prompt: string };
    expect(calls.map(({ inputs }) => messagesOf(inputs)[1]?.content)).toEqual([prompt, prompt]);
    expect(run.metadata?.function_id).toBe(prompt.replace('Rain ', 'f').replace('?', ''));
  }
});

test.each(Object.entries(executions))('a text that is no longer read ends as cancelled, %s', async (kind, start) => {
  const { stdout, runs } = await start('leave');
  expect(stdout).toBe('["la "]\n');
  const wrapped = kind === 'bundled with wrapped models' ? ['    long (llm) interrupted'] : [];
  expect(lines(runs)).toEqual(['streamText (chain) cancelled', '  long (llm) cancelled', ...wrapped]);
  expect(runs[0]?.outputs).toMatchObject({ text: expect.stringMatching(/^(la ){1,50}$/) });
});

test('an agent in a bundle has the runs of its texts with its function id, and its name if a wrapper records it', async () => {
  const { runs } = await executions.bundled('agent');
  const agent = (name: string): string[] => [`${name} (chain)`, ...STEPS];
  expect(lines(runs)).toEqual([...agent('generateText'), ...agent('streamText')]);
  expect(runs).toMatchObject(Array(2).fill({ metadata: { function_id: 'forecast' } }));
  for (const start of [executions.patched, executions['bundled and wrapped']]) {
    const { runs: named } = await start('agent');
    expect(lines(named)).toEqual([...agent('forecaster.generate'), ...agent('forecaster.stream')]);
  }
});

test('a bundle hides what the telemetry option hides, and has only model calls without telemetry', async () => {
  const { runs } = await executions.bundled('hidden');
  const call = 'openai.chat.completions (llm)';
  const hidden = ['generateText (chain)', '  gpt (llm)', '  gpt (llm)', '  umbrella (tool)'];
  // Without the texts of a call, its request has no evidence to be its transport.
  const withRequests = hidden.flatMap((line) => (line === '  gpt (llm)' ? [line, `    ${call}`] : [line]));
  expect(lines(runs)).toEqual([...withRequests, ...hidden, call, call]);
  const [_withoutInputs, withoutOutputs] = runs;
  expect(flat(runs.slice(0, 1)).flatMap(({ inputs }) => inputs ?? [])).toEqual([]);
  expect(withoutOutputs?.inputs).toMatchObject({ prompt: 'Rain?' });
  expect(JSON.stringify(withoutOutputs)).not.toContain('"outputs"');
});

test('a bundle that records the spans of the SDK has each request below its span, and counts it once', async () => {
  const { runs } = await execute('', otelBundle, registered);
  const call = ['    chat gpt (llm)', '      openai.chat.completions (llm)'];
  const steps = ['  step 1 (chain)', ...call, '    weather (tool)', '  step 2 (chain)', ...call];
  const counting = flat(runs).filter(({ metadata }) => metadata?.usage_metadata !== undefined);
  expect(counting.map(({ name }) => name)).toEqual(Array(4).fill('openai.chat.completions'));
  const text = ['invoke_agent gpt (chain)', ...steps];
  expect(lines(runs)).toEqual([...text, ...text]);
});
