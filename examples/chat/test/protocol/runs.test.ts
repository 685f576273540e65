import { expect, test } from 'vitest';
import { memoryStorage } from '../../server/storage/storage.ts';
import { ChatServer } from '../support/chat-server.ts';
import { Deferred } from '../support/deferred.ts';
import { courseOf, eventsOf, isEnd, type SeenEvent, streamedText, untilEnd } from '../support/events.ts';
import { FailingModel, Gate, HeldModel, TwoNotesModel } from '../support/held-model.ts';

const said = (text: string) => ({ input: { messages: [{ role: 'user', content: text }] } });

test('a run is told of from its beginning to one end', async () => {
  await using chat = await ChatServer.start();
  const runId = await chat.say('t', 'What is a heron?');
  expect(courseOf(await untilEnd(chat, 't', runId))).toEqual([`${runId} running`, `${runId} completed`]);
});

test('a run is refused where it is to be, while another is under way', async () => {
  const gate = new Gate();
  await using chat = await ChatServer.start({ chatModel: new HeldModel(gate) });
  const first = await chat.say('t', 'What is a heron?');
  await gate.reached;
  expect(await chat.command('t', 'run.start', { ...said('Hello'), multitaskStrategy: 'reject' })).toEqual({
    type: 'error',
    id: 1,
    error: 'invalid_argument',
    message: `Thread t has the run ${first} under way; wait for its end, or cancel it.`,
  });
  gate.open();
  expect(courseOf(await untilEnd(chat, 't', first))).toEqual([`${first} running`, `${first} completed`]);
});

test('a run that is cancelled ends, and the thread can be used', async () => {
  const gate = new Gate();
  await using chat = await ChatServer.start({ chatModel: new HeldModel(gate) });
  const runId = await chat.say('t', 'What is a heron?');
  await gate.reached;
  expect((await chat.post(`/threads/t/runs/${runId}/cancel`, {})).status).toBe(202);
  const events = await untilEnd(chat, 't', runId);
  expect(events.at(-1)?.params.data).toEqual({ event: 'interrupted', graph_name: 'supervisor', error: 'cancelled' });
  gate.open();
  const next = await chat.say('t', 'What is an otter?');
  expect(courseOf(await untilEnd(chat, 't', next)).at(-1)).toBe(`${next} completed`);
});

test('a run that nobody knows cannot be cancelled', async () => {
  await using chat = await ChatServer.start();
  const answer = await chat.post('/threads/t/runs/nobody/cancel', {});
  expect([answer.status, await answer.json()]).toEqual([
    404,
    {
      error: 'no_such_run',
      message: 'Thread t has no run nobody under way.',
      detail: 'Thread t has no run nobody under way.',
    },
  ]);
});

test('a model that fails ends the run, says why, and leaves the thread as it was', async () => {
  await using chat = await ChatServer.start({ chatModel: new FailingModel() });
  const runId = await chat.say('t', 'What is a heron?');
  const events = await untilEnd(chat, 't', runId);
  expect(events.at(-1)?.params.data).toEqual({
    event: 'failed',
    graph_name: 'supervisor',
    error: 'The model is on strike.',
  });
  const again = await chat.say('t', 'What is a heron?');
  expect(courseOf(await untilEnd(chat, 't', again)).at(-1)).toBe(`${again} failed`);
});

test('messages that no graph takes are refused, and the thread can be used', async () => {
  await using chat = await ChatServer.start();
  const messages = [{ role: 'nobody', content: 7 }];
  expect(await chat.command('t', 'run.start', { input: { messages } })).toMatchObject({
    error: 'invalid_argument',
    message: expect.stringMatching(/^run\.start: params\.input\.messages\.0: Expected /),
  });
  const next = await chat.say('t', 'Hello');
  expect(courseOf(await untilEnd(chat, 't', next)).at(-1)).toBe(`${next} completed`);
  expect(chat.lines).toEqual([]);
});

test.each([
  ['nothing was left', { decision: 'approve', text: ' ' }],
  ['somebody has declined', { decision: 'decline' }],
])('a note of which %s is not saved', async (_which, response) => {
  await using chat = await ChatServer.start();
  const asking = await untilEnd(chat, 't', await chat.say('t', 'Save a note: buy milk'));
  const interrupt_id = asking.find(({ method }) => method === 'input.requested')?.params.data.interrupt_id;
  const answer = await chat.command('t', 'input.respond', {
    interrupt_id,
    response,
  });
  const events = await untilEnd(chat, 't', (answer.result as { run_id: string }).run_id);
  expect(chat.notes).toEqual([]);
  // A page is told that it was declined, and not only by words.
  const { params } = events.findLast(({ params: { data } }) => data.event === 'tool-finished') as SeenEvent;
  expect(params.data.output).toMatchObject({ artifact: { declined: true } });
});

