import { describe, expect, test } from 'vitest';
import { attributesOfEvent, messagesOfEvents } from '../../src/otel/message-events.ts';
import { runNamed, setUp } from './set-up.ts';

// Names and bodies of the single events, up to version 1.36 of the conventions:
// https://github.com/open-telemetry/semantic-conventions/blob/v1.36.0/docs/gen-ai/gen-ai-events.md
const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } };

describe('what an event tells', () => {
  const INPUTS = 'gen_ai.input.messages';
  const OUTPUTS = 'gen_ai.output.messages';

  test.each<[string, Record<string, unknown>, string, unknown]>([
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
  ])('%s with %j is a message', (name, fields, attribute, message) => {
    expect(attributesOfEvent(name, fields)).toEqual({ [attribute]: [message] });
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
  ])('%s with %j tells nothing', (name, fields) => {
    expect(attributesOfEvent(name, fields)).toBeUndefined();
  });

  test('the event of the present version has what attributes would have, structured', () => {
    const input = [{ role: 'user', parts: [{ type: 'text', content: 'a' }] }];
    const fields = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.input.messages': input,
      'gen_ai.output.messages': JSON.stringify(input),
      'gen_ai.system_instructions': 'Be brief.',
      'gen_ai.tool.definitions': [{ name: 'weather' }],
    };
    expect(attributesOfEvent('gen_ai.client.inference.operation.details', fields)).toEqual({
      'gen_ai.input.messages': input,
      'gen_ai.output.messages': input,
      'gen_ai.system_instructions': 'Be brief.',
      'gen_ai.tool.definitions': [{ name: 'weather' }],
    });
  });

  test('messages of several events are put together in their order', () => {
    const time = [1, 0] as const;
    const events = [
      { name: 'gen_ai.system.message', time, attributes: { content: 'a' } },
      { name: 'step', time },
      { name: 'gen_ai.user.message', time, attributes: { content: 'b' } },
    ];
    expect(messagesOfEvents(events)?.attributes).toEqual({
      'gen_ai.input.messages': [
        { role: 'system', content: 'a' },
        { role: 'user', content: 'b' },
      ],
    });
    expect(messagesOfEvents([{ name: 'step', time }])).toBeUndefined();
  });
});

describe('the run of a span with such events', () => {
  test('has its messages of them, and shows the other events alone', () => {
    const { tracer, recorder } = setUp();
    tracer
      .startSpan('chat', { attributes: { 'gen_ai.operation.name': 'chat' } })
      .addEvent('gen_ai.system.message', { content: 'Be brief.' })
      .addEvent('gen_ai.user.message', { content: 'Rain?' })
      .addEvent('step')
      .addEvent('gen_ai.choice', { index: 0, finish_reason: 'stop', message: '{"content":"Yes."}' })
      .end();
    const { inputs, outputs, events, extra } = runNamed(recorder, 'chat');
    expect(inputs).toEqual({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Rain?' },
      ],
    });
    expect(outputs).toEqual({ messages: [{ role: 'assistant', content: 'Yes.', finish_reason: 'stop' }] });
    expect(events?.map(({ name }) => name)).toEqual(['step']);
    expect(Object.keys(extra?.metadata ?? {})).not.toContain('gen_ai.input.messages');
  });

  // https://github.com/open-telemetry/semantic-conventions/blob/v1.27.0/docs/gen-ai/gen-ai-spans.md#events
  test('has its payloads of the two events of version 1.27', () => {
    const { tracer, recorder } = setUp();
    tracer
      .startSpan('chat', { attributes: { 'gen_ai.operation.name': 'chat' } })
      .addEvent('gen_ai.content.prompt', { 'gen_ai.prompt': '[{"role":"user","content":"Rain?"}]' })
      .addEvent('gen_ai.content.completion', { 'gen_ai.completion': 'It rains.' })
      .end();
    const { inputs, outputs, events } = runNamed(recorder, 'chat');
    expect(inputs).toEqual({ messages: [{ role: 'user', content: 'Rain?' }] });
    expect(outputs).toEqual({ output: 'It rains.' });
    expect(events).toBeUndefined();
  });

  test('has what its attributes say, and keeps an event that says otherwise', () => {
    const { tracer, recorder } = setUp();
    const attributes = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.input.messages': '[{"role":"user","parts":[{"type":"text","content":"attribute"}]}]',
    };
    tracer
      .startSpan('chat', { attributes })
      .addEvent('gen_ai.user.message', { content: 'event' })
      .addEvent('gen_ai.choice', { message: 'Yes.' })
      .end();
    const { inputs, outputs, events } = runNamed(recorder, 'chat');
    expect(inputs).toEqual({ messages: [{ role: 'user', content: 'attribute' }] });
    expect(outputs).toEqual({ messages: [{ role: 'assistant', content: 'Yes.' }] });
    expect(events).toMatchObject([{ name: 'gen_ai.user.message', kwargs: { content: 'event' } }]);
  });

  test('leaves the payloads of another convention alone', () => {
    const { tracer, recorder } = setUp();
    const attributes = { 'openinference.span.kind': 'LLM', 'input.value': 'attribute' };
    tracer.startSpan('chat', { attributes }).addEvent('gen_ai.user.message', { content: 'event' }).end();
    const { inputs, events, extra } = runNamed(recorder, 'chat');
    expect(inputs).toEqual({ input: 'attribute' });
    expect(events).toMatchObject([{ name: 'gen_ai.user.message' }]);
    expect(Object.keys(extra?.metadata ?? {})).not.toContain('gen_ai.input.messages');
  });
});

describe('the first piece of an answer', () => {
  const START_US = 1_795_159_360_123_456;
  const seconds = (us: number): [number, number] => [Math.floor(us / 1e6), (us % 1e6) * 1_000];
  const attributes = { 'gen_ai.operation.name': 'chat', 'gen_ai.response.time_to_first_chunk': 0.25 };

  test('is an event, at its time after the start and among the others', () => {
    const { tracer, recorder } = setUp();
    tracer
      .startSpan('chat', { startTime: seconds(START_US), attributes })
      .addEvent('before', seconds(START_US + 250_000))
      .addEvent('after', seconds(START_US + 250_001))
      .end();
    const { events, extra } = runNamed(recorder, 'chat');
    expect(events).toEqual([
      { name: 'before', time: '2026-11-20T07:22:40.373456Z' },
      { name: 'new_token', time: '2026-11-20T07:22:40.373456Z' },
      { name: 'after', time: '2026-11-20T07:22:40.373457Z' },
    ]);
    expect(extra?.metadata).toMatchObject({ 'gen_ai.response.time_to_first_chunk': 0.25 });
  });

  test('is not told twice, nor from a time that is none', () => {
    const { tracer, recorder } = setUp();
    tracer.startSpan('told', { attributes }).addEvent('new_token', { token: 'a' }).end();
    tracer.startSpan('none', { attributes: { ...attributes, 'gen_ai.response.time_to_first_chunk': -1 } }).end();
    tracer.startSpan('text', { attributes: { 'gen_ai.response.time_to_first_chunk': 'soon' } }).end();
    expect(runNamed(recorder, 'told').events).toMatchObject([{ name: 'new_token', kwargs: { token: 'a' } }]);
    expect(runNamed(recorder, 'none').events).toBeUndefined();
    expect(runNamed(recorder, 'text').events).toBeUndefined();
  });
});
