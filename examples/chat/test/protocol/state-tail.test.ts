import { expect, test } from 'vitest';
import { stateTail } from '../../server/protocol/state-tail.ts';
import { StateWriter } from '../../server/protocol/state-writer.ts';
import { MemorySessions } from '../../server/storage/memory-sessions.ts';

const message = (id: string) => ({ id, content: 'x'.repeat(1_000) });

/** Writes states, each with messages of these ids, and so many other events after each. */
async function logOf(states: readonly string[], others: number, sessions = new MemorySessions()) {
  const writer = new StateWriter('r');
  const add = async (method: string, data: unknown): Promise<number> => {
    const body = writer.bodyOf(method, { namespace: [] }, data);
    await sessions.append('t', [{ channel: method, namespace: [], body }]);
    return body.length;
  };
  let chars = 0;
  for (const ids of states) {
    await add('values', { messages: [...ids].map(message) });
    chars = 0;
    for (let n = 0; n < others; n++) chars += await add('custom', n);
  }
  return { sessions, chars, end: (await sessions.lastSeq('t')) + 1 };
}

const idsOf = (messages: readonly string[] | undefined) => messages?.map((text) => JSON.parse(text).id).join('');

test('the newest state is laid together from the last that has all of its messages', async () => {
  const { sessions, end } = await logOf(['ab', 'abc', 'ad'], 1);
  const tail = await stateTail(sessions, 't', end);
  expect([tail?.state?.id, idsOf(tail?.state?.messages), tail?.events]).toEqual(['r/3', 'ad', 5]);
  // The first of six events is `r/1`, the third `r/2`.
  const before = await stateTail(sessions, 't', end - 2);
  expect([before?.state?.id, idsOf(before?.state?.messages), before?.events]).toEqual(['r/2', 'abc', 3]);
  expect(await stateTail(sessions, 't', end - 6)).toBe(undefined);
});

test('it is found behind several pages, up to 5 000 events back', async () => {
  const { sessions, chars, end } = await logOf(['ab'], 5_000);
  expect((await stateTail(sessions, 't', end))?.state).toBe(undefined);
  const tail = await stateTail(sessions, 't', end - 1);
  const last = '{"method":"custom","params":{"namespace":[],"data":4999}}';
  expect([idsOf(tail?.state?.messages), tail?.events, tail?.chars]).toEqual(['ab', 4_999, chars - last.length]);
});

test('where the last that has all of its messages is no longer kept, it is known how much all states had', async () => {
  const { sessions, end } = await logOf(['ab', 'abc'], 2, new MemorySessions({ eventsMax: 5 }));
  const chars = JSON.stringify(message('a')).length;
  expect(await stateTail(sessions, 't', end)).toMatchObject({ state: undefined, total: 5 * chars });
  expect(await stateTail(sessions, 'unknown', 1)).toBe(undefined);
});
