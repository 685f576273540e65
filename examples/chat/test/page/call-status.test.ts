import { expect, test } from 'vitest';
import { callStatus } from '../../page/call-status.ts';
import { type Conversation, EMPTY, withRun, withState } from '../../page/conversation.ts';
import { withEvents } from '../../page/conversation-events.ts';
import { eventsOf, state } from './events.ts';

const started = ['tools', { event: 'tool-started', tool_call_id: 'c1', tool_name: 'task', input: {} }] as const;
const asked = ['input.requested', { interrupt_id: 'i1', payload: {} }] as const;
const running = ['lifecycle', { event: 'running' }] as const;
const interrupted = ['lifecycle', { event: 'interrupted', error: 'cancelled' }] as const;

const statusOf = (conversation: Conversation, isLive = true, id = 'c1') =>
  callStatus(conversation.calls.get(id), conversation, isLive);

test('a call of the last turn is worked on, waits for an answer, or was stopped', () => {
  const atWork = withEvents(EMPTY, eventsOf('r1', running, started));
  expect(statusOf(atWork)).toBe('running');
  expect(statusOf(withEvents(atWork, eventsOf('r1', asked, interrupted)))).toBe('waiting');
  expect(statusOf(withEvents(atWork, eventsOf('r1', interrupted)))).toBe('stopped');
});

test('a call that an earlier turn has left stays stopped while another run is at work, or asks', () => {
  const left = withEvents(EMPTY, eventsOf('r1', running, started, interrupted));
  expect(statusOf(withRun(left, { status: 'starting' }), false)).toBe('stopped');
  const later = withEvents(left, eventsOf('r2', running));
  expect(statusOf(later, false)).toBe('stopped');
  // So does one that no event has told of, only a state.
  expect(statusOf(later, false, 'c0')).toBe('stopped');
  expect(statusOf(withEvents(later, eventsOf('r2', asked, interrupted)), false)).toBe('stopped');
});

test('a call that was done with something else than it was called with says so', () => {
  const artifact = { input: { text: 'buy bread' } };
  const message = { type: 'tool', id: 't1', tool_call_id: 'c1', content: 'Saved', artifact };
  const finished = ['tools', { event: 'tool-finished', tool_call_id: 'c1', output: message }] as const;
  for (const done of [withEvents(EMPTY, eventsOf('r1', started, finished)), withState(EMPTY, state('1', [message]))])
    expect(done.calls.get('c1')).toMatchObject({
      status: 'complete',
      output: 'Saved',
      doneWith: { text: 'buy bread' },
    });
});

test('a call that has an outcome keeps it, whatever the agent does', () => {
  const finished = ['tools', { event: 'tool-finished', tool_call_id: 'c1', output: 'x' }] as const;
  const failed = ['tools', { event: 'tool-error', tool_call_id: 'c1', message: 'no' }] as const;
  expect(statusOf(withEvents(EMPTY, eventsOf('r1', running, started, finished)))).toBe('complete');
  expect(statusOf(withEvents(EMPTY, eventsOf('r1', running, started, failed)), false)).toBe('failed');
  // What the reader has declined is told by the tool, beside its words.
  const message = { type: 'tool', id: 't1', tool_call_id: 'c1', content: 'no', artifact: { declined: true } };
  const declined = ['tools', { event: 'tool-finished', tool_call_id: 'c1', output: message }] as const;
  expect(statusOf(withEvents(EMPTY, eventsOf('r1', running, started, declined)))).toBe('declined');
  expect(statusOf(withState(EMPTY, state('1', [message])))).toBe('declined');
  expect(statusOf(withState(EMPTY, state('1', [{ ...message, artifact: { declined: false } }])))).toBe('complete');
  expect(statusOf(withState(EMPTY, state('1', [{ ...message, status: 'error' }])))).toBe('failed');
});
