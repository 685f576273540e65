import { describe, expect, test } from 'vitest';
import { indexWith, vocabularies } from '#src/otel/mapping/row-index.ts';
import { notes } from '../package/attribute-notes.ts';
import { expectRun, flat, mapped } from './mapped.ts';

test.each([
  ['gen_ai.operation.name', 'llm', 'chat, generate_content, text_completion, fetch_response, completion'],
  ['gen_ai.operation.name', 'embedding', 'embeddings, embedding'],
  ['gen_ai.operation.name', 'retriever', 'retrieval, rerank, search_memory'],
  ['gen_ai.operation.name', 'tool', 'create_memory, update_memory, upsert_memory, delete_memory, execute_tool'],
  ['gen_ai.operation.name', 'tool', 'create_memory_store, delete_memory_store'],
  ['gen_ai.operation.name', 'chain', 'agent_step, handoff, guard, guardrail.run, create_agent, invoke_agent'],
  ['gen_ai.operation.name', 'chain', 'invoke_workflow, plan, something new'],
  ['openinference.span.kind', 'llm', 'LLM, llm'],
  ['openinference.span.kind', 'chain', 'CHAIN, AGENT, GUARDRAIL, EVALUATOR, UNKNOWN, something new'],
  ['openinference.span.kind', 'retriever', 'RETRIEVER, RERANKER'],
  ['openinference.span.kind', 'tool', 'TOOL'],
  ['openinference.span.kind', 'embedding', 'EMBEDDING'],
  ['openinference.span.kind', 'prompt', 'PROMPT'],
  ['ai.operationId', 'chain', 'ai.generateText, ai.streamText, ai.generateObject, ai.streamObject, ai.embed'],
  ['ai.operationId', 'chain', 'ai.embedMany, ai.rerank, ai.workflowAgent.stream, something new'],
  ['ai.operationId', 'llm', 'ai.generateText.doGenerate, ai.streamText.doStream, ai.generateObject.doGenerate'],
  ['ai.operationId', 'llm', 'ai.streamObject.doStream, ai.generateSpeech, ai.transcribe'],
  ['ai.operationId', 'embedding', 'ai.embed.doEmbed, ai.embedMany.doEmbed'],
  ['ai.operationId', 'retriever', 'ai.rerank.doRerank'],
  ['ai.operationId', 'tool', 'ai.toolCall'],
  ['traceloop.span.kind', 'chain', 'workflow, task, agent, session, unknown, something new'],
  ['traceloop.span.kind', 'tool', 'tool'],
  ['langfuse.observation.type', 'chain', 'span, event, agent, chain, evaluator, guardrail, something new'],
  ['langfuse.observation.type', 'llm', 'generation'],
  ['langfuse.observation.type', 'embedding', 'embedding'],
  ['langfuse.observation.type', 'tool', 'tool'],
  ['langfuse.observation.type', 'retriever', 'retriever'],
])('a span has a run of its type: with %s, %s for %s', (name, runType, kinds) => {
  for (const kind of kinds.split(', ')) {
    const run = mapped({ [name]: kind });
    expect([kind, run.runType, run.metadata]).toEqual([kind, runType, expect.objectContaining({ [name]: kind })]);
  }
});

const openInferenceAnswer = (model: string, kind = 'LLM') => ({
  'openinference.span.kind': kind,
  'llm.model_name': 'm-1',
  'output.value': JSON.stringify({ id: 'r1', model }),
  'llm.output_messages.0.message.content': 'a',
});

test.each<[string, Record<string, unknown>]>([
  ['GenAI', { 'gen_ai.operation.name': 'chat', 'gen_ai.response.id': 'r1' }],
  [
    'the AI SDK',
    { 'ai.operationId': 'ai.generateText.doGenerate', 'ai.response.id': 'r1', 'gen_ai.response.id': 'r1' },
  ],
  ['Traceloop', { 'llm.request.type': 'chat', 'llm.response.id': 'r1' }],
  ['OpenInference, which records the answer', openInferenceAnswer('m-1')],
])('the id of an answer is `response_id` in spans of %s', (_, attributes) => {
  const { metadata } = mapped(attributes);
  expect(metadata.response_id).toBe('r1');
  expect(Object.values(metadata).filter((value) => value === 'r1')).toHaveLength(1);
});

test.each<[string, Record<string, unknown>]>([
  ['that names another model', openInferenceAnswer('m-2')],
  ['of a span that is not a model call', openInferenceAnswer('m-1', 'CHAIN')],
])('the id in an output %s is not the id of an answer', (_, attributes) => {
  expect(mapped(attributes).metadata).not.toHaveProperty('response_id');
});

