import { describe, expect, test } from 'vitest';
import type { SpanLike } from '../../src/otel.ts';
import { mapped } from './mapped.ts';

// Names and bodies of the single events, up to version 1.36 of the conventions:
// https://github.com/open-telemetry/semantic-conventions/blob/v1.36.0/docs/gen-ai/gen-ai-events.md
const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } };

type Event = readonly [name: string, fields?: Record<string, unknown>];

/** Returns the run of a chat span with these attributes and events. */
const chat = (events: readonly Event[], attributes: object = { 'gen_ai.operation.name': 'chat' }) =>
  mapped({ ...attributes }, { events: events.map(([name, fields]) => ({ name, time, attributes: fields })) as Events });

type Events = SpanLike['events'];
const time = [1, 0] as const;

describe('a message event', () => {
  const INPUTS = 'inputs';
  const OUTPUTS = 'outputs';

  test.each<[string, Record<string, unknown>, 'inputs' | 'outputs', unknown]>([
    ['gen_ai.system.message', { content: 'Be brief.' }, INPUTS, { role: 'system', content: 'Be brief.' }],
    ['gen_ai.system.message', { content: 'a', role: 'developer' }, INPUTS, { role: 'developer', content: 'a' }],
    ['gen_ai.user.message', { content: 'Rain?', name: 'ann' }, INPUTS, { role: 'user', name: 'ann', content: 'Rain?' }],
    ['gen_ai.assistant.message', { tool_calls: [call] }, INPUTS, { role: 'assistant', tool_calls: [call] }],
    [
      'gen_ai.assistant.message',
      { tool_calls: JSON.stringify([call]) },
      INPUTS,
      { role: 'assistant', tool_calls: [call] },
    ],
    ['gen_ai.tool.message', { id: 'c1', content: 'wet' }, INPUTS, { role: 'tool', content: 'wet', tool_call_id: 'c1' }],
    [
      'gen_ai.choice',
      { index: 0, finish_reason: 'stop', message: { content: 'It rains.' } },
      OUTPUTS,
      { role: 'assistant', content: 'It rains.', finish_reason: 'stop' },
    ],
    [
      'gen_ai.choice',
      { index: 0, finish_reason: 'tool_calls', message: { tool_calls: [call] } },
      OUTPUTS,
      { role: 'assistant', tool_calls: [call], finish_reason: 'tool_calls' },
    ],
    [
      'gen_ai.choice',
      { finish_reason: 'tool_calls', message: '{"role":"assistant"}', tool_calls: JSON.stringify([call]) },
      OUTPUTS,
      { role: 'assistant', tool_calls: [call], finish_reason: 'tool_calls' },
    ],
    ['gen_ai.choice', { message: 'It rains.' }, OUTPUTS, { role: 'assistant', content: 'It rains.' }],
    // https://github.com/Azure/azure-sdk-for-python/blob/main/sdk/ai/azure-ai-inference, whose bodies are one attribute
    [
      'gen_ai.user.message',
      { 'gen_ai.system': 'az.ai.inference', 'gen_ai.event.content': '{"role":"user","content":"Rain?"}' },
      INPUTS,
      { role: 'user', content: 'Rain?' },
    ],
  ])('%s with %j adds a message', (name, fields, field, message) => {
    const run = chat([[name, fields]]);
    expect(run[field]).toEqual({ messages: [message] });
    expect(run.events).toBeUndefined();
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
    const { inputs, outputs, events } = chat([[name, fields]]);
    expect({ inputs, outputs }).toEqual({ inputs: undefined, outputs: undefined });
    expect(events).toMatchObject([{ name }]);
  });

  test('of the current conventions has structured messages, instructions and tools', () => {
    const input = [{ role: 'user', parts: [{ type: 'text', content: 'a' }] }];
    const fields = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.input.messages': input,
      'gen_ai.output.messages': JSON.stringify(input),
      'gen_ai.system_instructions': 'Be brief.',
      'gen_ai.tool.definitions': [{ name: 'weather' }],
    };
    const user = { role: 'user', content: 'a' };
    const run = chat([['gen_ai.client.inference.operation.details', fields]]);
    expect(run.inputs).toEqual({ messages: [{ role: 'system', content: 'Be brief.' }, user] });
    expect(run.outputs).toEqual({ messages: [user] });
    expect(run.metadata.ls_invocation_params).toEqual({ tools: [{ name: 'weather' }] });
  });
});

