import { once } from 'node:events';
import { afterAll, expect, test } from 'vitest';
import { createScriptedChat } from '../server/scripted.ts';
import { ChatClient, isEndOf, type SeenEvent, startChatServer, streamedText } from './support/chat-server.ts';

const chat = await createScriptedChat({
  answer: (question, _, { signal }) => {
    if (question === 'fail') throw new Error('The answer fails.');
    return question === 'wait' ? waiting(signal) : words(`An answer to ${question}.`);
  },
});
afterAll(() => chat.close());
const client = new ChatClient('http://localhost/api', (url, init) => chat.fetch(new Request(url, init)));

async function* words(text: string): AsyncGenerator<string> {
  yield* text.split(/(?= )/);
}

async function waiting(signal: AbortSignal): Promise<string> {
  await once(signal, 'abort');
  return 'too late';
}

/** Returns the kinds of events in their order, without those that repeat or that only the real agent's middleware has. */
function kindsOf(events: readonly SeenEvent[]): string[] {
  const kinds = events.flatMap(({ method, params: { namespace, data } }) => {
    const place = namespace.map((part) => part.split(':')[0]).join('/');
    const isMiddleware = data?.node === 'HumanInTheLoopMiddleware.after_model';
    return isMiddleware ? [] : [`${place} ${method} ${data?.event ?? ''} ${Object.keys(data ?? {}).sort()}`];
  });
  return kinds.filter((kind, index) => !kinds.slice(Math.max(0, index - 2), index).includes(kind));
}

test('the events and states of a turn have the kinds and the order of the real agent', async () => {
  await using real = await startChatServer();
  const events = await client.ask('kinds', 'heron');
  expect(streamedText(events)).toContain('An answer to heron.');
  expect(kindsOf(events)).toEqual(kindsOf(await real.client.ask('kinds', 'heron')));
  expect(await client.until('kinds', isEndOf(events[0]?.params.run_id ?? ''))).toEqual(events);
  const { values, next, metadata } = await client.state('kinds');
  const expected = await real.client.state('kinds');
  expect(values.messages.map(Object.keys)).toEqual(expected.values.messages.map(Object.keys));
  expect([next, Object.keys(metadata).sort()]).toEqual([[], Object.keys(expected.metadata).sort()]);
  const history = await client.history('kinds');
  expect(history.map(({ values: { messages = [] } }) => messages.length)).toEqual([4, 3, 2, 1, 0]);
});

test('a thread is created, listed and deleted, and its states stay apart', async () => {
  const status = async (method: string) =>
    (await chat.fetch(new Request('http://localhost/api/threads/t', { method }))).status;
  expect(await client.get('/threads/t/state')).toMatchObject({ error: 'not_found' });
  expect(await (await client.post('/threads/t/state', {})).json()).toMatchObject({ values: { messages: [] } });
  await client.ask('t', 'otter');
  expect((await client.get<object[]>('/threads'))[0]).toMatchObject({ id: 't', title: 'otter' });
  const first = (await client.history('t')).at(-1)?.checkpoint.checkpoint_id;
  await client.ask('t', 'heron', { checkpoint_id: first });
  expect((await client.state('t')).values.messages).toHaveLength(4);
  expect(await status('DELETE')).toBe(204);
  expect(await client.get('/threads/t/state')).toMatchObject({ error: 'not_found' });
});

test('a turn fails with its error, ends when it is cancelled, and waits for the turn before it', async () => {
  const failed = (await client.ask('bad', 'fail')).at(-1)?.params.data;
  expect(failed).toMatchObject({ event: 'failed', error: 'The answer fails.' });
  const [first, second] = [await client.say('bad', 'wait'), await client.say('bad', 'hello')];
  expect(await client.cancel('bad', first)).toBe(202);
  const ends = (await client.until('bad', isEndOf(second))).filter((event) =>
    [first, second].some((id) => isEndOf(id)(event)),
  );
  expect(ends.map(({ params }) => params.data.event)).toEqual(['interrupted', 'completed']);
});
