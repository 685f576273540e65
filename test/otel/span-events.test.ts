import { describe, expect, test } from 'vitest';
import type { SpanLike } from '#src/otel.ts';
import { expectRun, mapped } from './mapped.ts';

type Event = readonly [name: string, attributes?: Record<string, unknown>];

const eventsOf = (events: readonly Event[]) =>
  events.map(([name, attributes]) => ({ name, time: [1, 0], attributes })) as unknown as SpanLike['events'];

const chat = { 'gen_ai.operation.name': 'chat' };

const withEvents = (events: readonly Event[], attributes = {}, hidden = {}) =>
  mapped(attributes, { events: eventsOf(events) }, hidden);

// Names and bodies of the single events, up to version 1.36 of the conventions:
// https://github.com/open-telemetry/semantic-conventions/blob/v1.36.0/docs/gen-ai/gen-ai-events.md
describe('a message event', () => {
  const calls = [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }];
  const called = { role: 'assistant', tool_calls: calls };
  const reason = { finish_reason: 'tool_calls' };
  const azure = { 'gen_ai.system': 'az.ai.inference', 'gen_ai.event.content': '{"role":"user","content":"a"}' };

  test.each<[string, Record<string, unknown>, unknown]>([
    ['gen_ai.system.message', { content: 'Be brief.' }, { role: 'system', content: 'Be brief.' }],
    ['gen_ai.system.message', { content: 'a', role: 'developer' }, { role: 'developer', content: 'a' }],
    ['gen_ai.user.message', { content: 'a', name: 'ann' }, { role: 'user', name: 'ann', content: 'a' }],
    ['gen_ai.assistant.message', { tool_calls: calls }, called],
    ['gen_ai.assistant.message', { tool_calls: JSON.stringify(calls) }, called],
    ['gen_ai.tool.message', { id: 'c1', content: 'wet' }, { role: 'tool', content: 'wet', tool_call_id: 'c1' }],
    // https://github.com/Azure/azure-sdk-for-python/blob/main/sdk/ai/azure-ai-inference, whose bodies are one attribute
    ['gen_ai.user.message', azure, { role: 'user', content: 'a' }],
    [
      'gen_ai.choice',
      { index: 0, finish_reason: 'stop', message: { content: 'a' } },
      { role: 'assistant', content: 'a', finish_reason: 'stop' },
    ],
    ['gen_ai.choice', { index: 0, ...reason, message: { tool_calls: calls } }, { ...called, ...reason }],
    [
      'gen_ai.choice',
      { ...reason, message: '{"role":"assistant"}', tool_calls: JSON.stringify(calls) },
      { ...called, ...reason },
    ],
    ['gen_ai.choice', { message: 'It rains.' }, { role: 'assistant', content: 'It rains.' }],
  ])('%s with %j adds a message', (name, fields, message) => {
    const field = name === 'gen_ai.choice' ? 'outputs' : 'inputs';
    expectRun(withEvents([[name, fields]], chat), { [field]: { messages: [message] }, events: undefined });
  });

  test.each([
    ['gen_ai.user.message', {}],
    ['gen_ai.user.message', { content: null }],
    ['gen_ai.tool.message', { id: 'c1' }],
    ['gen_ai.choice', { index: 0, finish_reason: 'stop', message: {} }],
    ['gen_ai.client.inference.operation.details', { 'gen_ai.operation.name': 'chat' }],
    ['gen_ai.content.prompt', {}],
    ['exception', { content: 'a' }],
    ['constructor', { content: 'a' }],
  ])('%s with %j adds no message', (name, fields) => {
    const run = withEvents([[name, fields]], chat);
    expectRun(run, { inputs: undefined, outputs: undefined });
    expect(run.events).toMatchObject([{ name }]);
  });

  test('of the current conventions has structured messages, instructions and tools', () => {
    const input = [{ role: 'user', parts: [{ type: 'text', content: 'a' }] }];
    const fields = {
      ...chat,
      'gen_ai.input.messages': input,
      'gen_ai.output.messages': JSON.stringify(input),
      'gen_ai.system_instructions': 'Be brief.',
      'gen_ai.tool.definitions': [{ name: 'weather' }],
    };
    const user = { role: 'user', content: 'a' };
    const run = withEvents([['gen_ai.client.inference.operation.details', fields]], chat);
    expectRun(run, {
      inputs: { messages: [{ role: 'system', content: 'Be brief.' }, user] },
      outputs: { messages: [user] },
    });
    expect(run.metadata.ls_invocation_params).toEqual({ tools: [{ name: 'weather' }] });
  });
});

