import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memoryStorage } from '../../server/storage/storage.ts';
import { ChatServer } from '../support/chat-server.ts';

let chat: ChatServer;
beforeAll(async () => {
  chat = await ChatServer.start();
});
afterAll(() => chat[Symbol.asyncDispose]());

const answerOf = async (answer: Response) => [answer.status, await answer.json()];

describe('a body that is not as it has to be is refused with a list of what is wrong', () => {
  const cases: [string, string, unknown, object[]][] = [
    [
      'no JSON',
      '/threads/t/stream',
      '{"channels":',
      [{ loc: ['body'], type: 'json_invalid', msg: expect.stringContaining('Invalid JSON') }],
    ],
    ['no object', '/threads/t/stream', '[]', [{ loc: ['body'], type: 'invalid_type' }]],
    [
      'channels that are no list',
      '/threads/t/stream',
      { channels: 'values' },
      [{ loc: ['body', 'channels'], type: 'invalid_type' }],
    ],
    [
      'an empty list of channels',
      '/threads/t/stream',
      { channels: [] },
      [{ loc: ['body', 'channels'], type: 'too_small' }],
    ],
    [
      'a name that is no text',
      '/threads/t/stream',
      { channels: ['values', 1] },
      [{ loc: ['body', 'channels', 1], type: 'invalid_type' }],
    ],
    ['a negative depth', '/threads/t/stream', { depth: -1 }, [{ loc: ['body', 'depth'], type: 'too_small' }]],
    [
      'two mistakes',
      '/threads/t/stream',
      { depth: 'x', since: 1.5 },
      [{ loc: ['body', 'depth'] }, { loc: ['body', 'since'] }],
    ],
    [
      'states in a way that nobody knows',
      '/threads/t/stream',
      { values: 'last' },
      [{ loc: ['body', 'values'], type: 'invalid_value' }],
    ],
    ['no page of the history', '/threads/t/history', { limit: 0 }, [{ loc: ['body', 'limit'], type: 'too_small' }]],
    ['too long a page', '/threads/t/history', { limit: 1_001 }, [{ loc: ['body', 'limit'], type: 'too_big' }]],
    [
      'values that are no object',
      '/threads/t/state',
      { values: 'x' },
      [{ loc: ['body', 'values'], type: 'invalid_type' }],
    ],
    [
      'a checkpoint that no store can look for',
      '/threads/t/history',
      { checkpoint: { checkpoint_id: 'a\0', checkpoint_ns: '\0' } },
      [
        { loc: ['body', 'checkpoint', 'checkpoint_id'], msg: 'Expected no NUL' },
        { loc: ['body', 'checkpoint', 'checkpoint_ns'], msg: 'Expected no NUL' },
      ],
    ],
    ['a page before such', '/threads/t/history', { before: '\0' }, [{ loc: ['body', 'before'] }]],
    [
      'an id that nobody can have',
      '/threads/a%2Fb/history',
      {},
      [{ loc: ['path', 'thread_id'], type: 'string_pattern_mismatch' }],
    ],
    ['an id that is no name for an object', '/threads/__proto__/history', {}, [{ loc: ['path', 'thread_id'] }]],
    ['another such', '/threads/constructor/history', {}, [{ loc: ['path', 'thread_id'] }]],
  ];
  test.each(cases)('%s', async (_, path, body, detail) => {
    const answer = await chat.post(path, body);
    expect(await answerOf(answer)).toEqual([
      422,
      expect.objectContaining({ detail: detail.map((each) => expect.objectContaining(each)) }),
    ]);
  });
});

test('a command that is none is refused in the form of the protocol, and in that of the interface', async () => {
  const answer = await chat.post('/threads/t/commands', { id: -1 });
  expect(await answerOf(answer)).toEqual([
    422,
    {
      type: 'error',
      id: null,
      error: 'invalid_argument',
      message: expect.stringContaining('body.id'),
      detail: [expect.objectContaining({ loc: ['body', 'id'] }), expect.objectContaining({ loc: ['body', 'method'] })],
    },
  ]);
});

describe('a command that cannot be done is answered with its code', () => {
  const cases: [string, unknown, string][] = [
    ['run.stop', {}, 'unknown_command'],
    ['subscription.subscribe', {}, 'unknown_command'],
    ['run.start', { input: null, config: 'x' }, 'invalid_argument'],
    ['run.start', { input: {}, multitaskStrategy: 'later' }, 'invalid_argument'],
    ['run.start', { input: {}, multitaskStrategy: 'rollback' }, 'not_supported'],
    ['run.start', { input: {}, ifNotExists: 'later' }, 'invalid_argument'],
    ['run.start', { input: {}, ifNotExists: 'reject' }, 'no_such_thread'],
    ['run.start', { input: {}, if_not_exists: 'reject' }, 'no_such_thread'],
    ['run.start', { input: {}, checkpoint_id: '\0' }, 'invalid_argument'],
    ['run.start', { input: {}, config: { configurable: { checkpoint_id: '\0' } } }, 'invalid_argument'],
    ['input.respond', {}, 'invalid_argument'],
    ['input.respond', { responses: [] }, 'invalid_argument'],
    ['input.respond', { interrupt_id: 'none' }, 'no_such_interrupt'],
    ['input.respond', { interrupt_id: 'none', response: 1 }, 'no_such_interrupt'],
    ['input.respond', { interrupt_id: 'none', response: 1, goto: null }, 'no_such_interrupt'],
    ['input.respond', { interrupt_id: 'none', response: 1, goto: 'model' }, 'not_supported'],
  ];
  test.each(cases)('%s %j', async (method, params, error) => {
    expect(await chat.command('commands', method, params)).toMatchObject({
      type: 'error',
      id: 1,
      error,
      message: expect.any(String),
    });
  });
});