describe('a span with message events', () => {
  test('has all messages in order, and only the other events', () => {
    const run = chat([
      ['gen_ai.system.message', { content: 'Be brief.' }],
      ['gen_ai.user.message', { content: 'Rain?' }],
      ['step'],
      ['gen_ai.choice', { index: 0, finish_reason: 'stop', message: '{"content":"Yes."}' }],
    ]);
    expect(run.inputs).toEqual({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Rain?' },
      ],
    });
    expect(run.outputs).toEqual({ messages: [{ role: 'assistant', content: 'Yes.', finish_reason: 'stop' }] });
    expect(run.events).toMatchObject([{ name: 'step' }]);
    expect(run.metadata).not.toHaveProperty(['gen_ai.input.messages']);
  });

  // https://github.com/open-telemetry/semantic-conventions/blob/v1.27.0/docs/gen-ai/gen-ai-spans.md#events
  test('has the payloads of the two events of version 1.27', () => {
    const run = chat([
      ['gen_ai.content.prompt', { 'gen_ai.prompt': '[{"role":"user","content":"Rain?"}]' }],
      ['gen_ai.content.completion', { 'gen_ai.completion': 'It rains.' }],
    ]);
    expect(run.inputs).toEqual({ messages: [{ role: 'user', content: 'Rain?' }] });
    expect(run.outputs).toEqual({ output: 'It rains.' });
    expect(run.events).toBeUndefined();
  });

  test('prefers the messages in its attributes, and keeps the event with other messages', () => {
    const message = '[{"role":"user","parts":[{"type":"text","content":"attribute"}]}]';
    const run = chat(
      [
        ['gen_ai.user.message', { content: 'event' }],
        ['gen_ai.choice', { message: 'Yes.' }],
      ],
      { 'gen_ai.operation.name': 'chat', 'gen_ai.input.messages': message },
    );
    expect(run.inputs).toEqual({ messages: [{ role: 'user', content: 'attribute' }] });
    expect(run.outputs).toEqual({ messages: [{ role: 'assistant', content: 'Yes.' }] });
    expect(run.events).toMatchObject([{ name: 'gen_ai.user.message', kwargs: { content: 'event' } }]);
  });

  test('prefers the payloads of another convention', () => {
    const attributes = { 'openinference.span.kind': 'LLM', 'input.value': 'attribute' };
    const run = chat([['gen_ai.user.message', { content: 'event' }]], attributes);
    expect(run.inputs).toEqual({ input: 'attribute' });
    expect(run.events).toMatchObject([{ name: 'gen_ai.user.message' }]);
    expect(run.metadata).not.toHaveProperty(['gen_ai.input.messages']);
  });
});

describe('the time to the first chunk', () => {
  const TIME = 'gen_ai.response.time_to_first_chunk';
  const at = (us: number, name: string, attributes?: object) => ({ name, time: [1, us * 1_000], attributes });
  const eventsOf = (seconds: unknown, events: object[] = []) =>
    mapped({ 'gen_ai.operation.name': 'chat', [TIME]: seconds }, { events: events as unknown as Events });

  test('becomes an event at this time after the start, between the other events', () => {
    const { events, metadata } = eventsOf(0.25, [at(250_000, 'before'), at(250_001, 'after')]);
    expect(events).toEqual([
      { name: 'before', time: '1970-01-01T00:00:01.250000Z' },
      { name: 'new_token', time: '1970-01-01T00:00:01.250000Z' },
      { name: 'after', time: '1970-01-01T00:00:01.250001Z' },
    ]);
    expect(metadata).toMatchObject({ [TIME]: 0.25 });
  });

  test('becomes no event if the span has this event, or if the time is invalid', () => {
    expect(eventsOf(0.25, [at(5, 'new_token', { token: 'a' })]).events).toMatchObject([{ kwargs: { token: 'a' } }]);
    for (const invalid of [-1, 'soon']) expect(eventsOf(invalid).events).toBeUndefined();
  });
});
