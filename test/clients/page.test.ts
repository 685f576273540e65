import { expect, test } from 'vitest';
import { Page, PageList } from '#src/clients/page.ts';
import { readAll } from '../support/read-all.ts';

/** A list of these pages. `asked` records the requested pages. */
function listOf(...pages: number[][]): { list: PageList<number>; asked: number[] } {
  const asked: number[] = [];
  const page = async (index: number): Promise<Page<number>> => {
    asked.push(index);
    return new Page(pages[index] ?? [], index + 1 < pages.length ? () => page(index + 1) : undefined);
  };
  return { list: new PageList(() => page(0)), asked };
}

test('a list is not requested until it is awaited or iterated', async () => {
  const { list, asked } = listOf([1]);
  await Promise.resolve();
  expect(asked).toEqual([]);
  expect((await list).items).toEqual([1]);
});

test('awaiting a list returns the first page, requested once', async () => {
  const { list, asked } = listOf([1, 2], [3]);
  const [one, other] = await Promise.all([list, list]);
  expect(one).toBe(other);
  expect([one.items, one.hasNext, asked]).toEqual([[1, 2], true, [0]]);
});

test('iterating a list returns every item and requests pages when needed', async () => {
  const { list, asked } = listOf([1, 2], [], [3]);
  const items = list[Symbol.asyncIterator]();
  expect([(await items.next()).value, (await items.next()).value, asked]).toEqual([1, 2, [0]]);
  expect([(await items.next()).value, asked]).toEqual([3, [0, 1, 2]]);
  expect((await items.next()).done).toBe(true);
});

test('each iteration requests all pages', async () => {
  const { list, asked } = listOf([1, 2], [3]);
  await list;
  for (let times = 0; times < 2; times++) expect(await readAll(list)).toEqual([1, 2, 3]);
  expect((await readAll(list.pages())).map(({ items }) => items)).toEqual([[1, 2], [3]]);
  expect(asked).toEqual([0, 0, 1, 0, 1, 0, 1]);
});

test('a page returns the next page, and the last page returns undefined', async () => {
  const { list } = listOf([1], [2]);
  const next = await (await list).next();
  expect([next?.items, next?.hasNext, await next?.next()]).toEqual([[2], false, undefined]);
  expect(await readAll(await list)).toEqual([1, 2]);
});

test.each<[number, number[], number[]]>([
  [-1, [], []],
  [0, [], []],
  [1, [1], [0]],
  [2, [1, 2], [0]],
  [3, [1, 2, 3], [0, 1]],
  [4, [1, 2, 3], [0, 1]],
  [Number.POSITIVE_INFINITY, [1, 2, 3], [0, 1]],
])('toArray(%d) returns %j and requests the pages %j', async (limit, items, expected) => {
  const { list, asked } = listOf([1, 2], [3]);
  expect([await list.toArray(limit), asked]).toEqual([items, expected]);
});

test.each([[Number.NaN], [undefined], ['2']])(
  'toArray(%s) is refused, because a list may have no end',
  async (limit) => {
    const { list, asked } = listOf([1]);
    await expect(list.toArray(limit as number)).rejects.toMatchObject({ code: 'RUNSPAN_INVALID_OPTION' });
    expect(asked).toEqual([]);
  },
);

test('a failed request rejects every use of the list', async () => {
  const gone = new Error('gone');
  const list = new PageList<number>(() => Promise.reject(gone));
  await expect(list).rejects.toBe(gone);
  await expect(readAll(list)).rejects.toBe(gone);
  await expect(readAll(list.pages())).rejects.toBe(gone);
  await expect(list.then(undefined, (error) => error)).resolves.toBe(gone);
});

test('a failed later page ends the loop with its error, after the earlier items', async () => {
  const gone = new Error('gone');
  const list = new PageList(async () => new Page([1], () => Promise.reject(gone)));
  const found: number[] = [];
  const loop = async (): Promise<void> => {
    for await (const item of list) found.push(item);
  };
  await expect(loop()).rejects.toBe(gone);
  expect(found).toEqual([1]);
});
