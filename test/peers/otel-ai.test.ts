import { expect, it } from 'vitest';
import type { RunRecord } from '#src/index.ts';
import { printedByAi } from './otel-runs.ts';

// test/otel/ai-sdk.test.ts has major 6, and each attribute of the spans.

const run = (major: string, form?: string) => printedByAi<RunRecord[]>('otel-ai-program.mjs', major, form);

interface Golden {
  /** The name and the type, indented by the depth in the tree. */
  readonly at: string;
  readonly inputs: unknown;
  readonly outputs?: unknown;
  readonly error?: string;
  /** The end reason, or `open` if the SDK never ends the span. */
  readonly end?: string;
}

function goldenOf({ dotted_order, name, run_type, inputs, outputs, error, end_time, extra }: RunRecord): Golden {
  const end = end_time === undefined ? 'open' : extra?.runspan_end_reason;
  return {
    at: `${'  '.repeat(dotted_order.split('.').length - 1)}${name} (${run_type})`,
    inputs,
    ...(Object.keys(outputs ?? {}).length > 0 && { outputs }),
    ...(error !== undefined && { error: error.split('\n')[0] as string }),
    ...(typeof end === 'string' && { end }),
  };
}

const SYSTEM = { role: 'system', content: 'Be brief.' };
const QUESTION = { role: 'user', content: 'Rain?' };
const ARGUMENTS = { city: 'Cork' };
const WEATHER = { city: 'Cork', rain: true };
const CALL = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Cork"}' } };
const ASKS = { role: 'assistant', tool_calls: [CALL] };
const TOLD = { role: 'tool', tool_call_id: 'call_1', content: WEATHER };
const ANSWER = { role: 'assistant', content: 'It is raining.', finish_reason: 'stop' };
const OBJECT = { role: 'assistant', content: '{"city":"Cork","rain":true}', finish_reason: 'stop' };
const PLAIN = { input_tokens: 20, output_tokens: 9, total_tokens: 29 };
const DETAILED = { ...PLAIN, input_token_details: { cache_read: 8 }, output_token_details: { reasoning: 3 } };
const VECTORS = { embeddings: [{ dimensions: 3 }, { dimensions: 3 }] };
const FAILED = 'AI_APICallError: no such tune';
const HIDDEN = /hush|(?<![\d.])0\.25(?!\d)/;

const picture = (url: string) => ({
  role: 'user',
  content: [
    { type: 'text', text: 'Where is this?' },
    { type: 'image_url', image_url: { url } },
  ],
});
const answered = (message: object, usage: object) => ({ messages: [message], usage_metadata: usage });

/** The spans `ai.*` of each version: https://ai-sdk.dev/docs/ai-sdk-core/telemetry#collected-data */
function aiTree(major: string): Golden[] {
  const isLater = major === '7';
  const prompt = isLater ? { messages: [QUESTION] } : { prompt: 'Rain?' };
  // Major 5 reports the details only for streams.
  const usage = major === '5' ? PLAIN : DETAILED;
  const seen = { messages: [picture(`data:image/png;base64,iVBORw0KGgo${'A'.repeat(37)}`)] };
  const schema = { role: 'system', content: expect.stringMatching(/^JSON schema:/) };
  const cancelled = { end: 'cancelled' };
  return [
    {
      at: 'forecast (chain)',
      inputs: { system: 'Be brief.', ...prompt },
      // Major 7 reports the calls of all steps.
      outputs: { messages: [isLater ? { ...ANSWER, tool_calls: [CALL] } : ANSWER] },
    },
    {
      at: '  ai.generateText.doGenerate (llm)',
      inputs: { messages: [SYSTEM, QUESTION] },
      outputs: answered({ ...ASKS, finish_reason: 'tool-calls' }, usage),
    },
    { at: `${isLater ? '    ' : '  '}weather (tool)`, inputs: ARGUMENTS, outputs: WEATHER },
    {
      at: '  ai.generateText.doGenerate (llm)',
      inputs: { messages: [SYSTEM, QUESTION, ASKS, { ...TOLD, name: 'weather' }] },
      outputs: answered(ANSWER, usage),
    },
    { at: 'described (chain)', inputs: seen, outputs: { messages: [ANSWER] } },
    { at: '  ai.streamText.doStream (llm)', inputs: seen, outputs: answered(ANSWER, DETAILED) },
    { at: 'reported (chain)', inputs: { prompt: 'Rain?' }, outputs: WEATHER },
    {
      at: '  ai.generateObject.doGenerate (llm)',
      inputs: { messages: major === '4' ? [schema, QUESTION] : [QUESTION] },
      outputs: answered(OBJECT, usage),
    },
    { at: 'embedded (chain)', inputs: { values: ['a', 'b'] }, outputs: VECTORS },
    {
      at: '  ai.embedMany.doEmbed (embedding)',
      inputs: { values: ['a', 'b'] },
      outputs: { ...VECTORS, usage_metadata: { input_tokens: 4, total_tokens: 4 } },
    },
    { at: 'failed (chain)', inputs: prompt, error: FAILED },
    { at: '  ai.generateText.doGenerate (llm)', inputs: { messages: [QUESTION] }, error: FAILED },
    // Before major 7, some spans of aborted calls never end.
    { at: 'aborted (chain)', inputs: prompt, ...(major === '4' ? { end: 'open' } : cancelled) },
    {
      at: '  ai.streamText.doStream (llm)',
      inputs: { messages: [QUESTION] },
      ...(isLater ? cancelled : { end: 'open' }),
    },
  ];
}