describe('a span with message events', () => {
  const message = (role: string, content: string) => ({ role, content });
  const user: Event = ['gen_ai.user.message', { content: 'event' }];

  test('has all messages in order, and only the other events', () => {
    const run = withEvents(
      [
        ['gen_ai.system.message', { content: 'Be brief.' }],
        user,
        ['step'],
        ['gen_ai.choice', { index: 0, message: '{"content":"Yes."}' }],
      ],
      chat,
    );
    expectRun(run, {
      inputs: { messages: [message('system', 'Be brief.'), message('user', 'event')] },
      outputs: { messages: [message('assistant', 'Yes.')] },
    });
    expect(run.events).toMatchObject([{ name: 'step' }]);
    expect(run.metadata).not.toHaveProperty(['gen_ai.input.messages']);
  });

  // https://github.com/open-telemetry/semantic-conventions/blob/v1.27.0/docs/gen-ai/gen-ai-spans.md#events
  test('has the payloads of the two events of version 1.27', () => {
    const prompt: Event = ['gen_ai.content.prompt', { 'gen_ai.prompt': '[{"role":"user","content":"Rain?"}]' }];
    const completion: Event = ['gen_ai.content.completion', { 'gen_ai.completion': 'It rains.' }];
    expectRun(withEvents([prompt, completion], chat), {
      inputs: { messages: [message('user', 'Rain?')] },
      outputs: { output: 'It rains.' },
      events: undefined,
    });
  });

  test.each<[string, object, object]>([
    [
      'the messages in its attributes',
      { ...chat, 'gen_ai.input.messages': '[{"role":"user","content":"attribute"}]' },
      { messages: [message('user', 'attribute')] },
    ],
    [
      'the payloads of another convention',
      { 'openinference.span.kind': 'LLM', 'input.value': 'attribute' },
      { input: 'attribute' },
    ],
  ])('prefers %s, and keeps the event with other messages', (_, attributes, inputs) => {
    const run = withEvents([user, ['gen_ai.choice', { message: 'Yes.' }]], attributes);
    expectRun(run, { inputs, outputs: { messages: [message('assistant', 'Yes.')] } });
    expect(run.events).toMatchObject([{ name: 'gen_ai.user.message', kwargs: { content: 'event' } }]);
    expect(run.metadata).not.toHaveProperty(['gen_ai.input.messages']);
  });
});

describe('the time to the first chunk', () => {
  const TIME = 'gen_ai.response.time_to_first_chunk';
  const at = (us: number, name: string, attributes?: object) => ({ name, time: [1, us * 1_000], attributes });
  const timed = (seconds: unknown, events: object[] = []) =>
    mapped({ ...chat, [TIME]: seconds }, { events: events as unknown as SpanLike['events'] });

  test('becomes an event at this time after the start, between the other events', () => {
    const { events, metadata } = timed(0.25, [at(250_000, 'before'), at(250_001, 'after')]);
    expect(events).toEqual([
      { name: 'before', time: '1970-01-01T00:00:01.250000Z' },
      { name: 'new_token', time: '1970-01-01T00:00:01.250000Z' },
      { name: 'after', time: '1970-01-01T00:00:01.250001Z' },
    ]);
    expect(metadata).toMatchObject({ [TIME]: 0.25 });
  });

  test('becomes no event if the span has this event, or if the time is invalid', () => {
    expect(timed(0.25, [at(5, 'new_token', { token: 'a' })]).events).toMatchObject([{ kwargs: { token: 'a' } }]);
    for (const invalid of [-1, 'soon']) expect(timed(invalid).events).toBeUndefined();
  });
});

// openinference-instrumentation-openai (Python), _stream.py
test("OpenInference's event for the first token is the run's, unless an attribute has the exact time", () => {
  const event = 'First Token Stream Event';
  const events: Event[] = [['before'], [event]];
  const time = '1970-01-01T00:00:01.000000Z';
  const run = withEvents(events, { 'openinference.span.kind': 'LLM' });
  expect(run.events).toEqual([
    { name: 'before', time },
    { name: 'new_token', time },
  ]);
  const timed = withEvents([[event]], { ...chat, 'gen_ai.response.time_to_first_chunk': 0.25 });
  expect(timed.events).toEqual([{ name: 'new_token', time: '1970-01-01T00:00:01.250000Z' }]);
});

