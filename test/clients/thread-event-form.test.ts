import { describe, expect, it } from 'vitest';
import { missedEvents } from '#src/clients/agent-server/protocol/thread-event.ts';
import { threadEventOf } from '#src/clients/agent-server/protocol/thread-event-form.ts';

const read = (data: unknown) =>
  threadEventOf({
    name: 'message',
    data: typeof data === 'string' ? data : JSON.stringify(data),
    id: '9',
    hasOwnId: true,
  });

const sent = (method: string, data: unknown, params: object = {}) => ({
  type: 'event',
  event_id: '1',
  seq: 1,
  method,
  params: { namespace: [], timestamp: 1_795_248_138_242, ...params, data },
});

describe('an event of a thread', () => {
  it.each([
    ['lifecycle', { event: 'running', graph_name: 'agent' }],
    ['lifecycle', { event: 'paused' }],
    ['lifecycle', { event: 'started', cause: { type: 'toolCall', tool_call_id: 'c' } }],
    ['messages', { event: 'message-start', id: 'm', role: 'ai' }],
    ['messages', { event: 'content-block-start', index: 0, content: { type: 'text', text: '' } }],
    ['messages', { event: 'content-block-delta', index: 0, delta: { type: 'text-delta', text: 'I' } }],
    ['messages', { event: 'content-block-delta', index: 0, delta: { type: 'reasoning-delta', reasoning: 'I' } }],
    ['messages', { event: 'content-block-delta', index: 0, delta: { type: 'data-delta', data: 'UklG' } }],
    ['messages', { event: 'content-block-delta', index: 0, delta: { type: 'block-delta', fields: { type: 'x' } } }],
    ['messages', { event: 'content-block-finish', index: 0, content: { type: 'text', text: 'I' } }],
    ['messages', { event: 'message-finish', usage: null }],
    ['messages', { event: 'message-finish', reason: 'stop', usage: { input_tokens: 1 } }],
    ['messages', { event: 'error', message: 'no model' }],
    ['tools', { event: 'tool-started', tool_call_id: 'c', tool_name: 'task', input: {} }],
    ['tools', { event: 'tool-output-delta', tool_call_id: 'c', delta: 'a' }],
    ['tools', { event: 'tool-finished', tool_call_id: 'c', output: null }],
    ['tools', { event: 'tool-error', tool_call_id: 'c', message: 'no' }],
    ['values', { messages: [] }],
    ['values', null],
    ['updates', { messages: [] }],
    ['checkpoints', { id: 'c', parent_id: 'b', step: -1, source: 'input' }],
    ['tasks', { id: 't', name: 'plan' }],
    ['custom', { payload: 1 }],
    ['input.requested', { interrupt_id: 'i', payload: { question: 'May I?' } }],
  ])('of the method %s is typed with the data %j', (method, data) => {
    const { name, ...event } = read(sent(method, data));

    expect(event).toEqual(sent(method, data));
    expect(name).toBe(method);
  });

  it.each([
    ['files', { path: 'a' }],
    ['__proto__', {}],
    ['constructor', {}],
    ['other', {}],
    ['malformed', 'text'],
    ['lifecycle', { status: 'running' }],
    ['lifecycle', null],
    ['messages', { event: 'message-pause', id: 'm' }],
    ['messages', { event: '__proto__' }],
    ['messages', { event: 'toString' }],
    ['messages', { event: 'message-start' }],
    ['messages', { event: 'content-block-start', index: 0 }],
    ['messages', { event: 'content-block-start', index: '0', content: { type: 'text' } }],
    ['messages', { event: 'content-block-delta', index: 0, delta: { type: 'text-delta' } }],
    ['messages', { event: 'content-block-delta', index: 0, delta: { type: 'token', text: 'a' } }],
    ['messages', { event: 'content-block-delta', index: 0, delta: null }],
    ['messages', [{ event: 'message-start' }]],
    ['tools', { event: 'tool-started', tool_name: 'a' }],
    ['tools', { event: 'tool-paused', tool_call_id: 'c' }],
    ['updates', null],
    ['checkpoints', { step: 1 }],
    ['custom', 'text'],
    ['input.requested', { payload: 1 }],
  ])('of the method %s with the data %j is `other`', (method, data) => {
    expect(read(sent(method, data))).toEqual({ ...sent(method, data), method: 'other', name: method });
  });

  it.each([
    ['no JSON', '{"method":'],
    ['text', '"lifecycle"'],
    ['a list', '[]'],
    ['null', 'null'],
    ['nothing', ''],
    ['no method', '{"params":{}}'],
    ['no parameters', '{"method":"values"}'],
    ['parameters that are none', '{"method":"values","params":[]}'],
  ])('that is %s is malformed, with its text as data', (_, text) => {
    const params = { namespace: [], data: text };
    expect(read(text)).toEqual({ method: 'malformed', name: 'message', event_id: '9', params });
    const nameless = { name: 'values', data: text, id: '9', hasOwnId: false };
    expect(threadEventOf(nameless)).toEqual({ method: 'malformed', name: 'values', params });
  });

  it('keeps unknown fields', () => {
    const event = read({ ...sent('values', {}, { run_id: 'r', node: 'plan', depth: 2 }), trace: 'x' });

    expect(event).toMatchObject({ trace: 'x', params: { run_id: 'r', node: 'plan', depth: 2 } });
  });

  it('omits fields of an unexpected type', () => {
    const params = { namespace: 'root', timestamp: '1', node: 3, run_id: null, data: 1 };
    const event = read({ method: 'values', event_id: 12, seq: '3', params });

    expect(event).toEqual({ method: 'values', name: 'values', event_id: '12', params: { namespace: [], data: 1 } });
    expect(read({ method: 'values', event_id: {}, seq: -1, params: {} })).not.toHaveProperty('event_id');
    expect(read({ method: 'values', seq: 2 ** 53, params: { namespace: [1, 'a'] } })).toMatchObject({
      params: { namespace: ['1', 'a'] },
    });
  });

  it('cannot change a prototype by a field name', () => {
    const event = read('{"method":"values","__proto__":{"seq":5},"params":{"__proto__":{"run_id":"r"},"data":1}}');

    expect(event.seq).toBeUndefined();
    expect(event.params.run_id).toBeUndefined();
    expect(Object.getPrototypeOf(event)).toBe(Object.prototype);
  });

  it('reports missed events', () => {
    const missed = { name: 'missed_events', payload: { after: 3, before: 9 } };

    expect(missedEvents(read(sent('custom', missed)))).toEqual({ after: 3, before: 9 });
    expect(missedEvents(read(sent('custom', { ...missed, name: 'progress' })))).toBeUndefined();
    expect(missedEvents(read(sent('custom', { name: 'missed_events', payload: { after: 3 } })))).toBeUndefined();
    expect(missedEvents(read(sent('values', missed)))).toBeUndefined();
  });
});