/** The spans of major 7: https://github.com/open-telemetry/semantic-conventions-genai, with its own `agent_step`. */
function genAiTree(): Golden[] {
  const asked = { messages: [QUESTION] };
  const seen = { messages: [picture('https://a.example/b.png')] };
  const step = { inputs: {} };
  return [
    {
      at: 'forecast (chain)',
      inputs: { messages: [SYSTEM, QUESTION] },
      outputs: { messages: [{ ...ANSWER, tool_calls: [CALL] }, TOLD] },
    },
    { at: '  step 1 (chain)', ...step },
    {
      at: '    chat gpt (llm)',
      inputs: { messages: [SYSTEM, QUESTION] },
      outputs: answered({ ...ASKS, finish_reason: 'tool_call' }, DETAILED),
    },
    { at: '    weather (tool)', inputs: ARGUMENTS, outputs: WEATHER },
    { at: '  step 2 (chain)', ...step },
    {
      at: '    chat gpt (llm)',
      inputs: { messages: [SYSTEM, QUESTION, ASKS, TOLD] },
      outputs: answered(ANSWER, DETAILED),
    },
    { at: 'described (chain)', inputs: seen, outputs: { messages: [ANSWER] } },
    { at: '  step 1 (chain)', ...step },
    { at: '    chat gpt (llm)', inputs: seen, outputs: answered(ANSWER, DETAILED) },
    { at: 'reported (chain)', inputs: asked, outputs: { messages: [OBJECT] } },
    { at: '  chat gpt (llm)', inputs: asked, outputs: answered(OBJECT, DETAILED) },
    { at: 'embeddings emb (embedding)', inputs: { values: ['a', 'b'] }, outputs: VECTORS },
    {
      at: '  embeddings emb (embedding)',
      inputs: { values: ['a', 'b'] },
      outputs: { ...VECTORS, usage_metadata: { input_tokens: 4 } },
    },
    { at: 'failed (chain)', inputs: asked, error: FAILED },
    { at: '  step 1 (chain)', ...step, error: FAILED },
    { at: '    chat broken (llm)', inputs: asked, error: FAILED },
    { at: 'aborted (chain)', inputs: asked, end: 'cancelled' },
    { at: '  step 1 (chain)', ...step },
    { at: '    chat endless (llm)', inputs: asked, end: 'cancelled' },
  ];
}

/** Returns the metadata without entries that have the name of a span attribute. */
function metadataOf({ extra }: RunRecord): object {
  const isOurs = (key: string) => !/^(?:otel|service\.name|server\..*|ai\..*|gen_ai\..*)$/.test(key);
  return Object.fromEntries(Object.entries(extra?.metadata ?? {}).filter(([key]) => isOurs(key)));
}

const ABOUT = { user_id: 'ann', userId: 'ann', thread_id: 'thread-1', sessionId: 'thread-1', tier: 'gold' };
const MODEL = { ls_provider: 'openai', ls_model_name: 'gpt', ls_temperature: 0.5, ls_max_tokens: 100 };
const SETTINGS = { model: 'gpt', temperature: 0.5, max_tokens: 100 };
const ANSWERED = {
  ls_model_type: 'chat',
  response_model: 'gpt-2026',
  finish_reasons: [expect.stringMatching(/^tool[-_]calls?$/)],
};
const TOOL = expect.objectContaining({ name: 'weather' });

function expectFirstToken({ start_time, end_time, events }: RunRecord): void {
  const [first, ...others] = events ?? [];
  expect(first?.name).toBe('new_token');
  expect(others.map(({ name }) => name)).not.toContain('ai.stream.firstChunk');
  const [begun, answeredAt, ended] = [start_time, String(first?.time), String(end_time)];
  expect(begun < answeredAt && answeredAt < ended).toBe(true);
}

it.each([
  ['4', ''],
  ['5', ''],
  ['7', 'legacy'],
])('the spans of ai %s %s become the runs that its documentation describes', async (major, form) => {
  const runs = await run(major, form);
  expect(runs.map(goldenOf)).toEqual(aiTree(major));

  const [forecast, call, tool] = runs as [RunRecord, RunRecord, RunRecord];
  const called = { ...ABOUT, ...MODEL, function_id: 'forecast' };
  expect(metadataOf(forecast)).toMatchObject({ ...called, finish_reasons: ['stop'], ls_invocation_params: SETTINGS });
  expect(metadataOf(call)).toMatchObject({
    ...called,
    ...ANSWERED,
    response_id: 'chatcmpl-1',
    ls_invocation_params: { ...SETTINGS, tools: [TOOL], tool_choice: { type: 'auto' } },
  });
  // The span of a tool has no metadata in major 4.
  const about = major === '4' ? {} : ABOUT;
  expect(metadataOf(tool)).toMatchObject({ ...about, function_id: 'forecast', tool_call_id: 'call_1' });
  expect(forecast.tags).toEqual(['weather']);
  expectFirstToken(runs[5] as RunRecord);
  expect(JSON.stringify(runs)).not.toMatch(HIDDEN);
});

it('the spans of ai 7 by the GenAI conventions become the runs that the conventions describe', async () => {
  const runs = await run('7');
  expect(runs.map(goldenOf)).toEqual(genAiTree());

  const [forecast, step, call] = runs as [RunRecord, RunRecord, RunRecord];
  expect(metadataOf(forecast)).toMatchObject({ ...ABOUT, ...MODEL, ls_invocation_params: SETTINGS });
  expect(metadataOf(step)).toMatchObject({ ...ABOUT, ls_invocation_params: { tool_choice: { type: 'auto' } } });
  expect(metadataOf(call)).toMatchObject({
    ...MODEL,
    ...ANSWERED,
    ls_invocation_params: { ...SETTINGS, tools: [TOOL] },
  });
  expect(forecast.tags).toEqual(['weather']);
  expectFirstToken(runs[8] as RunRecord);
  expect(JSON.stringify(runs)).not.toMatch(HIDDEN);
});
