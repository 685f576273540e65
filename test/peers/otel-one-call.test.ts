// Untouched programs whose model calls several libraries observe: each has a run, and the tokens of a call count once.
// Each of the real packages observes the calls in its own way. Each answer has eight tokens.
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import { localModel } from '../integrations/local-openai.ts';
import { startProgram } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { laterNode } from './later-node.ts';

const program = fileURLToPath(new URL('./otel-one-call-program.mjs', import.meta.url));
const TOKENS = 8;

interface Traced {
  readonly runs: readonly RunRecord[];
  /** Totals of the trace that the receiver computes. */
  readonly tokens: number;
  readonly modelCalls: number;
}

/** Runs the program with `runspan/register` or `runspan dev`. */
async function traced(names: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Traced> {
  const [receiver, model] = await Promise.all([startReceiver(), localModel()]);
  const command = [laterNode(), '--import', import.meta.resolve('runspan/register'), program, model.url, ...names];
  const { code, stderr } = await startProgram(command, { RUNSPAN_ENDPOINT: receiver.url, ...env }).ended;
  expect([code, stderr]).toEqual([0, '']);
  const runs = await receiver.runs();
  const { items } = (await asked(`${receiver.url}/query/traces`)) as Traces;
  expect(items).toHaveLength(1);
  const { total } = (await asked(`${receiver.url}/query/statistics`)) as Totals;
  return { runs, tokens: items[0]?.trace.usage.total_tokens ?? 0, modelCalls: total.model_calls.runs };
}

interface Traces {
  readonly items: readonly { readonly trace: { readonly usage: { readonly total_tokens: number } } }[];
}

interface Totals {
  readonly total: { readonly model_calls: { readonly runs: number } };
}

const asked = async (url: string): Promise<unknown> => (await fetch(url)).json();

const SDK = 'com.anthropic.sdk.typescript';
const OPENINFERENCE = '@arizeai/openinference-instrumentation-';
const TRACELOOP = '@traceloop/instrumentation-openai';
const OTEL = '@opentelemetry/instrumentation-openai';

/** The source of a run: the integration or the scope of its span. */
function sourceOf({ extra }: RunRecord): string {
  const { recorded_by: [name] = [], otel } = (extra?.metadata ?? {}) as { recorded_by?: string[]; otel?: Span };
  return name ?? otel?.scope.name ?? '';
}

interface Span {
  readonly scope: { readonly name: string };
}

const tokensOf = (runs: readonly RunRecord[]): number =>
  runs.reduce((sum, { extra }) => sum + ((extra?.metadata?.usage_metadata as Usage | undefined)?.total_tokens ?? 0), 0);

interface Usage {
  readonly total_tokens: number;
}

test.each<[string, readonly string[], readonly string[], readonly string[], tokens: number]>([
  ["Anthropic's own spans and the recorder", [], ['messages.create', 'messages.stream'], [SDK, 'fetch'], 16],
  [
    ...["Anthropic's own spans, the wrapper and the recorder", ['wrapper'], ['messages.create', 'messages.stream']],
    ...[['wrapAnthropic', SDK, 'fetch'], 16],
  ],
  [
    ...["OpenInference, Anthropic's own spans and the recorder", ['openinference-anthropic'], ['messages.create']],
    ...[[`${OPENINFERENCE}anthropic`, SDK, 'fetch'], 8],
  ],
  [
    ...['OpenInference and the recorder', ['openinference'], ['chat.create', 'chat.stream']],
    ...[[`${OPENINFERENCE}openai`, 'fetch'], 16],
  ],
  ['Traceloop and the recorder', ['traceloop'], ['chat.create', 'chat.stream'], [TRACELOOP, 'fetch'], 16],
  [
    ...['Traceloop, the wrapper and the recorder', ['traceloop', 'wrapper'], ['chat.create', 'chat.stream']],
    ...[['wrapOpenAI', TRACELOOP, 'fetch'], 16],
  ],
  [
    ...['OpenTelemetry and the recorder', ['otel'], ['chat.create', 'chat.stream', 'responses.stream']],
    ...[[OTEL, 'fetch'], 24],
  ],
  [
    ...['OpenTelemetry, the wrapper and the recorder', ['otel', 'wrapper'], ['chat.create', 'chat.stream']],
    ...[['wrapOpenAI', OTEL, 'fetch'], 16],
  ],
  [
    ...['`observeOpenAI` of Langfuse and the recorder', ['langfuse'], ['chat.create', 'chat.stream']],
    ...[['langfuse-sdk', 'fetch'], 16],
  ],
  ["Sentry's spans of OpenAI and the recorder", ['sentry'], ['chat.create'], ['@sentry/node', 'fetch'], 8],
] as never)('%s record each call, and its tokens count once', async (_, sources, calls, recordedBy, tokens) => {
  const trace = await traced([...sources, ...calls]);
  const runs = trace.runs.filter(({ run_type }) => run_type === 'llm');
  expect(runs.map(sourceOf).sort()).toEqual(calls.flatMap(() => recordedBy).sort());
  expect([tokensOf(runs), trace.tokens, trace.modelCalls]).toEqual([tokens, tokens, calls.length]);
  for (const { error, end_time } of runs) expect([error, typeof end_time]).toEqual([undefined, 'string']);
  const whole = runs.filter(
    ({ inputs, outputs }) =>
      JSON.stringify(inputs).includes('Is it raining?') && JSON.stringify(outputs).includes('You said: Is it raining?'),
  );
  expect(whole.length).toBeGreaterThanOrEqual(calls.length);
});

test.each<[string, string[], runs: number]>([
  ...['otel', 'openinference', 'traceloop'].map((source): [string, string[], number] => [
    `its handler and the instrumentation of its client by ${source}`,
    [source, 'langchain'],
    2,
  ]),
  ['its handler and the recorder', ['langchain'], 1],
])('the tokens of a model of LangChain count once, recorded by %s', async (_, names, count) => {
  const { runs, tokens, modelCalls } = await traced(names);
  const calls = runs.filter(({ run_type }) => run_type === 'llm');
  expect([calls.length, tokensOf(calls), tokens, modelCalls]).toEqual([count, TOKENS, TOKENS, 1]);
});

test.each([
  ['ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE', 'metadata_only', false],
  ['ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE', 'content', true],
  ['ANTHROPIC_OPEN_TELEMETRY', 'false', true],
  ['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT', 'false', false],
])('with %s=%s, content is recorded: %s', async (name, value, isRecorded) => {
  const { runs, tokens } = await traced(['messages.create'], { [name]: value });
  const calls = runs.filter(({ run_type }) => run_type === 'llm');
  expect(JSON.stringify(calls).includes('Is it raining?')).toBe(isRecorded);
  expect(tokens).toBe(TOKENS);
});