test('a run asks before it saves, and does so when it is approved, with the text that was approved', async () => {
  await using chat = await ChatServer.start();
  const asking = await untilEnd(chat, 't', await chat.say('t', 'Save a note: buy milk'));
  expect(asking.at(-1)?.params.data.event).toBe('interrupted');
  const requests = asking.filter(({ method }) => method === 'input.requested');
  expect(requests.map(({ params }) => params.data)).toEqual([
    {
      interrupt_id: expect.any(String),
      payload: {
        action: 'save_note',
        question: 'Save this note?',
        text: 'buy milk',
        decisions: ['approve', 'decline'],
      },
    },
  ]);
  // The tool that asks has not failed.
  expect(asking.filter(({ params }) => params.data.event === 'tool-error')).toEqual([]);
  expect(chat.notes).toEqual([]);

  const interrupt_id = requests[0]?.params.data.interrupt_id;
  const answer = await chat.command('t', 'input.respond', {
    interrupt_id,
    namespace: [],
    response: { decision: 'approve', text: 'buy bread' },
  });
  const { run_id } = answer.result as { run_id: string };
  await untilEnd(chat, 't', run_id);
  expect(chat.notes).toEqual(['buy bread']);

  expect(await chat.command('t', 'input.respond', { interrupt_id, response: {} })).toMatchObject({
    error: 'no_such_interrupt',
    message: `Thread t does not wait for an answer to "${String(interrupt_id)}".`,
  });
});

test('a run that asks for two approvals takes them together, or one after the other', async () => {
  await using chat = await ChatServer.start({ chatModel: new TwoNotesModel() });
  const ask = async (threadId: string) => {
    const events = await untilEnd(chat, threadId, await chat.say(threadId, 'Hello'));
    const requests = events.filter(({ method }) => method === 'input.requested').map(({ params }) => params.data);
    expect(requests.map(({ payload }) => (payload as { text: string }).text).sort()).toEqual(['one', 'two']);
    return requests.map(({ interrupt_id }) => ({ interrupt_id, response: { decision: 'approve' } }));
  };
  const respond = async (threadId: string, params: unknown) => {
    const answer = await chat.command(threadId, 'input.respond', params);
    expect(answer).toMatchObject({ type: 'success' });
    const { result } = answer;
    return untilEnd(chat, threadId, (result as { run_id: string }).run_id);
  };

  const together = await respond('together', { responses: await ask('together') });
  expect(together.at(-1)?.params.data.event).toBe('completed');
  expect(chat.notes.splice(0).sort()).toEqual(['one', 'two']);

  const [first, second] = await ask('apart');
  const half = await respond('apart', first);
  expect(half.at(-1)?.params.data.event).toBe('interrupted');
  const whole = await respond('apart', second);
  expect(whole.at(-1)?.params.data.event).toBe('completed');
  expect(chat.notes.sort()).toEqual(['one', 'two']);
});

test('a message to a run that asks is its answer, and no approval', async () => {
  await using chat = await ChatServer.start();
  await untilEnd(chat, 't', await chat.say('t', 'Save a note: buy milk'));
  await untilEnd(chat, 't', await chat.say('t', 'Do what you like'));
  expect(chat.notes).toEqual([]);
  const state = (await (await fetch(`${chat.url}/api/threads/t/state`)).json()) as {
    next: string[];
    values: { messages: { content: unknown }[] };
  };
  expect(state.next).toEqual([]);
  expect(JSON.stringify(state.values.messages.at(-1)?.content)).toContain(
    'Nothing was saved. The user said instead: Do what you like',
  );
});

test('two answers at once go each to its question', async () => {
  await using chat = await ChatServer.start({ chatModel: new TwoNotesModel() });
  const asking = await untilEnd(chat, 't', await chat.say('t', 'Save two notes'));
  const requests = asking.flatMap(({ method, params: { data } }) => (method === 'input.requested' ? [data] : []));
  const responses = requests.map(({ interrupt_id, payload }) => {
    const isFirst = (payload as { text: string }).text === 'one';
    return { interrupt_id, namespace: [], response: { decision: isFirst ? 'approve' : 'decline' } };
  });
  expect(responses).toHaveLength(2);
  const answer = await chat.command('t', 'input.respond', { responses });
  await untilEnd(chat, 't', (answer.result as { run_id: string }).run_id);
  expect(chat.notes).toEqual(['one']);
});

test('a run without input goes on from the state of the thread', async () => {
  await using chat = await ChatServer.start();
  await chat.post('/threads/t/state', { values: { messages: [{ type: 'human', content: 'Hello' }] } });
  const answer = await chat.command('t', 'run.start', {});
  const events = await untilEnd(chat, 't', (answer.result as { run_id: string }).run_id);
  expect(streamedText(events, () => true)).toContain('Hello. Ask about the documents');
});

test('a run from an earlier checkpoint begins a branch', async () => {
  await using chat = await ChatServer.start();
  await untilEnd(chat, 't', await chat.say('t', 'What is a heron?'));
  const [turn] = (await (await chat.post('/threads/t/history', { limit: 1 })).json()) as {
    checkpoint: { checkpoint_id: string };
  }[];
  await untilEnd(chat, 't', await chat.say('t', 'What is an otter?'));
  const branch = await chat.say('t', 'Hello', {
    config: { configurable: { checkpoint_id: turn?.checkpoint.checkpoint_id } },
  });
  await untilEnd(chat, 't', branch);
  const [head] = (await (await chat.post('/threads/t/history', { limit: 1 })).json()) as [
    { values: { messages: { content: string }[] }; metadata: { run_id: string } },
  ];
  const texts = JSON.stringify(head.values.messages);
  expect([texts.includes('heron'), texts.includes('What is an otter')]).toEqual([true, false]);
  expect(head.metadata.run_id).toBe(branch);

  expect(
    await chat.command('t', 'run.start', { ...said('Hello'), config: { configurable: { checkpoint_id: 'none' } } }),
  ).toMatchObject({
    error: 'no_such_checkpoint',
    message: 'Thread t has no checkpoint none.',
  });
});

