import { AIMessage, HumanMessage } from '@langchain/core/messages';
import type { ProtocolEvent } from '@langchain/langgraph/stream';
import { expect, test } from 'vitest';
import { RunEvents } from '../../server/protocol/run-events.ts';

const event = (method: string, data: unknown, namespace: string[] = [], node?: string): ProtocolEvent => ({
  type: 'event',
  seq: 0,
  method,
  params: { namespace, timestamp: 1_700_000_000_000, data, ...(node === undefined ? {} : { node }) },
});

/** What becomes of events: their method, namespace and data. */
function wireOf(...events: ProtocolEvent[]): unknown[] {
  const run = new RunEvents('r', 'supervisor');
  return events
    .flatMap((each) => run.of(each))
    .map(({ body, channel, namespace }) => {
      const { method, params } = JSON.parse(body) as {
        method: string;
        params: { data: unknown; namespace: string[]; run_id: string };
      };
      expect([params.namespace, params.run_id]).toEqual([namespace, 'r']);
      return [method, channel, namespace.join('/'), params.data];
    });
}

test('messages are plain objects with their type', () => {
  const messages = [
    new HumanMessage({ id: '1', content: 'Hi' }),
    new AIMessage({ id: '2', content: '', tool_calls: [{ id: 'c', name: 'task', args: { a: 1 }, type: 'tool_call' }] }),
  ];
  expect(wireOf(event('values', { messages }))).toEqual([
    [
      'values',
      'values',
      '',
      {
        messages: [
          { type: 'human', id: '1', content: 'Hi', additional_kwargs: {}, response_metadata: {} },
          expect.objectContaining({
            type: 'ai',
            id: '2',
            tool_calls: [{ id: 'c', name: 'task', args: { a: 1 }, type: 'tool_call' }],
          }),
        ],
      },
    ],
  ]);
});

test('the lifecycle of the run as a whole is told by whoever runs it', () => {
  const run = new RunEvents('r', 'supervisor');
  expect(run.of(event('lifecycle', { event: 'completed' }))).toEqual([]);
  const { body, channel, namespace } = run.lifecycle('failed', 'no model');
  expect([channel, namespace]).toEqual(['lifecycle', []]);
  expect(JSON.parse(body)).toEqual({
    method: 'lifecycle',
    params: {
      namespace: [],
      timestamp: expect.any(Number),
      run_id: 'r',
      data: { event: 'failed', graph_name: 'supervisor', error: 'no model' },
    },
  });
});

test('a namespace that a call of task began is told of by the name of its agent, and by what it was caused', () => {
  const call = { id: 'call-1', name: 'task', args: { subagent_type: 'researcher', description: 'herons' } };
  const told = wireOf(
    event('tasks', { id: 'uuid-1', name: 'tools', input: { tool_call: call } }),
    event('lifecycle', { event: 'started', graph_name: 'tools' }, ['tools:uuid-1']),
    event('lifecycle', { event: 'started', graph_name: 'model' }, ['tools:uuid-1', 'model:uuid-2']),
    event('lifecycle', { event: 'completed', graph_name: 'tools' }, ['tools:uuid-1']),
  );
  expect(told.slice(1)).toEqual([
    [
      'lifecycle',
      'lifecycle',
      'tools:uuid-1',
      { event: 'started', graph_name: 'researcher', cause: { type: 'toolCall', tool_call_id: 'call-1' } },
    ],
    ['lifecycle', 'lifecycle', 'tools:uuid-1/model:uuid-2', { event: 'started', graph_name: 'model' }],
    ['lifecycle', 'lifecycle', 'tools:uuid-1', { event: 'completed', graph_name: 'researcher' }],
  ]);
});

test('a part of the graph whose tool has failed, and no other, is told of as failed', () => {
  const failed = { event: 'tool-error', tool_call_id: 'c', message: 'broken' };
  const asking = { event: 'tool-error', tool_call_id: 'c', message: JSON.stringify([{ id: 'i', value: 'Save?' }]) };
  const ended = (namespace: string[]) => event('lifecycle', { event: 'completed', graph_name: 'tools' }, namespace);
  const told = wireOf(
    event('tools', failed, ['tools:1', 'tools:2']),
    event('tools', asking, ['tools:3']),
    ended(['tools:1', 'tools:2']),
    ended(['tools:1']),
    ended(['tools:3']),
  );
  expect(told.slice(1)).toEqual([
    ['lifecycle', 'lifecycle', 'tools:1/tools:2', { event: 'failed', graph_name: 'tools', error: 'broken' }],
    ['lifecycle', 'lifecycle', 'tools:1', { event: 'completed', graph_name: 'tools' }],
    ['lifecycle', 'lifecycle', 'tools:3', { event: 'completed', graph_name: 'tools' }],
  ]);
});

