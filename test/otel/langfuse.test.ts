// Meaning of the attributes: https://langfuse.com/integrations/native/opentelemetry#property-mapping
import { expect, test } from 'vitest';
import { mapped } from './mapped.ts';

test.each([
  ['chain', 'span, event, agent, chain, evaluator, guardrail, something new'],
  ['llm', 'generation'],
  ['embedding', 'embedding'],
  ['tool', 'tool'],
  ['retriever', 'retriever'],
])('a run has the type %s for the observation types %s', (runType, kinds) => {
  for (const kind of kinds.split(', '))
    expect([kind, mapped({ 'langfuse.observation.type': kind }).runType]).toEqual([kind, runType]);
});

test('a generation has its payloads, model, tokens, costs and metadata', () => {
  const run = mapped({
    'langfuse.observation.type': 'generation',
    'langfuse.observation.input': '[{"role":"user","content":"hi"}]',
    'langfuse.observation.output': 'hello',
    'langfuse.observation.model.name': 'gpt-4o',
    'langfuse.observation.model.parameters': '{"temperature":0.5,"model":"other"}',
    'langfuse.observation.usage_details':
      '{"input":20,"output":7,"total":27,"input_cached_tokens":16,"input_audio":1,"output_reasoning_tokens":5,"searches":1,"bad":"x"}',
    'langfuse.observation.cost_details': '{"input":0.25,"output":0.5,"total":0.75,"bad":"x"}',
    'langfuse.observation.metadata.step': 'two',
    'langfuse.observation.prompt.name': 'greet',
    'langfuse.trace.metadata.step': 'one',
    'langfuse.trace.metadata.plan': 'gold',
    'langfuse.trace.tags': ['a', 'b'],
    'langfuse.session.id': 's1',
    'langfuse.user.id': 'u1',
  });
  const usage = {
    input_tokens: 20,
    output_tokens: 7,
    total_tokens: 27,
    input_token_details: { cache_read: 16, audio: 1 },
    output_token_details: { reasoning: 5 },
    searches: 1,
    input_cost: 0.25,
    output_cost: 0.5,
    total_cost: 0.75,
  };
  expect(run).toEqual({
    name: undefined,
    runType: 'llm',
    inputs: { messages: [{ role: 'user', content: 'hi' }] },
    outputs: { output: 'hello', usage_metadata: usage },
    tags: ['a', 'b'],
    metadata: {
      ls_model_name: 'gpt-4o',
      ls_invocation_params: { model: 'gpt-4o', temperature: 0.5 },
      ls_temperature: 0.5,
      usage_metadata: usage,
      step: 'two',
      plan: 'gold',
      thread_id: 's1',
      user_id: 'u1',
      'langfuse.session.id': 's1',
      'langfuse.observation.type': 'generation',
      'langfuse.observation.prompt.name': 'greet',
    },
  });
});

test('an observation without payloads and metadata has those of its trace', () => {
  const run = mapped({
    'langfuse.trace.input': '{"q":1}',
    'langfuse.trace.output': '{"a":2}',
    'langfuse.trace.metadata': '{"plan":"gold"}',
    'langfuse.trace.tags': '["a"]',
  });
  expect(run).toMatchObject({ inputs: { q: 1 }, outputs: { a: 2 }, tags: ['a'], metadata: { plan: 'gold' } });
});

test.each([
  ['[1]', '[1]'],
  ['{"input":"many"}', '{"in'],
])('invalid usage %s and costs %s stay in the metadata', (usage, costs) => {
  const run = mapped({
    'langfuse.observation.type': 'generation',
    'langfuse.observation.usage_details': usage,
    'langfuse.observation.cost_details': costs,
  });
  expect(run.metadata).toMatchObject({
    'langfuse.observation.usage_details': usage,
    'langfuse.observation.cost_details': costs,
  });
  expect(run.outputs).toBeUndefined();
});
