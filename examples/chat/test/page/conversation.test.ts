import { expect, test } from 'vitest';
import {
  atState,
  type Conversation,
  EMPTY,
  isBusy,
  withoutQuestion,
  withQuestion,
  withRun,
  withState,
} from '../../page/conversation.ts';
import { withEvents } from '../../page/conversation-events.ts';
import { textIn } from '../../page/message.ts';
import { turnsOf } from '../../page/turns.ts';
import { ai, eventsOf, human, pieces, state } from './events.ts';

const started = ['lifecycle', { event: 'running', graph_name: 'supervisor' }] as const;
const completed = ['lifecycle', { event: 'completed' }] as const;
const checkpoint = (id: string) => ['checkpoints', { id }] as const;
const values = (...messages: readonly unknown[]) => ['values', { messages }] as const;

/** What a reader sees of it: the questions, and what was said to each. */
function seen(conversation: Conversation): (readonly [string, string])[] {
  return turnsOf(conversation).map(({ question, answer }) => [
    question === undefined ? '' : textIn(question),
    answer.map(textIn).join(' | '),
  ]);
}

test('an answer is there word by word, and once when its state comes', () => {
  const asked = withQuestion(EMPTY, 'h1', 'Why?');
  const streaming = withEvents(
    asked,
    eventsOf('r1', started, checkpoint('1'), values(human('h1', 'Why?')), ...pieces('a1', ['Be', 'cause'])),
  );
  expect(seen(streaming)).toEqual([['Why?', 'Because']]);
  expect(isBusy(streaming)).toBe(true);
  const done = withEvents(
    streaming,
    eventsOf(
      'r1',
      ['messages', { event: 'message-finish' }, 'model:1'],
      checkpoint('2'),
      values(human('h1', 'Why?'), ai('a1', [{ type: 'text', text: 'Because' }])),
      completed,
    ),
  );
  expect(seen(done)).toEqual([['Why?', 'Because']]);
  expect(isBusy(done)).toBe(false);
  expect(turnsOf(done)[0]?.runId).toBe('r1');
  expect(done.checkpointId).toBe('2');
});

test('of a message that was not taken nothing is left, and what came meanwhile stays', () => {
  const before = withState(EMPTY, state('1', [human('h1', 'Why?'), ai('a1', 'So.')]));
  const asked = withRun(withQuestion(before, 'h2', 'When?'), { status: 'starting' });
  expect(withoutQuestion(asked, asked, before, 'h2')).toBe(before);
  // Another page has asked in the thread.
  const others = withEvents(asked, eventsOf('r2', started, checkpoint('2'), ...pieces('a2', ['Now', '.'])));
  const undone = withoutQuestion(others, asked, before, 'h2');
  expect(seen(undone)).toEqual([['Why?', 'So. | Now.']]);
  expect(undone.run).toEqual({ status: 'running', id: 'r2' });
  const edited = withRun(withQuestion(before, 'h1', 'Who?'), { status: 'starting' });
  const elsewhere = withEvents(edited, eventsOf('r2', ['tools', { event: 'tool-started', tool_call_id: 'c1' }]));
  const kept = withoutQuestion(elsewhere, edited, before, 'h1');
  expect(seen(kept)).toEqual([['Why?', 'So.']]);
  expect(isBusy(kept)).toBe(false);
});

test('what has been given in stays as it is', () => {
  const before = withQuestion(EMPTY, 'h1', 'Why?');
  const copy = structuredClone(before);
  withEvents(before, eventsOf('r1', started, checkpoint('1'), ...pieces('a1', ['Because'])));
  withState(before, state('3', [human('h2', 'x')]));
  expect(before).toEqual(copy);
});