describe('precedence', () => {
  const ours = {
    'runspan.run_type': 'parser',
    'runspan.name': 'ours',
    'runspan.inputs': '{"from":"runspan"}',
    'runspan.outputs': 'runspan',
    'runspan.tags': ['runspan'],
  };
  const openInference = {
    'openinference.span.kind': 'TOOL',
    'tool.name': 'theirs',
    'input.value': '{"from":"openinference"}',
    'output.value': '"openinference"',
    'llm.system': 'openinference',
  };
  const genAi = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'gen_ai',
    'gen_ai.request.model': 'gen_ai',
    'gen_ai.tool.call.arguments': '{"from":"gen_ai"}',
  };

  test('attributes of runspan take precedence over all others', () => {
    expectRun(mapped({ ...genAi, ...openInference, ...ours }), {
      runType: 'parser',
      name: 'ours',
      inputs: { from: 'runspan' },
      outputs: { output: 'runspan' },
      tags: ['runspan'],
    });
  });

  test('OpenInference takes precedence over GenAI, which sets the missing fields', () => {
    const run = mapped({ ...genAi, ...openInference });
    expectRun(run, { runType: 'tool', name: 'theirs', inputs: { from: 'openinference' } });
    expect(run.metadata).toMatchObject({
      ls_provider: 'openinference',
      ls_model_name: 'gen_ai',
      'gen_ai.provider.name': 'gen_ai',
      'gen_ai.tool.call.arguments': '{"from":"gen_ai"}',
    });
  });

  test('without a span kind, only the payloads of OpenInference are read', () => {
    const metadata = { 'llm.system': 'a' };
    const run = mapped({ ...metadata, 'input.value': 'q', 'output.value': 'r' });
    expectRun(run, { runType: 'chain', inputs: { input: 'q' }, outputs: { output: 'r' }, metadata });
  });

  test('a span without a convention is a chain with all attributes in the metadata', () => {
    const metadata = { 'process.pid': 7, ok: true };
    expectRun(mapped(metadata), { runType: 'chain', name: undefined, inputs: undefined, outputs: undefined, metadata });
  });
});

test.each([
  [1_000, 1_000, undefined],
  [1_003, 1_001, 3],
])('the metadata has at most 1 000 of %i attributes and counts the others', (count, keys, dropped) => {
  const attributes = Object.fromEntries(Array.from({ length: count }, (_, index) => [`key ${index}`, index]));
  const { metadata } = mapped(attributes);
  expect([Object.keys(metadata).length, metadata.dropped_attributes]).toEqual([keys, dropped]);
  expect(metadata['key 999']).toBe(999);
});

test('any span has the session and the user in its metadata', () => {
  const { metadata } = mapped({ 'session.id': 's', 'user.id': 'u' });
  expect(metadata).toEqual({ thread_id: 's', 'session.id': 's', user_id: 'u' });
  expect(mapped({ 'enduser.id': 'u' }).metadata).toEqual({ user_id: 'u' });
  expect(mapped({ 'enduser.pseudo.id': 'p' }).metadata).toEqual({ user_id: 'p' });
});

test.each<[string, string, Record<string, string>?]>([
  ['session.id', 'user.id'],
  ['session.id', 'enduser.id'],
  ['session.id', 'user.id', { 'openinference.span.kind': 'LLM' }],
  ['gen_ai.conversation.id', 'enduser.pseudo.id', { 'gen_ai.operation.name': 'chat' }],
  ['langfuse.session.id', 'langfuse.user.id'],
  ['traceloop.association.properties.chat_id', 'traceloop.association.properties.userId'],
  ['ai.telemetry.metadata.sessionId', 'ai.telemetry.metadata.userId', { 'ai.operationId': 'ai.generateText' }],
  ['conversation.id', 'enduser.id', { target: 'codex_core::session::turn' }],
])('%s and %s may be numbers', (thread, user, attributes) => {
  const { metadata } = mapped({ ...attributes, [thread]: 7, [user]: 42 });
  expect(metadata).toMatchObject({ thread_id: '7', user_id: '42' });
});

describe('vocabularies', () => {
  const rowsOf = ({ inputs, outputs, usage, parameters, metadata, tags, times }: (typeof vocabularies)[number]) =>
    [inputs, outputs, usage, parameters, metadata, tags, times].flatMap((table = []) => table.map(([name]) => name));
  const cases = vocabularies.map((vocabulary) => [vocabulary.name, vocabulary] as const);

  test('fit into 31 bits', () => {
    expect(vocabularies.length).toBeLessThanOrEqual(31);
  });

  const always = cases.filter(([, { matches }]) => matches === undefined);

  test.each(always)('%s reads only attributes of its namespaces', (_, vocabulary) => {
    const { namespaces, ignored = [], project = [] } = vocabulary;
    const names = [...rowsOf(vocabulary), ...ignored, ...[project].flat()];
    expect(names.filter((name) => !namespaces.includes(name.split('.', 1)[0] as string))).toEqual([]);
  });

  const invalid = [0, Number.NaN, true, '', '[{"role"', 'null', '[null,[]]', '{"messages":7}', {}, [], [null, 1], [{}]];

  test.each(cases)('%s: an invalid value affects only its own attribute', (name, vocabulary) => {
    const kinds = notes[name]?.kinds?.slice(0, 2) ?? [{ 'gen_ai.operation.name': 'chat' }];
    const lost: unknown[] = [];
    for (const attribute of new Set(rowsOf(vocabulary))) {
      for (const value of [...invalid, new Uint8Array(2), { content: [{ type: 'file' }, null] }]) {
        for (const kind of kinds) {
          const given = { ...kind, [attribute]: value, [`${attribute}.b`]: value, note: 'kept' };
          if (mapped(given).metadata.note !== 'kept') lost.push(given);
        }
      }
    }
    expect(lost).toEqual([]);
  });
});