// https://www.traceloop.com/docs/openllmetry/contributing/semantic-conventions#vector-dbs
describe('a result of a vector database', () => {
  const document = (page_content: string, metadata: object) => ({ page_content, type: 'Document', metadata });
  const result = (prefix: string, fields: object): Event => [
    prefix,
    Object.fromEntries(Object.entries(fields).map(([key, value]) => [`${prefix}.${key}`, value])),
  ];
  const metadata = { page: 3, id: 'a', score: 0.75, distance: 0.25, dimensions: 2 };
  const found = { id: 'a', score: 0.75, distance: 0.25, metadata: '{"page":3}', vector: [0.375, 0.625] };

  test.each<[string, Event[], object, object[], object | undefined]>([
    [
      'is a document',
      [
        result('db.query.embeddings', { vector: '[0.125,0.25]' }),
        result('db.query.result', { ...found, document: 'A' }),
      ],
      {},
      [document('A', metadata)],
      { embeddings: [{ dimensions: 2 }] },
    ],
    [
      'may have invalid metadata',
      [result('db.query.result', { id: 'b', metadata: 'odd' })],
      { 'db.system': 'chroma' },
      [document('', { metadata: 'odd', id: 'b' })],
      undefined,
    ],
    [
      'may be of Milvus',
      [
        result('db.search.embeddings', { vector: [0.5] }),
        result('db.search.result', { id: 'a', distance: 0.25, entity: '{"title":"Cats"}', query: 0 }),
      ],
      {},
      [document('', { title: 'Cats', id: 'a', distance: 0.25, query: 0 })],
      { embeddings: [{ dimensions: 1 }] },
    ],
    [
      'may have its metadata in an event of Pinecone',
      [['pinecone.query.result.0.metadata', { text: 'A cat.' }]],
      { 'db.vector.query.result.0.id': 'a', 'db.vector.query.top_k': 1 },
      [document('', { text: 'A cat.', id: 'a' })],
      { top_k: 1 },
    ],
  ])('%s', (_, events, attributes, documents, inputs) => {
    const run = withEvents([...events, ['cache missed']], attributes);
    expectRun(run, { runType: 'retriever', inputs, outputs: { documents } });
    expect(run.events).toMatchObject([{ name: 'cache missed' }]);
    expect(JSON.stringify(run)).not.toMatch(/\b0\.(125|375)/);
  });

  test.each([
    { hideInputs: true, hideOutputs: false, shown: 'A cat.', hidden: 'dimensions' },
    { hideInputs: false, hideOutputs: true, shown: 'dimensions', hidden: 'A cat.' },
  ])('shows $shown if $hidden is hidden', ({ hideInputs, hideOutputs, shown, hidden }) => {
    const events = [
      result('db.query.embeddings', { vector: [0.5] }),
      result('db.query.result', { document: 'A cat.' }),
    ];
    const recorded = JSON.stringify(withEvents(events, {}, { hideInputs, hideOutputs }));
    expect(recorded).toContain(shown);
    expect(recorded).not.toContain(hidden);
  });
});

describe('hidden payloads', () => {
  const names = (text: string) => text.trim().split(/\s+/);
  const INPUTS = names(`
    runspan.inputs input.value llm.input_messages.0.message.content embedding.embeddings.0.embedding.text
    gen_ai.input.messages gen_ai.system_instructions gen_ai.tool.call.arguments gen_ai.prompt.0.content
    gen_ai.content.prompt gen_ai.prompt.variable.city gen_ai.user.message ai.prompt ai.prompt.messages ai.toolCall.args ai.values
    traceloop.entity.input http.url url.full db.statement db.query.text db.query.parameter.0 db.query.parameter.name
    mcp.request.argument messaging.destination.name`);
  const OUTPUTS = names(`
    runspan.outputs output.value llm.output_messages.0.message.content retrieval.documents.0.document.content
    gen_ai.output.messages gen_ai.tool.call.result gen_ai.completion.0.content gen_ai.choice ai.response.text
    ai.response.reasoning ai.response.toolCalls ai.response.object ai.toolCall.result traceloop.entity.output
    http.response.status_code db.response.returned_rows mcp.response.value`);
  const NEITHER = names('ai.response.id gen_ai.request.model server.address db.system db.query.summary');
  const UNKNOWN = names('prompt llm.token_count.prompt');

  /** Each name is an attribute of the span and of an event. */
  const attributes = Object.fromEntries(
    [...INPUTS, ...OUTPUTS, ...NEITHER, ...UNKNOWN].map((name) => [name, `value of ${name}.`]),
  );

  test.each([
    { hideInputs: false, hideOutputs: false },
    { hideInputs: true, hideOutputs: false },
    { hideInputs: false, hideOutputs: true },
    { hideInputs: true, hideOutputs: true },
  ])('are missing in attributes and events with %j, and no other attributes', (hidden) => {
    const { hideInputs, hideOutputs } = hidden;
    const found = Object.keys(withEvents([['step', attributes]], {}, hidden).events[0].kwargs);
    // The texts of embeddings are inputs and their lengths outputs, so either hides them.
    const inputs = INPUTS.filter((name) => !hideInputs && !(hideOutputs && name.startsWith('embedding.')));
    const outputs = hideOutputs ? [] : OUTPUTS;
    const unknown = hideInputs || hideOutputs ? [] : UNKNOWN;
    expect(found.toSorted()).toEqual([...inputs, ...outputs, ...NEITHER, ...unknown].toSorted());

    const text = JSON.stringify(mapped(attributes, {}, hidden));
    const hiddenNames = [...(hideInputs ? INPUTS : []), ...(hideOutputs ? OUTPUTS : [])];
    expect(hiddenNames.filter((name) => text.includes(`value of ${name}.`))).toEqual([]);
  });
});
