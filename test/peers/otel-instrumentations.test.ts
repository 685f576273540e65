// The runs of one program with `openai`, which each instrumentation observes in its own way. The expected lines are written by
// hand, from the program, the answers of the local model and the conventions that each instrumentation follows:
// https://github.com/open-telemetry/semantic-conventions/blob/v1.36.0/docs/gen-ai/gen-ai-events.md (OpenTelemetry),
// https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md,
// https://www.traceloop.com/docs/openllmetry/contributing/semantic-conventions (Traceloop 0.22) and
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md (Traceloop).
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fieldsOf, listOf } from '#src/payload/fields.ts';
import type { RunRecord } from '#src/run/record.ts';
import { type LocalModel, startLocalModel } from '../support/local-model/server.js';
import { startReceiver } from '../support/receiver.ts';
import { printedBy } from './otel-runs.ts';

let model: LocalModel;
beforeAll(async () => {
  model = await startLocalModel();
});
afterAll(() => model.close());

const PROGRAM = 'otel-instrumentations-program.mjs';
const TRACED = ['otel', 'openinference', 'traceloop', 'traceloop-0.22'];

const traced = (instrumentation: string, env?: Readonly<Record<string, string>>): Promise<RunRecord[]> =>
  printedBy(PROGRAM, [instrumentation, `${model.url}/v1`], process.execPath, { TRACELOOP_TELEMETRY: 'false', ...env });

/** The calls of models, in the order of the program. */
const callsIn = (runs: readonly RunRecord[]): RunRecord[] =>
  runs.filter(({ run_type }) => run_type !== 'chain').sort((a, b) => (a.dotted_order < b.dotted_order ? -1 : 1));

/** A line for a call: its name, its messages, its tokens, and how it ended. */
function lineOf({ name, inputs, outputs, error, end_time }: RunRecord): string {
  const { input_tokens = '?', output_tokens = 0 } = fieldsOf(outputs?.usage_metadata);
  const end = end_time === undefined ? 'open' : (error?.split('\n', 1)[0] ?? `${input_tokens} + ${output_tokens}`);
  return `${name}: ${saidIn(inputs)} > ${saidIn(outputs)} (${end})`;
}

function saidIn(payload: unknown): string {
  const { usage_metadata: _, messages, ...others } = fieldsOf(payload);
  if (messages === undefined) return JSON.stringify(others);
  const parts = listOf(messages).map((message) => {
    const { role, content, tool_calls } = fieldsOf(message);
    const calls = listOf(tool_calls).map((call) => JSON.stringify(fieldsOf(fieldsOf(call).function).arguments));
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    return [role, text, ...calls].filter(Boolean).join(' ');
  });
  return parts.join(', ');
}

const WORD = JSON.stringify('{"word":"[object Object]"}');
const TEA = 'system Be brief., user tea';
const PARTS = 'system Be brief., user [{"type":"text","text":"tea"}]';
const THOUGHT = '[{"type":"reasoning","reasoning":"Let me think."}]';
const CALLED = JSON.stringify('{"word":"tea"}');
const LATER = 'tool a drink > assistant The tools say: a drink (5 + 5)';