test('a command that fails in a way that nobody has foreseen is logged, and its reason is not told', async () => {
  const storage = memoryStorage();
  storage.sessions.claim = async () => {
    throw new Error('secret address');
  };
  await using broken = await ChatServer.start({ storage });
  expect(await broken.command('t', 'run.start', { input: {} })).toEqual({
    type: 'error',
    id: 1,
    error: 'unknown_error',
    message: 'The command failed; the log of the server says why.',
  });
  expect(broken.lines).toEqual([expect.stringMatching(/^run\.start in thread t: Error: secret address\n/)]);
});

test('a run whose id no run can have is not looked for', async () => {
  const storage = memoryStorage();
  storage.sessions.cancel = async () => {
    throw new Error('PostgreSQL takes no NUL');
  };
  await using chat = await ChatServer.start({ storage });
  expect((await chat.post('/threads/t/runs/a%00b/cancel', {})).status).toBe(404);
});

test('a body of another type is refused, as pages elsewhere could send it unasked', async () => {
  const answer = await chat.post('/threads/t/commands', '{}', { 'content-type': 'text/plain' });
  expect(answer.status).toBe(415);
});

test('a body is taken up to 4 MiB', async () => {
  const bodyOf = (bytes: number) => {
    const frame = JSON.stringify({ id: 1, method: 'run.stop', params: { text: '' } });
    return JSON.stringify({ id: 1, method: 'run.stop', params: { text: 'x'.repeat(bytes - frame.length) } });
  };
  const max = 4 * 1_024 * 1_024;
  const statuses = [];
  for (const bytes of [max - 1, max, max + 1])
    statuses.push((await chat.post('/threads/t/commands', bodyOf(bytes))).status);
  expect(statuses).toEqual([200, 200, 413]);
});

test.each([
  ['no body', {}],
  ['no body and the type of JSON', { 'content-type': 'application/json' }],
  ['a page of the chat and no body', { origin: 'CHAT' }],
])('a POST with %s sets the first state of a thread', async (title, given) => {
  const path = `${chat.url}/api/threads/${title.replaceAll(' ', '-')}/state`;
  const headers = { ...given, ...('origin' in given && { origin: chat.url }) } as Record<string, string>;
  expect((await fetch(path)).status).toBe(404);
  const [status, state] = await answerOf(await fetch(path, { method: 'POST', headers }));
  expect([status, state]).toEqual([200, expect.objectContaining({ checkpoint: expect.any(Object) })]);
  expect(await answerOf(await fetch(path))).toEqual([200, state]);
});

test('a POST without a body from a page of another origin sets no state', async () => {
  const path = `${chat.url}/api/threads/foreign/state`;
  for (const origin of ['https://evil.example', 'null'])
    expect((await fetch(path, { method: 'POST', headers: { origin } })).status).toBe(415);
  expect((await fetch(path)).status).toBe(404);
});

test('a thread that has no state is not found, can be given one, and has it then', async () => {
  const path = '/threads/bootstrap/state';
  const missing = await fetch(`${chat.url}/api${path}`);
  expect(await answerOf(missing)).toEqual([
    404,
    { error: 'not_found', message: 'Thread bootstrap not found', detail: 'Thread bootstrap not found' },
  ]);
  const made = await chat.post(path, { values: { messages: [] } });
  const [status, state] = await answerOf(made);
  expect([status, state]).toEqual([
    200,
    {
      values: { messages: [] },
      next: ['model'],
      tasks: [expect.objectContaining({ name: 'model', interrupts: [] })],
      checkpoint: {
        thread_id: 'bootstrap',
        checkpoint_id: expect.any(String),
        checkpoint_ns: '',
        checkpoint_map: null,
      },
      metadata: expect.objectContaining({ source: 'update' }),
      created_at: expect.any(String),
      parent_checkpoint: null,
    },
  ]);
  expect(await answerOf(await fetch(`${chat.url}/api${path}`))).toEqual([200, state]);
});

test('values that the graph does not take are refused', async () => {
  const answer = await chat.post('/threads/refused/state', { values: { messages: [] }, as_node: 'nobody' });
  expect(await answerOf(answer)).toEqual([
    422,
    expect.objectContaining({ error: 'invalid_state_update', message: expect.stringContaining('nobody') }),
  ]);
});