describe('odd values', () => {
  const isWritable = (json: string): boolean => {
    try {
      return JSON.stringify(JSON.parse(json)) === json;
    } catch {
      return false;
    }
  };

  const asked = (part: string) => `[{"role":"assistant","parts":[${part}]}]`;

  test('that are nested too deeply are recorded up to the limit of the depth, and other attributes are read', () => {
    const depth = 100_000;
    const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const messages = asked(`{"type":"tool_call","id":"1","name":"a","arguments":${deep}}`);
    const { runType, inputs, outputs, metadata } = mapped({
      'gen_ai.operation.name': 'chat',
      'gen_ai.input.messages': asked('{"type":"text","content":"Hi"}'),
      'gen_ai.output.messages': messages,
    });
    expect(runType).toBe('llm');
    expect(inputs).toEqual({ messages: [{ role: 'assistant', content: 'Hi' }] });
    expect(metadata['gen_ai.output.messages']).toBeUndefined();
    expect(outputs).toMatchObject({ messages: [{ tool_calls: [{ id: '1', function: { name: 'a' } }] }] });
    // In Node 26, `JSON.stringify` has no depth limit.
    expect(JSON.stringify(outputs).includes(deep)).toBe(isWritable(deep));
  });

  test('may contain `__proto__` as a key', () => {
    const messages = '[{"role":"user","parts":[{"type":"text","content":"Hi"}],"__proto__":{"role":"system"}}]';
    const fields = mapped({ 'gen_ai.operation.name': 'chat', 'gen_ai.input.messages': messages }).inputs;
    expect(JSON.stringify(fields)).toBe('{"messages":[{"role":"user","__proto__":{"role":"system"},"content":"Hi"}]}');
  });

  test('of the kind attribute make the run a chain', () => {
    const kind: unknown = Object.create(null);
    for (const name of ['gen_ai.operation.name', 'openinference.span.kind', 'ai.operationId'])
      expect(mapped({ [name]: kind })).toMatchObject({ runType: 'chain', inputs: undefined });
  });
});

describe('a list that is flattened into attributes', () => {
  const messages = (list: object) => mapped(flat('gen_ai.prompt', list)).inputs?.messages;

  test.each([
    [
      'has objects and lists',
      { '0.parts.0.text': 'a', '0.parts.1.text': 'b' },
      [{ parts: [{ text: 'a' }, { text: 'b' }] }],
    ],
    ['is sorted by number, without gaps', { '10.a': 2, '9.a': 1, '999999999.a': 3 }, [{ a: 1 }, { a: 2 }, { a: 3 }]],
    ['has numbers among other keys as keys', { '0.a.0': 'a', '0.a.x': 'b' }, [{ a: { '0': 'a', x: 'b' } }]],
    ['prefers structures to a value of the same name', { '0.a.b': 1, '0.a': 2 }, [{ a: { b: 1 } }]],
    ['prefers structures to an earlier value of the same name', { '0.a': 2, '0.a.b': 1 }, [{ a: { b: 1 } }]],
  ])('%s', (_, list, expected) => {
    expect(messages(list)).toEqual(expected);
  });

  test('does not reach a prototype', () => {
    const [message] = messages({ '0.__proto__.polluted': true, '0.constructor.prototype.polluted': true });
    expect(Object.keys(message)).toEqual(['__proto__', 'constructor']);
    expect({}).not.toHaveProperty('polluted');
  });

  test('has 15 levels below the index of a name with a hundred thousand levels', () => {
    const [message] = messages({ [`0.${'a.'.repeat(100_000)}b`]: 1 });
    let levels = 0;
    for (let at = message; typeof at === 'object'; at = Object.values(at)[0]) levels++;
    expect(levels).toBe(15);
  });
});

test.each([0, 10, 13])('The tables of a span are selected if %i tables of the application come first', (count) => {
  const own = Array.from({ length: count }, (_, at) => ({ inputs: { [`own${at}.input`]: 'input' } }));
  const index = indexWith(own);
  expect(index.vocabulariesOf(index.matchedBits(-1, {})).length).toBeGreaterThan(count);
});
