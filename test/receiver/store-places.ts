import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RunFields, RunOperation, Store } from '../../src/receiver.ts';
import { compactTimestamp } from '../../src/run/time.ts';

const id = (index: number) => `00000000-0000-7000-8000-${index.toString(16).padStart(12, '0')}`;

/** A run that starts `index` seconds after 1970, as simple ingestion brings it. */
function post(index: number, parent?: number, fields: RunFields = {}): RunOperation {
  const start_time = new Date(index * 1_000).toISOString();
  const above = parent === undefined ? {} : { parent_run_id: id(parent) };
  return {
    kind: 'post',
    id: id(index),
    fields: { name: 'run', run_type: 'chain', start_time, ...above, ...fields },
    attachments: [],
  };
}

const order = (...indexes: number[]) => indexes.map((index) => compactTimestamp(index * 1e6) + id(index)).join('.');

/** Where every store puts runs that came without an order; of the properties so many cases are tried. */
export function describePlaces(makeStore: () => Promise<Store>, cases: number): void {
  async function placesAfter(...operations: RunOperation[]): Promise<string[]> {
    const store = await makeStore();
    for (const operation of operations) await store.apply([operation]);
    return (await store.runs({})).map((run) => `${Number.parseInt(run.trace_id.slice(-12), 16)}: ${run.dotted_order}`);
  }

  describe('runs without a dotted order', () => {
    test('stand below their parent, which came first', async () => {
      expect(await placesAfter(post(1), post(2, 1), post(3, 2))).toEqual([
        `1: ${order(1)}`,
        `1: ${order(1, 2)}`,
        `1: ${order(1, 2, 3)}`,
      ]);
    });

    test('stand at the root until their parent comes, and then move with all below them', async () => {
      const early = [post(3, 2), post(4, 3)];
      expect(await placesAfter(...early)).toEqual([`3: ${order(3)}`, `3: ${order(3, 4)}`]);
      expect(await placesAfter(...early, post(2, 1), post(1))).toEqual([
        `1: ${order(1)}`,
        `1: ${order(1, 2)}`,
        `1: ${order(1, 2, 3)}`,
        `1: ${order(1, 2, 3, 4)}`,
      ]);
    });

    test('stand below a parent that came with an order of its own', async () => {
      const parent = post(2, undefined, { dotted_order: order(1, 2), trace_id: id(1), parent_run_id: id(1) });
      expect(await placesAfter(post(3, 2), parent)).toEqual([`1: ${order(1, 2)}`, `1: ${order(1, 2, 3)}`]);
    });

    test('are in the trace that they name as long as their parent is not known', async () => {
      expect(await placesAfter(post(3, 2, { trace_id: id(1) }))).toEqual([`1: ${order(3)}`]);
    });

    test('wait for a parent of which only the end is known', async () => {
      const patch: RunOperation = { kind: 'patch', id: id(1), fields: { outputs: {} }, attachments: [] };
      expect(await placesAfter(patch, post(2, 1))).toEqual([`2: ${order(2)}`]);
      expect(await placesAfter(patch, post(2, 1), post(1))).toEqual([`1: ${order(1)}`, `1: ${order(1, 2)}`]);
    });

    test('move when a patch gives them another parent', async () => {
      const patch: RunOperation = { kind: 'patch', id: id(3), fields: { parent_run_id: id(2) }, attachments: [] };
      expect(await placesAfter(post(1), post(2), post(3, 1), patch)).toEqual([
        `1: ${order(1)}`,
        `2: ${order(2)}`,
        `2: ${order(2, 3)}`,
      ]);
    });

    test('that are each the parent of the other stand at the root', async () => {
      expect(await placesAfter(post(1, 2), post(2, 1))).toEqual([`1: ${order(1)}`, `2: ${order(2)}`]);
      expect(await placesAfter(post(1, 3), post(2, 1), post(3, 2))).toHaveLength(3);
    });

    test('are given an order down to level 64 below the first, and stand at the root beyond', async () => {
      const chain = Array.from({ length: 67 }, (_, index) => post(index, index === 0 ? undefined : index - 1));
      for (const operations of [chain, chain.toReversed()]) {
        const store = await makeStore();
        for (const operation of operations) await store.apply([operation]);
        const runs = await store.runs({});
        const level = (index: number) => runs.find((run) => run.id === id(index))?.dotted_order.split('.').length;
        expect([63, 64, 65, 66].map(level)).toEqual([64, 65, 1, 1]);
      }
    });

    test('come up again from below the levels that have orders when the chain above them is cut', async () => {
      const chain = Array.from({ length: 70 }, (_, index) => post(index, index === 0 ? undefined : index - 1));
      const own: RunOperation = { kind: 'patch', id: id(60), fields: { dotted_order: order(60) }, attachments: [] };
      const runs = await placesAfter(...chain, own);
      expect(runs).toContain(`60: ${order(60, 61, 62, 63, 64, 65, 66, 67, 68, 69)}`);
    });

    test('come up again below one of them that is given an order of its own', async () => {
      const chain = Array.from({ length: 70 }, (_, index) => post(index, index === 0 ? undefined : index - 1));
      const own: RunOperation = { kind: 'patch', id: id(67), fields: { dotted_order: order(67) }, attachments: [] };
      expect(await placesAfter(...chain)).toContain(`68: ${order(68)}`);
      expect(await placesAfter(...chain, own)).toContain(`67: ${order(67, 68, 69)}`);
    });

    test('move once in a request in which their parent moves often', async () => {
      const store = await makeStore();
      await store.apply([post(0), post(1), post(2), post(3, 2)]);
      const told: string[][] = [];
      store.subscribe(({ traceIds }) => told.push([...traceIds].sort()));
      const patch = (parent: number): RunOperation => ({ ...post(2, parent), kind: 'patch' });
      await store.apply([patch(0), patch(1), patch(0), patch(1)]);
      expect(told).toEqual([[id(1), id(2)]]);
    });

    const forest = fc.array(fc.integer({ min: -1, max: 11 }), { minLength: 1, maxLength: 12 });
    const inAnyOrder = (posts: RunOperation[]) =>
      fc.tuple(fc.constant(posts), fc.shuffledSubarray(posts, { minLength: posts.length }));

    test('end at the same places in whatever order they come', async () => {
      const posts = forest.map((parents) =>
        parents.map((parent, index) => post(index, parent < 0 || parent >= index ? undefined : parent)),
      );
      await fc.assert(
        fc.asyncProperty(posts.chain(inAnyOrder), async ([inOrder, shuffled]) => {
          expect(await placesAfter(...shuffled)).toEqual(await placesAfter(...inOrder));
        }),
        { numRuns: cases },
      );
    });

    test('can all be seen even when their parents make no sense', async () => {
      const posts = forest.map((parents) =>
        parents.map((parent, index) => post(index, parent < 0 ? undefined : parent)),
      );
      await fc.assert(
        fc.asyncProperty(posts.chain(inAnyOrder), async ([inOrder, shuffled]) => {
          expect(await placesAfter(...shuffled, ...inOrder)).toHaveLength(inOrder.length);
        }),
        { numRuns: cases },
      );
    });
  });
}