test('an interrupt is a request for input, once, however often the graph tells of it', () => {
  const interrupt = { id: 'i', value: { question: 'Save?' } };
  expect(
    wireOf(
      event('tools', { event: 'tool-error', tool_call_id: 'c', message: JSON.stringify([interrupt]) }, ['tools:1']),
      event('updates', { node: '__interrupt__', values: [interrupt] }, [], '__interrupt__'),
      event('values', { __interrupt__: [interrupt] }),
      event('values', { messages: [], __interrupt__: [interrupt] }),
    ),
  ).toEqual([
    ['input.requested', 'input', '', { interrupt_id: 'i', payload: { question: 'Save?' } }],
    ['values', 'values', '', { messages: [] }],
  ]);
});

test('a tool that has failed is told of, whatever its message looks like', () => {
  for (const message of ['broken', '[1]', '[]', '[{"id":1}]', '[']) {
    const failed = { event: 'tool-error', tool_call_id: 'c', message };
    expect(wireOf(event('tools', failed))).toEqual([['tools', 'tools', '', failed]]);
  }
});

test('what a tool was called with is an object where it was one', () => {
  const started = (input: unknown) => ({ event: 'tool-started', tool_call_id: 'c', tool_name: 't', input });
  expect(wireOf(...['{"a":1}', 'plain', '7'].map((input) => event('tools', started(input))))).toEqual([
    ['tools', 'tools', '', started({ a: 1 })],
    ['tools', 'tools', '', started('plain')],
    ['tools', 'tools', '', started('7')],
  ]);
});

test('a custom event with a name is on a channel of its own', () => {
  expect(
    wireOf(event('custom', { name: 'progress', payload: 1 }), event('custom', { payload: 2 }), event('other', 3)),
  ).toEqual([
    ['custom', 'custom:progress', '', { name: 'progress', payload: 1 }],
    ['custom', 'custom', '', { payload: 2 }],
    ['other', 'other', '', 3],
  ]);
});

test('an event of the graph is not taken for one of the server', () => {
  const payload = { after: 0, before: 9 };
  expect(wireOf(event('custom', { name: 'missed_events', payload }))).toEqual([
    ['custom', 'custom:graph.missed_events', '', { name: 'graph.missed_events', payload }],
  ]);
});

test('of what has a field that cannot be read, the others are there', () => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  const unreadable = { unreadable: expect.stringContaining('circular') };
  const throwing = (more: object) =>
    Object.defineProperty({ ...more }, 'broken', {
      enumerable: true,
      get: () => {
        throw new Error('gone');
      },
    });
  expect(
    wireOf(
      event('custom', { name: 'progress', payload: circle, none: undefined }),
      event('values', { messages: [new HumanMessage({ id: '1', content: 'Hi' })], circle }),
      event('custom', { payload: circle }),
      event('custom', throwing({})),
      event('custom', throwing({ name: 'progress' })),
      event('custom', [circle]),
    ),
  ).toEqual([
    ['custom', 'custom:progress', '', { name: 'progress', payload: unreadable }],
    [
      'values',
      'values',
      '',
      { messages: [expect.objectContaining({ type: 'human', content: 'Hi' })], circle: unreadable },
    ],
    ['custom', 'custom', '', unreadable],
    ['custom', 'custom', '', { unreadable: 'gone' }],
    ['custom', 'custom:progress', '', { name: 'progress', broken: { unreadable: 'gone' } }],
    ['custom', 'custom', '', unreadable],
  ]);
});

test('what JSON cannot say costs nothing else', () => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  expect(wireOf(event('custom', { payload: 7n }), event('values', { error: new Error('no') }))).toEqual([
    ['custom', 'custom', '', { payload: '7' }],
    ['values', 'values', '', { error: { name: 'Error', message: 'no' } }],
  ]);
  expect(JSON.parse(new RunEvents('r', 's').of(event('values', circle))[0]?.body ?? '')).toMatchObject({
    method: 'values',
    params: { namespace: [], run_id: 'r', data: { unreadable: expect.stringContaining('circular') } },
  });
});