test('a replay of all events on a state of the middle leads to where they lead by themselves', () => {
  const first = eventsOf(
    'r1',
    started,
    checkpoint('1'),
    values(human('h1', 'Why?')),
    ...pieces('a1', ['Because']),
    ['messages', { event: 'message-finish' }, 'model:1'],
    checkpoint('2'),
    values(human('h1', 'Why?'), ai('a1', 'Because')),
    completed,
  );
  const second = eventsOf(
    'r2',
    started,
    checkpoint('3'),
    values(human('h1', 'Why?'), ai('a1', 'Because'), human('h2', 'And?')),
    ...pieces('a2', ['So', ' it', ' is']),
  );
  const loaded = withState(EMPTY, state('3', [human('h1', 'Why?'), ai('a1', 'Because'), human('h2', 'And?')]));
  expect(seen(withEvents(loaded, [...first, ...second]))).toEqual([
    ['Why?', 'Because'],
    ['And?', 'So it is'],
  ]);
  // Nothing of the past is shown again, wherever the replay is.
  for (let count = 0; count <= first.length; count++) {
    expect(seen(withEvents(loaded, first.slice(0, count)))).toEqual([
      ['Why?', 'Because'],
      ['And?', ''],
    ]);
  }
  const runs = turnsOf(withEvents(loaded, [...first, ...second])).map(({ runId }) => runId);
  expect(runs).toEqual(['r1', 'r2']);
});

test('of states that are replayed only the messages are read that are not known whole', () => {
  const loaded = withState(EMPTY, state('3', [human('h1', 'Why?'), ai('a1', 'Because')]));
  const read: string[] = [];
  const watched = (id: string, type: string) => ({
    type,
    id,
    get content() {
      read.push(id);
      return 'Said';
    },
  });
  const replay = (id: string) => [
    checkpoint(id),
    values(watched('h1', 'human'), watched('a1', 'ai'), watched('a0', 'ai')),
  ];
  const replayed = withEvents(loaded, eventsOf('r1', ...replay('1')));
  expect(read).toEqual(['a0']);
  withEvents(replayed, eventsOf('r1', ...replay('2')));
  expect(read).toEqual(['a0']);
  // What is newer than the state that was loaded may say something else of them.
  withEvents(replayed, eventsOf('r1', ...replay('4')));
  expect(read).toEqual(['a0', 'h1', 'a1', 'a0']);
});

test('a state that is loaded while a message streams does not double it', () => {
  const streaming = withEvents(EMPTY, eventsOf('r1', started, checkpoint('1'), ...pieces('a1', ['Be'])));
  const loaded = withState(streaming, state('2', [human('h1', 'Why?'), ai('a1', 'Because')]));
  const rest = pieces('a1', ['cause']).slice(1);
  expect(seen(withEvents(loaded, eventsOf('r1', ...rest)))).toEqual([['Why?', 'Because']]);
});

test('what a branch left behind is not shown', () => {
  const loaded = withState(EMPTY, state('5', [human('h1', 'Which?'), ai('b1', 'This')]));
  const replayed = withEvents(
    loaded,
    eventsOf(
      'r1',
      started,
      checkpoint('1'),
      values(human('h1', 'Why?')),
      ...pieces('a1', ['Because']),
      checkpoint('2'),
      values(human('h1', 'Why?'), ai('a1', 'Because')),
      completed,
    ),
  );
  expect(seen(replayed)).toEqual([['Which?', 'This']]);
});

