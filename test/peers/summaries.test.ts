// What the list of traces says of the same work, whatever records it and whoever opens the root.
import { join } from 'node:path';
import type { TraceSummary } from 'runspan/receiver';
import { expect, it } from 'vitest';
import { localModel } from '../integrations/local-openai.ts';
import { root } from '../support/folders.ts';
import { type Started, startProgram } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { laterNode } from './later-node.ts';

const peers = join(root, 'test/peers');
const register = ['--import', 'runspan/register'];
const otel = ['--import', join(peers, 'today/summaries/otel.mjs')];

/** How the program traces, what Node imports before it, and what becomes of spans. */
const MODES = {
  'an untouched program with runspan/register': ['untouched', register],
  'an untouched program with runspan/register and OpenTelemetry': ['untouched', [...otel, ...register], 'runs'],
  'a wrapped program': ['wrapped', []],
  'a wrapped program with runspan/register': ['wrapped', register],
  'a wrapped program with OpenTelemetry': ['wrapped', otel, 'runs'],
  'a program with the instrumentations of OpenInference': ['spans', otel, 'runs'],
  'a program with the instrumentations of OpenInference that sends OTLP': ['spans', otel, 'otlp'],
} as const;
type Mode = keyof typeof MODES;
const modes = Object.keys(MODES) as Mode[];

/** Starts programs of a mode, and returns what the list of traces says, the oldest trace first. */
async function startMode(mode: Mode, file: string) {
  const [tracing, imports, SPANS = ''] = MODES[mode];
  const [model, receiver] = await Promise.all([localModel(), startReceiver()]);
  const env = {
    ...{ RUNSPAN_ENDPOINT: receiver.url, OPENAI_BASE_URL: `${model.url}/v1`, OPENAI_API_KEY: 'key', SPANS },
    ...{ OTEL_METRICS_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none', OTEL_BSP_SCHEDULE_DELAY: '50' },
    // No start of a run is sent alone.
    RUNSPAN_DEV: '{"startDelayMs":600000}',
  };
  const start = (...args: readonly string[]): Started =>
    startProgram([laterNode(), ...imports, join(peers, file), tracing, ...args], env, peers);
  const listed = async () => {
    const response = await fetch(`${receiver.url}/query/traces`);
    const { items } = (await response.json()) as { items: TraceSummary[] };
    return items.toReversed().map(shownOf);
  };
  return { start, listed };
}

/** Keeps only the words of an error in which all records agree. */
function shownOf({ name, outcome, inputs_preview, outputs_preview, error, user, thread, trace }: TraceSummary) {
  const { usage, model_calls: calls } = trace;
  return {
    ...{ name, outcome, question: inputs_preview, answer: outputs_preview, user, thread, calls },
    error: /asked to fail with 429|out of stock|HTTP 500|no forecast/.exec(error ?? '')?.[0],
    tokens: usage && [usage.input_tokens, usage.output_tokens],
  };
}

/** The local model counts words. It is asked with 3 and calls the tool with 3, and is then asked with 4 and answers with 4. */
const LOOP = { status: 200, outcome: 'success', answer: 'The tools say: rain', calls: 2, tokens: [7, 7] } as const;

const REQUESTS = {
  responses: LOOP,
  chat: LOOP,
  limited: { status: 429, outcome: 'failed_below', error: 'asked to fail with 429', calls: 1 },
  broken: { status: 500, outcome: 'error', error: 'out of stock', calls: 1, tokens: [3, 5] },
  recovered: { status: 200, outcome: 'success', answer: 'You said: Is it raining?', calls: 2, tokens: [3, 5] },
} as const;

/** Returns what the list shows of a request. Modes differ in what they can know. */
function requestIn(mode: Mode, path: keyof typeof REQUESTS) {
  const { status: _, ...rest } = REQUESTS[path];
  const [tracing, imports, spans] = MODES[mode] as readonly [string, readonly string[], string?];
  const shown = { name: `POST /${path}/ada`, question: 'Is it raining?', user: 'ada', thread: `t-${path}`, ...rest };
  // OpenTelemetry's instrumentation of node:http knows no routes.
  if (imports.includes('runspan/register') && spans === undefined) shown.name = `POST /${path}/:user`;
  // The functions of the program, and who asks, are not recorded.
  if (tracing === 'untouched') {
    return { ...shown, user: undefined, thread: undefined, ...(path === 'broken' && { error: 'HTTP 500' }) };
  }
  // The root is the agent, which has failed itself.
  if (imports.length === 0) return { ...shown, name: path, ...(path === 'limited' && { outcome: 'error' }) };
  // The instrumentation does not end the span of a call that fails.
  return spans === 'otlp' && (path === 'limited' || path === 'recovered')
    ? { ...shown, calls: shown.calls - 1 }
    : shown;
}

it.each(modes)('the requests to a server that is %s have the same summaries', async (mode) => {
  const { start, listed } = await startMode(mode, 'today/summaries/server.mjs');
  const server = start();
  const [, port] = await server.printed(/port (\d+)\n/);
  const paths = Object.keys(REQUESTS) as (keyof typeof REQUESTS)[];
  for (const path of paths) {
    const response = await fetch(`http://127.0.0.1:${port}/${path}/ada`, {
      method: 'POST',
      headers: { connection: 'close', 'content-type': 'application/json' },
      body: JSON.stringify({ question: 'Is it raining?', thread: `t-${path}` }),
    });
    expect([path, response.status]).toEqual([path, REQUESTS[path].status]);
    await response.text();
  }
  server.child.stdin?.end();
  expect(await server.ended).toMatchObject({ code: 0, stderr: '' });
  expect(await listed()).toEqual(paths.map((path) => requestIn(mode, path)));
});

const FORECAST = 'You said: Forecast, please';

/** The graph asks the model, whose tool asks the model of another graph: with 3, 2 and 7 words, for 3, 4 and 7 words. */
const GRAPHS = {
  'Is it raining?': { outcome: 'success', answer: `The tools say: ${FORECAST}`, calls: 3, tokens: [12, 14] },
  'Please fail now': { outcome: 'error', error: 'no forecast', calls: 2, tokens: [5, 7] },
  'Please wait now': { outcome: 'incomplete', answer: FORECAST, calls: 2, tokens: [5, 7] },
} as const;

function graphIn(mode: Mode, question: keyof typeof GRAPHS) {
  const shown = { name: 'LangGraph', question, user: 'ada', thread: 't1', ...GRAPHS[question] };
  if (question !== 'Please wait now') return shown;
  // Others learn nothing of a graph that has not ended. `ask` is its first step.
  const isRegistered = (MODES[mode][1] as readonly string[]).includes('runspan/register');
  return isRegistered ? { ...shown, outcome: 'interrupted' } : { ...shown, name: 'ask' };
}

it.each(modes.filter((mode) => mode !== 'an untouched program with runspan/register and OpenTelemetry'))(
  'the graphs of %s have the same summaries, also if it is killed',
  async (mode) => {
    const { start, listed } = await startMode(mode, 'zero-code/programs/graph.mjs');
    const questions = Object.keys(GRAPHS) as (keyof typeof GRAPHS)[];
    for (const question of questions) {
      const program = start(question);
      if (question === 'Please wait now') {
        await expect.poll(async () => (await listed())[2]?.calls).toBe(2);
        program.child.kill('SIGTERM');
      }
      expect(await program.ended).toMatchObject({ stderr: '' });
    }
    expect(await listed()).toEqual(questions.map((question) => graphIn(mode, question)));
  },
);
