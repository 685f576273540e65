// Untouched programs whose model calls several libraries observe: each call has one run, or the receiver counts it once.
// Each of the real packages observes the calls in its own way. Each answer has eight tokens.
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { createReceiver } from '#src/receiver.ts';
import type { RunRecord } from '#src/run/record.ts';
import { startLocalModel } from '../support/local-model/server.js';
import { startProgram } from '../support/program.ts';
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
  const [receiver, model] = await Promise.all([createReceiver(), startLocalModel()]);
  try {
    const command = [laterNode(), '--import', import.meta.resolve('runspan/register'), program, model.url, ...names];
    const { code, stderr } = await startProgram(command, { RUNSPAN_ENDPOINT: receiver.url, ...env }).ended;
    expect([code, stderr]).toEqual([0, '']);
    const runs = await receiver.runs();
    const { items } = (await asked(`${receiver.url}/query/traces`)) as Traces;
    expect(items).toHaveLength(1);
    const { total } = (await asked(`${receiver.url}/query/statistics`)) as Totals;
    return { runs, tokens: items[0]?.trace.usage.total_tokens ?? 0, modelCalls: total.model_calls.runs };
  } finally {
    await Promise.all([receiver.close(), model.close()]);
  }
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

describe.each<[string, readonly string[], readonly string[], readonly (readonly string[])[]]>([
  ["Anthropic's own spans and the recorder", [], ['messages.create', 'messages.stream'], [[SDK, 'fetch']]],
  ["Anthropic's own spans and the wrapper", ['wrapper'], ['messages.create', 'messages.stream'], [['wrapAnthropic']]],
  [
    "OpenInference, Anthropic's own spans and the recorder",
    ['openinference-anthropic'],
    ['messages.create'],
    [[`${OPENINFERENCE}anthropic`, SDK, 'fetch']],
  ],
  [
    'OpenInference and the recorder',
    ['openinference'],
    ['chat.create', 'chat.stream'],
    [[`${OPENINFERENCE}openai`, 'fetch']],
  ],
  [
    'Traceloop and the recorder',
    ['traceloop'],
    ['chat.create', 'chat.stream'],
    [['@traceloop/instrumentation-openai', 'fetch']],
  ],
  ['Traceloop and the wrapper', ['traceloop', 'wrapper'], ['chat.create', 'chat.stream'], [['wrapOpenAI']]],
  [
    'the instrumentation of OpenTelemetry and the recorder',
    ['otel'],
    ['chat.create', 'chat.stream', 'responses.stream'],
    [['@opentelemetry/instrumentation-openai', 'fetch']],
  ],
  [
    'the instrumentation of OpenTelemetry and the wrapper',
    ['otel', 'wrapper'],
    ['chat.create', 'chat.stream', 'responses.stream'],
    [['wrapOpenAI']],
  ],
  [
    '`observeOpenAI` of Langfuse and the recorder',
    ['langfuse'],
    ['chat.create', 'chat.stream'],
    [['langfuse-sdk', 'fetch']],
  ],
  [
    "Sentry's spans of models and the recorder",
    ['sentry'],
    ['chat.create', 'messages.create'],
    [
      ['@sentry/node', 'fetch'],
      [SDK, 'fetch'],
    ],
  ],
])('%s', (_, sources, calls, recordedBy) => {
  let trace: Traced;
  beforeAll(async () => {
    trace = await traced([...sources, ...calls]);
  });

  test(`record each of ${calls.join(', ')} once, with content and tokens`, () => {
    const runs = trace.runs.filter(({ run_type }) => run_type === 'llm');
    expect(runs).toHaveLength(calls.length);
    for (const run of runs) {
      expect(recordedBy).toContainEqual(run.extra?.metadata?.recorded_by);
      expect(JSON.stringify(run.inputs)).toContain('Is it raining?');
      expect(JSON.stringify(run.outputs)).toContain('You said: Is it raining?');
      expect(run.extra?.metadata?.usage_metadata).toMatchObject({ total_tokens: TOKENS });
      expect([run.error, typeof run.end_time]).toEqual([undefined, 'string']);
    }
    expect([trace.tokens, trace.modelCalls]).toEqual([TOKENS * calls.length, calls.length]);
  });
});

test.each<[string, string[]]>([
  ["`messages.stream()` by OpenInference and Anthropic's own span", ['openinference-anthropic', 'messages.stream']],
  ...['otel', 'openinference', 'traceloop'].map((source): [string, string[]] => [
    `a model of LangChain by its handler and the instrumentation of its client by ${source}`,
    [source, 'langchain'],
  ]),
  ['a model of LangChain by its handler and the recorder', ['langchain']],
])('the receiver counts %s once', async (_, names) => {
  const { runs, tokens, modelCalls } = await traced(names);
  const calls = runs.filter(({ run_type }) => run_type === 'llm');
  expect(calls).toHaveLength(names.length);
  expect([tokens, modelCalls]).toEqual([TOKENS, 1]);
});

test.each([
  ['ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE', 'metadata_only', false],
  ['ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE', 'content', true],
  ['ANTHROPIC_OPEN_TELEMETRY', 'false', true],
  ['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT', 'false', false],
])('with %s=%s, content is recorded: %s', async (name, value, isRecorded) => {
  const { runs, tokens } = await traced(['messages.create'], { [name]: value });
  const calls = runs.filter(({ run_type }) => run_type === 'llm');
  expect(calls).toHaveLength(1);
  expect(JSON.stringify(calls).includes('Is it raining?')).toBe(isRecorded);
  expect(tokens).toBe(TOKENS);
});
