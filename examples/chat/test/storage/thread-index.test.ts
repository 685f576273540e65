import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ThreadIndex, ThreadSummary } from '../../server/storage/thread-index.ts';
import { STORE_KINDS, type StoreKind } from './stores.ts';

describe.each(Object.keys(STORE_KINDS).filter((name) => name !== 'Redis'))('the threads in %s', (name) => {
  let kind: StoreKind;
  let threads: ThreadIndex;

  beforeAll(async () => {
    kind = await (STORE_KINDS[name] as () => Promise<StoreKind>)();
    threads = kind.threads as ThreadIndex;
  });
  afterAll(() => kind?.close());

  it('lists those that have changed last first, whatever their times say', async () => {
    const added = [thread('a', 3), thread('b', 2), thread('c', 1)];
    for (const each of added) await threads.touch(each);
    expect(await threads.list(10, 0)).toEqual([...added].reverse());
    await threads.touch(thread('a', 0));
    expect((await threads.list(10, 0)).map(({ id }) => id)).toEqual(['a', 'c', 'b']);
    expect((await threads.list(10, 0))[0]?.updatedAt).toBe(thread('a', 0).updatedAt);
    for (const { id } of added) await threads.delete(id);
    expect(await threads.list(10, 0)).toEqual([]);
  });

  it.each([
    [9, 0, 9],
    [10, 0, 10],
    [11, 0, 10],
    [5, 8, 2],
    [5, 9, 1],
    [5, 10, 0],
  ])('lists %i from place %i on, which are %i of 10', async (limit, offset, count) => {
    const ids = Array.from({ length: 10 }, (_, at) => `page-${at}`);
    for (const id of ids) await threads.touch(thread(id));
    const listed = (await threads.list(limit, offset)).map(({ id }) => id);
    expect(listed).toEqual([...ids].reverse().slice(offset, offset + count));
    for (const id of ids) await threads.delete(id);
  });

  it('keeps the first title that is not empty', async () => {
    const id = randomUUID();
    for (const title of ['', 'first', 'second', '']) await threads.touch({ ...thread(id), title });
    expect(await threads.list(1, 0)).toEqual([{ ...thread(id), title: 'first' }]);
    await threads.delete(id);
  });

  it('takes the title of a thread that is renamed, unless that is empty', async () => {
    const id = randomUUID();
    for (const title of ['first', 'second', '']) await threads.touch({ ...thread(id), title }, 'renamed');
    await threads.touch({ ...thread(id), title: 'third' });
    expect(await threads.list(1, 0)).toEqual([{ ...thread(id), title: 'second' }]);
    await threads.delete(id);
  });

  it.each(['\u0000', '\ud83d', '"quoted"', "'; DROP TABLE threads; --", '""', '%'])(
    'keeps the title %j',
    async (title) => {
      const id = `id of ${title.replace('\0', '').toWellFormed()}`;
      await threads.touch({ ...thread(id), title });
      expect(await threads.list(1, 0)).toEqual([{ ...thread(id), title }]);
      await threads.delete(id);
      await threads.delete(id);
    },
  );

  it('keeps one of each when many change at once', async () => {
    const ids = Array.from({ length: 20 }, (_, at) => `many-${at}`);
    await Promise.all([...ids, ...ids].map((id) => threads.touch(thread(id))));
    expect((await threads.list(100, 0)).map(({ id }) => id).sort()).toEqual([...ids].sort());
    for (const id of ids) await threads.delete(id);
  });
});

function thread(id: string, minute = 0): ThreadSummary {
  return { id, title: `title of ${id}`, updatedAt: new Date(Date.UTC(2026, 10, 21, 8, minute)).toISOString() };
}