test('a state is not given messages that are none', async () => {
  const answer = await chat.post('/threads/refused/state', { values: { messages: [{ role: 'user', content: 5 }] } });
  expect(await answerOf(answer)).toEqual([
    422,
    expect.objectContaining({
      error: 'invalid_state_update',
      message: 'values.messages.0: Expected content that is text, or a list of objects with a type',
    }),
  ]);
  expect((await fetch(`${chat.url}/api/threads/refused/state`)).status).toBe(404);
});

test('a store that is away is no mistake of a state, and its reason is not told', async () => {
  const storage = memoryStorage();
  storage.checkpointer.getTuple = storage.threads.touch = async () => {
    throw new Error('secret address');
  };
  await using broken = await ChatServer.start({ storage });
  expect(await answerOf(await broken.post('/threads/t/state', { values: { messages: [] } }))).toEqual([
    500,
    expect.objectContaining({ message: 'The request failed; the log of the server says why.' }),
  ]);
  expect(broken.lines).toEqual([expect.stringContaining('secret address')]);
});

test('the history of a thread that nobody knows is not found', async () => {
  expect((await chat.post('/threads/unknown/history', {})).status).toBe(404);
});

test('a checkpoint that names another thread leads to none but that of the request', async () => {
  const stateOf = (id: string, values: object, checkpoint?: object) =>
    chat.post(`/threads/${id}/state`, { values, checkpoint });
  const messages = (content: string) => ({ messages: [{ type: 'human', content }] });
  const theirs = (await (await stateOf('theirs', messages('secret'))).json()) as { checkpoint: object };
  const ours = (await (await stateOf('ours', messages('known'))).json()) as { checkpoint: object };
  await stateOf('ours', messages('changed'), { ...ours.checkpoint, thread_id: 'theirs' });
  await stateOf('ours', messages('changed'), theirs.checkpoint);
  const history = (body: object) => chat.post('/threads/ours/history', body).then((answer) => answer.text());
  expect(await history({ checkpoint: { thread_id: 'theirs' } })).not.toContain('secret');
  expect(await (await fetch(`${chat.url}/api/threads/theirs/state`)).text()).not.toContain('changed');
  expect(await history({})).toContain('changed');
});

test('a checkpoint that the thread does not have is not found, and nothing is written', async () => {
  await chat.post('/threads/known/state', { values: { messages: [{ type: 'human', content: 'kept' }] } });
  const fault = { error: 'no_such_checkpoint', message: 'Thread known has no checkpoint none.' };
  for (const [path, body] of [
    ['history', { before: 'none' }],
    ['history', { before: { checkpoint_id: 'none' } }],
    ['history', { before: { configurable: { checkpoint_id: 'none' } } }],
    ['history', { checkpoint: { checkpoint_id: 'none' } }],
    ['state', { values: { messages: [] }, checkpoint: { checkpoint_id: 'none' } }],
  ] as const) {
    const answer = await chat.post(`/threads/known/${path}`, body);
    expect([body, ...(await answerOf(answer))]).toEqual([body, 404, expect.objectContaining(fault)]);
  }
  const history = (await (await chat.post('/threads/known/history', {})).json()) as object[];
  expect(history).toHaveLength(1);
});

test('threads are listed by pages', async () => {
  for (const id of ['a', 'b', 'c']) await chat.post(`/threads/list-${id}/state`, { values: { messages: [] } });
  const ids = async (query: string) => {
    const threads = (await (await fetch(`${chat.url}/api/threads${query}`)).json()) as { id: string; title: string }[];
    return threads.filter(({ id }) => id.startsWith('list-')).map(({ id, title }) => `${id} ${title}`);
  };
  expect(await ids('?limit=2')).toEqual(['list-c New conversation', 'list-b New conversation']);
  expect(await ids('?limit=1&offset=2')).toEqual(['list-a New conversation']);
  for (const [query, status] of [
    ['limit=0', 422],
    ['limit=1', 200],
    ['limit=100', 200],
    ['limit=101', 422],
    ['offset=-1', 422],
    ['offset=x', 422],
  ]) {
    expect([query, (await fetch(`${chat.url}/api/threads?${query}`)).status]).toEqual([query, status]);
  }
});

test('what there is not is not found, in JSON', async () => {
  expect(await answerOf(await fetch(`${chat.url}/api/nothing`))).toEqual([
    404,
    expect.objectContaining({ error: 'not_found', detail: 'There is nothing at GET /api/nothing.' }),
  ]);
});

test('hostile text comes back as it was sent', async () => {
  const text = '\u0000 \u2028 \u202Edrowssap\u202C <script>alert(1)</script> \uD800 😀 __proto__ '.padEnd(3_000, '𝒳');
  await chat.post('/threads/hostile/state', {
    values: {
      messages: [{ type: 'human', content: text, additional_kwargs: JSON.parse('{"__proto__":{"polluted":1}}') }],
    },
  });
  const state = (await (await fetch(`${chat.url}/api/threads/hostile/state`)).json()) as {
    values: { messages: { content: string }[] };
  };
  expect(state.values.messages[0]?.content).toBe(text);
  expect(({} as { polluted?: number }).polluted).toBeUndefined();
});