test('a subagent is found by the call that it works for, and shows what it says and calls', () => {
  const input = { subagent_type: 'researcher', description: 'spool' };
  const call = { type: 'tool_call', id: 'c1', name: 'task', args: input };
  const at = 'tools:9';
  const working = withEvents(
    EMPTY,
    eventsOf(
      'r1',
      started,
      checkpoint('1'),
      values(human('h1', 'Spool?'), ai('a1', [call])),
      ['lifecycle', { event: 'started', cause: { type: 'toolCall', tool_call_id: 'c1' } }, at],
      ['tools', { event: 'tool-started', tool_call_id: 'c1', tool_name: 'task', input }, at],
      ...pieces('s1', ['On ', 'it'], at, 'model:2'),
      [
        'tools',
        { event: 'tool-started', tool_call_id: 'c2', tool_name: 'search', input: { query: 'q' } },
        at,
        'tools:3',
      ],
      [
        'tools',
        { event: 'tool-finished', tool_call_id: 'c2', output: { type: 'tool', content: 'found' } },
        at,
        'tools:3',
      ],
    ),
  );
  expect(working.agents.get('c1')).toEqual(['s1']);
  expect(textIn(working.messages.get('s1') as never)).toBe('On it');
  expect(working.calls.get('c1')).toMatchObject({ name: 'task', input, status: 'running' });
  expect(working.calls.get('c2')).toMatchObject({ name: 'search', status: 'complete', output: 'found' });
  // What a subagent says is no answer.
  expect(seen(working)).toEqual([['Spool?', '']]);
  const done = withEvents(
    working,
    eventsOf('r1', ['tools', { event: 'tool-error', tool_call_id: 'c1', message: 'no' }, at]),
  );
  expect(done.calls.get('c1')).toMatchObject({ status: 'failed', output: 'no' });
});

test('a request is asked for once, and gone when the run goes on', () => {
  const requested = ['input.requested', { interrupt_id: 'i1', payload: { question: 'Save?' } }] as const;
  const asked = withEvents(
    EMPTY,
    eventsOf('r1', started, requested, requested, ['lifecycle', { event: 'interrupted' }]),
  );
  expect(asked.requests).toEqual([{ id: 'i1', namespace: [], payload: { question: 'Save?' } }]);
  expect(withEvents(asked, eventsOf('r2', started)).requests).toEqual([]);
  const loaded = withState(EMPTY, state('1', [], { interrupts: [{ id: 'i2', value: 'x' }] }));
  expect(loaded.requests).toEqual([{ id: 'i2', namespace: [], payload: 'x' }]);
});

test('what was said when a run was stopped stays after its question, until that is answered anew', () => {
  const cut = withEvents(
    EMPTY,
    eventsOf('r1', started, checkpoint('1'), values(human('h1', 'Why?')), ...pieces('a1', ['Half']), [
      'lifecycle',
      { event: 'interrupted', error: 'cancelled' },
    ]),
  );
  expect(seen(cut)).toEqual([['Why?', 'Half']]);
  expect(cut.messages.get('a1')?.state).toBe('cut');
  expect(turnsOf(cut)[0]).toMatchObject({ runId: 'r1', end: { status: 'interrupted', error: 'cancelled' } });
  expect(cut.run).toEqual({ status: 'interrupted', id: 'r1', error: 'cancelled' });
  const further = withEvents(
    cut,
    eventsOf('r2', started, checkpoint('2'), values(human('h1', 'Why?'), human('h2', 'Well?'), ai('a2', 'Whole'))),
  );
  expect(seen(further)).toEqual([
    ['Why?', 'Half'],
    ['Well?', 'Whole'],
  ]);
  const anew = withEvents(
    cut,
    eventsOf('r2', started, checkpoint('2'), values(human('h1', 'Why?'), ai('a2', 'Whole'))),
  );
  expect(seen(anew)).toEqual([['Why?', 'Whole']]);
});

test('a failed run says why', () => {
  const failed = withEvents(EMPTY, eventsOf('r1', started, ['lifecycle', { event: 'failed', error: 'no model' }]));
  expect(failed.run).toEqual({ status: 'failed', id: 'r1', error: 'no model' });
  expect(isBusy(withRun(failed, { status: 'starting' }))).toBe(true);
});