test('a run is refused in a thread that there is not, where that is asked for, and begins it otherwise', async () => {
  await using chat = await ChatServer.start();
  expect(await chat.command('t', 'run.start', { ...said('Hello'), ifNotExists: 'reject' })).toEqual({
    type: 'error',
    id: 1,
    error: 'no_such_thread',
    message: 'Thread t has no state; it was deleted, or has never been.',
  });
  expect((await fetch(`${chat.url}/api/threads/t/state`)).status).toBe(404);
  const [first, second] = [{ ifNotExists: 'create' }, { ifNotExists: 'reject' }];
  await untilEnd(chat, 't', await chat.say('t', 'Hello', first));
  await untilEnd(chat, 't', await chat.say('t', 'Hello again', second));
  expect((await fetch(`${chat.url}/api/threads/t`, { method: 'DELETE' })).status).toBe(204);
  expect(await chat.command('t', 'run.start', { ...said('Hello'), ...second })).toMatchObject({
    error: 'no_such_thread',
  });
});

test('a thread is called by the first message of its newest branch', async () => {
  await using chat = await ChatServer.start();
  const titles = async (): Promise<string[]> => {
    const threads = (await (await fetch(`${chat.url}/api/threads`)).json()) as { title: string }[];
    return threads.map(({ title }) => title);
  };
  const say = async (content: string, checkpointId?: string): Promise<void> => {
    const input = { messages: [{ role: 'user', id: 'first', content }] };
    const config = checkpointId === undefined ? {} : { configurable: { checkpoint_id: checkpointId } };
    await untilEnd(chat, 't', await chat.say('t', content, { input, config }));
  };
  await say('Hello');
  const states = (await (await chat.post('/threads/t/history', {})).json()) as {
    checkpoint: { checkpoint_id: string };
    values: { messages?: unknown[] };
  }[];
  const [end] = states;
  const asked = states.find(({ values }) => values.messages?.length === 1);
  await say('Hello again', asked?.checkpoint.checkpoint_id);
  expect(await titles()).toEqual(['Hello again']);
  const config = { configurable: { checkpoint_id: end?.checkpoint.checkpoint_id } };
  await untilEnd(chat, 't', await chat.say('t', 'Thanks', { config }));
  expect(await titles()).toEqual(['Hello']);
});

test('a thread that is deleted while it runs is gone, and its reader sees the next run of that name', async () => {
  const gate = new Gate();
  await using chat = await ChatServer.start({ chatModel: new HeldModel(gate) });
  const reader = eventsOf(chat, 't', { channels: ['lifecycle'], namespaces: [[]], depth: 0 });
  const first = await chat.say('t', 'What is a heron?');
  expect((await reader.next()).value?.params.run_id).toBe(first);
  await gate.reached;
  expect((await fetch(`${chat.url}/api/threads/t`, { method: 'DELETE' })).status).toBe(204);
  expect((await fetch(`${chat.url}/api/threads/t/state`)).status).toBe(404);
  expect((await fetch(`${chat.url}/api/threads/t`, { method: 'DELETE' })).status).toBe(204);
  gate.open();
  const second = await chat.say('t', 'What is an otter?');
  for await (const event of reader) if (isEnd(event) && event.params.run_id === second) break;
  const state = await (await fetch(`${chat.url}/api/threads/t/state`)).text();
  expect(state).not.toContain('What is a heron?');
});

test('a run whose events cannot be stored is logged, and its thread is told as soon as that can be done', async () => {
  const storage = memoryStorage({ renewMs: 20 });
  const { append } = storage.sessions;
  let isFull = false;
  storage.sessions.append = async (threadId, events) => {
    isFull ||= events.some(({ channel }) => channel === 'tools');
    if (isFull) throw new Error('disk full');
    return append.call(storage.sessions, threadId, events);
  };
  const logged = new Deferred<string>();
  await using chat = await ChatServer.start({ storage, log: logged.resolve });
  const runId = await chat.say('t', 'What is a heron?');
  expect(await logged.promise).toBe(`run ${runId} of thread t cannot be told of: disk full`);
  storage.sessions.append = append;
  const events = await untilEnd(chat, 't', runId);
  expect(events.at(-1)?.params.data).toEqual({
    event: 'failed',
    graph_name: 'supervisor',
    error: 'Its events could not be kept.',
  });
  // It is released after that.
  const next = await chat.say('t', 'Hello');
  expect(courseOf(await untilEnd(chat, 't', next)).at(-1)).toBe(`${next} completed`);
});
