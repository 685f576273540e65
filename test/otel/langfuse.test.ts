// Meaning of the attributes: https://langfuse.com/integrations/native/opentelemetry#property-mapping
import { expect, test } from 'vitest';
import { expectRun, mapped, spanTest } from './mapped.ts';

const observation = (name: string) => `langfuse.observation.${name}`;
const testSpan = spanTest(observation('type'));

testSpan('a generation has its payloads, model, tokens, costs and metadata', 'generation', 'llm', [
  [observation('input'), '[{"role":"user","content":"hi"}]', 'inputs/messages', [{ role: 'user', content: 'hi' }]],
  [observation('output'), 'hello', 'outputs/output'],
  [observation('model.name'), 'gpt-4o', 'metadata/ls_model_name params/model'],
  [observation('model.parameters'), '{"temperature":0.5,"model":"other"}'],
  ['', 0.5, 'params/temperature metadata/ls_temperature'],
  [
    observation('usage_details'),
    '{"input":20,"output":7,"total":27,"input_cached_tokens":16,"input_audio":1,"output_reasoning_tokens":5,"searches":1,"bad":"x"}',
  ],
  ['', 20, 'usage/input_tokens'],
  ['', 7, 'usage/output_tokens'],
  ['', 27, 'usage/total_tokens'],
  ['', { cache_read: 16, audio: 1 }, 'usage/input_token_details'],
  ['', { reasoning: 5 }, 'usage/output_token_details'],
  ['', 1, 'usage/searches'],
  [observation('cost_details'), '{"input":0.25,"output":0.5,"total":0.75,"bad":"x"}'],
  ['', 0.25, 'usage/input_cost'],
  ['', 0.5, 'usage/output_cost'],
  ['', 0.75, 'usage/total_cost'],
  [observation('metadata.step'), 'two', 'metadata/step'],
  [observation('prompt.name'), 'greet', 'metadata/langfuse.observation.prompt.name'],
  ['langfuse.trace.metadata.step', 'one'],
  ['langfuse.trace.metadata.plan', 'gold', 'metadata/plan'],
  ['langfuse.trace.tags', ['a', 'b'], 'tags'],
  ['langfuse.session.id', 's1', 'metadata/thread_id metadata/langfuse.session.id'],
  ['langfuse.user.id', 'u1', 'metadata/user_id'],
]);

// The span lasts from second 1 to second 2.
test.each([
  // The SDKs for JavaScript and Python write JSON text, other emitters plain text.
  ['"1970-01-01T00:00:01.250Z"', '1970-01-01T00:00:01.250000Z'],
  ['"1970-01-01T02:00:01.250000+02:00"', '1970-01-01T00:00:01.250000Z'],
  ['1970-01-01T00:00:02Z', '1970-01-01T00:00:02.000000Z'],
  ['1970-01-01T00:00:00.999Z', undefined],
  ['1970-01-01T00:00:02.001Z', undefined],
  ['soon', undefined],
])('a completion that starts at %s has its first token at %s', (given, time) => {
  const attributes = { [observation('type')]: 'generation', [observation('completion_start_time')]: given };
  const { events, metadata } = mapped(attributes);
  expect(events).toEqual(time && [{ name: 'new_token', time }]);
  expect(metadata).toMatchObject({ [observation('completion_start_time')]: given });
});

testSpan('an observation without payloads and metadata has those of its trace', 'span', 'chain', [
  ['langfuse.trace.input', '{"q":1}', 'inputs', { q: 1 }],
  ['langfuse.trace.output', '{"a":2}', 'outputs', { a: 2 }],
  ['langfuse.trace.metadata', '{"plan":"gold"}', 'metadata/plan', 'gold'],
  ['langfuse.trace.tags', '["a"]', 'tags', ['a']],
]);

test.each([
  ['[1]', '[1]'],
  ['{"input":"many"}', '{"in'],
])('invalid usage %s and costs %s stay in the metadata', (usage, costs) => {
  const metadata = { [observation('usage_details')]: usage, [observation('cost_details')]: costs };
  const run = mapped({ [observation('type')]: 'generation', ...metadata });
  expectRun(run, { metadata });
  expect(run.outputs).toBeUndefined();
});