test('a turn knows the run that failed for it, also when others have followed and on the state that they led to', () => {
  const question = values(human('h1', 'Why?'));
  const failed = eventsOf('r1', started, checkpoint('1'), question, [
    'lifecycle',
    { event: 'failed', error: 'no model' },
  ]);
  const h2 = human('h2', 'Well?');
  const answered = eventsOf(
    'r2',
    started,
    checkpoint('3'),
    values(human('h1', 'Why?'), h2, ai('a2', 'So.')),
    completed,
  );
  // This one has left nothing in the thread.
  const refused = eventsOf('r3', started, ['lifecycle', { event: 'failed', error: 'no store' }]);
  const ends = (conversation: Conversation) =>
    turnsOf(conversation).map(({ runId, end }) => [runId, end?.status, end?.error]);
  expect(ends(withEvents(withQuestion(EMPTY, 'h1', 'Why?'), failed))).toEqual([['r1', 'failed', 'no model']]);
  const both = [
    ['r1', 'failed', 'no model'],
    ['r2', 'completed', undefined],
  ];
  expect(ends(withEvents(EMPTY, [...failed, ...answered, ...refused]))).toEqual(both);
  const loaded = withState(EMPTY, state('3', [human('h1', 'Why?'), h2, ai('a2', 'So.')], { run: 'r2' }));
  expect(ends(withEvents(loaded, [...failed, ...answered, ...refused]))).toEqual(both);
  // Where no events are kept any more.
  const forgotten = withState(EMPTY, state('1', [human('h1', 'Why?')], { run: 'r1' }));
  expect(ends(forgotten)).toEqual([['r1', undefined, undefined]]);
});

test('a turn that was answered by one try has nothing of another that failed', () => {
  const why = human('h1', 'Why?');
  const answered = eventsOf(
    'r1',
    started,
    checkpoint('1'),
    values(why),
    checkpoint('2'),
    values(why, ai('a1', 'So.')),
    completed,
  );
  const failed = eventsOf('r2', started, checkpoint('3'), values(why), ['lifecycle', { event: 'failed', error: 'no' }]);
  const tried = withEvents(EMPTY, [...answered, ...failed]);
  expect(turnsOf(tried)[0]).toMatchObject({ answer: [], runId: 'r2', end: { status: 'failed' } });
  const past = atState(tried, state('2', [why, ai('a1', 'So.')]));
  expect(turnsOf(past)[0]).toMatchObject({ runId: 'r1', end: { status: 'completed' } });
});

test('a message that is said anew takes the place of what followed', () => {
  const loaded = withState(EMPTY, state('4', [human('h1', 'a'), ai('a1', 'b'), human('h2', 'c'), ai('a2', 'd')]));
  expect(seen(withQuestion(loaded, 'h2', 'C'))).toEqual([
    ['a', 'b'],
    ['C', ''],
  ]);
  expect(seen(withQuestion(loaded, 'h3', 'e'))).toHaveLength(3);
});

test('an earlier state is seen as it was', () => {
  const now = withEvents(
    EMPTY,
    eventsOf(
      'r1',
      started,
      checkpoint('2'),
      values(human('h1', 'a'), ai('a1', 'b'), human('h2', 'c')),
      ...pieces('a2', ['d']),
    ),
  );
  const past = atState(now, state('1', [human('h1', 'a'), ai('a1', 'b')]));
  expect(seen(past)).toEqual([['a', 'b']]);
  expect(isBusy(past)).toBe(false);
});

test('events that say nothing sensible change nothing', () => {
  const known = withEvents(EMPTY, eventsOf('r1', started, checkpoint('1'), ...pieces('a1', ['x'])));
  const odd = eventsOf(
    'r1',
    ['messages', {}, 'model:1'],
    ['messages', { event: 'content-block-delta', index: -1, delta: null }, 'model:1'],
    ['messages', { event: 'content-block-delta', index: 1e9, delta: { type: 'text-delta', text: 'y' } }, 'model:1'],
    ['messages', { event: 'content-block-delta', index: 0, delta: { type: 'text-delta', text: 'y' } }, 'model:other'],
    ['tools', { event: 'tool-finished' }],
    ['values', { messages: 'none' }],
    ['values', {}],
    ['input.requested', { interrupt_id: 1 }],
    ['lifecycle', { event: 'something new' }],
    ['something new', { a: 1 }],
  );
  expect(withEvents(known, odd)).toEqual(known);
});