const LINES: Readonly<Record<string, readonly string[]>> = {
  otel: [
    `chat small: ${TEA} > assistant ${WORD} (3 + 2)`,
    `chat small: ${TEA}, assistant ${WORD}, ${LATER}`,
    'chat small: user tea > assistant You said: tea (1 + 3)',
    `chat small: ${TEA} > assistant ${THOUGHT} ${CALLED} (3 + 4)`,
    `chat small: ${TEA} > assistant You said: tea (3 + 3)`,
    'embeddings embed: {} > {} (2 + 0)',
    'chat fail-400: user tea > {} (BadRequestError: 400 asked to fail with 400)',
  ],
  // Reads no tokens from a stream. The span of a call that fails never ends.
  openinference: [
    `OpenAI Chat Completions: ${PARTS} > assistant ${WORD} (3 + 2)`,
    `OpenAI Chat Completions: ${PARTS}, assistant ${WORD}, ${LATER}`,
    'OpenAI Chat Completions: user tea > assistant You said: tea (? + 0)',
    `OpenAI Responses: ${TEA} > assistant ${THOUGHT}, assistant ${CALLED} (3 + 4)`,
    `OpenAI Responses: ${TEA} > assistant [{"type":"output_text","text":"You said: tea"}] (3 + 3)`,
    'OpenAI Embeddings: {"texts":["tea","milk"]} > {"embeddings":[{"dimensions":8},{"dimensions":8}]} (? + 0)',
    'OpenAI Chat Completions: user tea > {} (open)',
  ],
  // Does not record embeddings, nor the instructions, tools and streams of responses.
  traceloop: [
    `chat small: ${TEA} > assistant ${WORD} (3 + 2)`,
    `chat small: ${TEA}, assistant ${WORD}, ${LATER}`,
    'chat small: user tea > assistant You said: tea (? + 0)',
    'chat small: user tea > assistant (3 + 4)',
    'chat small: user tea > {} (? + 0)',
    'chat fail-400: user tea > {} (open)',
  ],
  // Content that is not text is JSON, even `null`.
  'traceloop-0.22': [
    `openai.chat: ${PARTS} > assistant ${WORD} (3 + 2)`,
    `openai.chat: ${PARTS}, assistant null, ${LATER}`,
    'openai.chat: user tea > assistant You said: tea (? + 0)',
    'openai.chat: user tea > {} (open)',
  ],
};

describe.each(TRACED)('the instrumentation %s', (instrumentation) => {
  test('has runs with messages, tokens, model and parameters, streamed or not', async () => {
    const calls = callsIn(await traced(instrumentation));
    expect(calls.map(lineOf)).toEqual(LINES[instrumentation]);
    expect(calls[0]?.extra?.metadata).toMatchObject({
      ls_provider: expect.stringMatching(/^openai$/i),
      ls_model_name: 'small',
      response_model: 'small-2026-01-01',
      ls_temperature: 0.5,
      ls_max_tokens: 50,
      ls_invocation_params: { model: 'small', temperature: 0.5, max_tokens: 50 },
      finish_reasons: [expect.stringMatching(/^tool_calls?$/)],
      usage_metadata: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
    });
  });
});

test('messages in log records are also in the runs of a receiver that gets spans and log records as OTLP', async () => {
  const receiver = await startReceiver();
  await printedBy(PROGRAM, ['otel', `${model.url}/v1`, receiver.url]);
  expect(callsIn((await receiver.runs()) as RunRecord[]).map(lineOf)).toEqual(LINES.otel);
});

test('data that the options of OpenInference remove are nowhere in the runs', async () => {
  const calls = callsIn(await traced('openinference, hidden'));
  expect(calls.slice(0, 1).map(lineOf)).toEqual([
    'OpenAI Chat Completions: system __REDACTED__, user [{"type":"text","text":"__REDACTED__"}] > {"output":"__REDACTED__"} (3 + 2)',
  ]);
  expect(JSON.stringify(calls.map(({ outputs }) => outputs))).not.toMatch(/tea|drink/);
});

test.each(TRACED)('%s and wrapOpenAI record each call above its request, and its tokens count once', async (name) => {
  const runs = await traced(name, { WRAPPED: '1' });
  const calls = callsIn(runs);
  const wrapped = calls.filter(({ extra }) => extra?.metadata?.recorded_by !== undefined);
  expect(wrapped.map((run) => run.error?.split('\n', 1)[0])).toEqual([
    ...Array(6).fill(undefined),
    'BadRequestError: 400 asked to fail with 400',
  ]);
  const requests = runs.filter((run) => run.name.startsWith('POST'));
  expect(requests.map((run) => calls.some(({ id }) => id === run.parent_run_id))).toEqual(Array(7).fill(true));
  const counted = calls.flatMap(({ extra }) => fieldsOf(extra?.metadata?.usage_metadata).input_tokens ?? []);
  // OpenTelemetry's span of an embedding has neither texts nor an id, so there is no evidence.
  expect(counted.sort()).toEqual([1, 2, ...(name === 'otel' ? [2] : []), 3, 3, 3, 5]);
});
