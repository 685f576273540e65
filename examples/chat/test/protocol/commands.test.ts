import { expect, test } from 'vitest';
import { ChatServer } from '../support/chat-server.ts';
import { untilEnd } from '../support/events.ts';

test('an answer that is neither of the decisions is refused, and the question stays', async () => {
  await using chat = await ChatServer.start();
  const asking = await untilEnd(chat, 't', await chat.say('t', 'Save a note: buy milk'));
  const interrupt_id = asking.find(({ method }) => method === 'input.requested')?.params.data.interrupt_id;
  const decisions = 'input.respond: Expected a response with a decision that is one of ["approve","decline"]';
  for (const [response, message] of [
    [undefined, 'input.respond: Expected a response'],
    [null, decisions],
    ['approve', decisions],
    [{}, decisions],
    [{ decision: 'x' }, decisions],
  ] as const) {
    expect(await chat.command('t', 'input.respond', { interrupt_id, response })).toMatchObject({
      error: 'invalid_argument',
      message,
    });
  }
  const answer = await chat.command('t', 'input.respond', { interrupt_id, response: { decision: 'approve' } });
  await untilEnd(chat, 't', (answer.result as { run_id: string }).run_id);
  expect(chat.notes).toEqual(['buy milk']);
});

test('an input that no graph can begin with is refused, and answers what waits for one', async () => {
  await using chat = await ChatServer.start();
  const object =
    'run.start: params.input: Expected an object such as {"messages": [{"role": "user", "content": "Hello"}]}';
  for (const [input, message] of [
    [undefined, object],
    [5, object],
    ['Hello', object],
    [[], object],
    [null, object],
  ] as const) {
    expect(await chat.command('t', 'run.start', { input })).toMatchObject({ error: 'invalid_argument', message });
  }
  await untilEnd(chat, 't', await chat.say('t', 'Save a note: buy milk'));
  const run = await chat.command('t', 'run.start', { input: 'no' });
  const events = await untilEnd(chat, 't', (run.result as { run_id: string }).run_id);
  expect(events.at(-1)?.params.data.event).toBe('completed');
  expect(await chat.command('t', 'run.start', { input: null })).toMatchObject({ type: 'success' });
});

test('a run is told where to begin, and what becomes of the one before it, by the names of other servers as well', async () => {
  await using chat = await ChatServer.start();
  await untilEnd(chat, 't', await chat.say('t', 'one'));
  const state = (await (await fetch(`${chat.url}/api/threads/t/state`)).json()) as {
    checkpoint: { checkpoint_id: string };
  };
  const { checkpoint_id } = state.checkpoint;
  await untilEnd(chat, 't', await chat.say('t', 'two'));
  await untilEnd(chat, 't', await chat.say('t', 'three', { checkpoint_id }));
  const { values } = (await (await fetch(`${chat.url}/api/threads/t/state`)).json()) as {
    values: { messages: { type: string; content: string }[] };
  };
  expect(values.messages.filter(({ type }) => type === 'human').map(({ content }) => content)).toEqual([
    'one',
    'three',
  ]);
  const input = { messages: 'four' };
  expect(await chat.command('t', 'run.start', { input, checkpoint_id: 'none' })).toMatchObject({
    error: 'no_such_checkpoint',
  });
  expect(await chat.command('t', 'run.start', { input, multitask_strategy: 'rollback' })).toMatchObject({
    error: 'not_supported',
  });
});

test('an answer that brings what cannot be a message is refused, and the question stays', async () => {
  await using chat = await ChatServer.start();
  const asking = await untilEnd(chat, 't', await chat.say('t', 'Save a note: buy milk'));
  const interrupt_id = asking.find(({ method }) => method === 'input.requested')?.params.data.interrupt_id;
  const response = { decision: 'approve' };
  for (const update of [
    { messages: [{ role: 'nope', content: 'x' }] },
    { messages: [null] },
    [
      ['messages', []],
      ['messages', [{}]],
    ],
    5,
  ]) {
    expect(await chat.command('t', 'input.respond', { interrupt_id, response, update })).toMatchObject({
      error: 'invalid_argument',
      message: expect.stringMatching(/^input\.respond: (params\.)+update/),
    });
  }
  expect((await fetch(`${chat.url}/api/threads/t/state`)).status).toBe(200);
  const update = [['messages', [{ role: 'user', content: 'and eggs' }]]];
  const answer = await chat.command('t', 'input.respond', { interrupt_id, response, update });
  await untilEnd(chat, 't', (answer.result as { run_id: string }).run_id);
  expect(await (await fetch(`${chat.url}/api/threads/t/state`)).text()).toContain('and eggs');
  expect(chat.notes).toEqual(['buy milk']);
});
