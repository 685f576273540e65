import { describe, expect, onTestFinished, test } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import type { RunOperation, Store } from '../../src/receiver.ts';
import { describeMerging } from './store-merging.ts';
import { describePlaces } from './store-places.ts';
import { describeQueries } from './store-queries.ts';

const id = (index: number) => `00000000-0000-7000-8000-${index.toString().padStart(12, '0')}`;

/** Run `index` of the trace that begins with run `trace`. */
function post(index: number, trace: number): RunOperation {
  const dotted_order = [...new Set([trace, index])].map((each) => `20261120T072240000000Z${id(each)}`).join('.');
  const place = { trace_id: id(trace), dotted_order };
  const start_time = '2026-11-20T07:22:40.000000Z';
  return {
    kind: 'post',
    id: id(index),
    fields: { name: 'run', run_type: 'chain', start_time, ...place },
    attachments: [],
  };
}

/** What holds for every store; of properties so many cases are tried. */
export function describeStore(makeStore: () => Promise<Store>, cases: number): void {
  describeMerging(makeStore);
  describePlaces(makeStore, cases);
  describeQueries(makeStore);

  describe('attachments of a run', () => {
    const attach = (from: number, to: number): RunOperation => ({
      ...post(1, 1),
      attachments: Array.from({ length: to - from }, (_, index) => ({
        name: `a${from + index}`,
        bytes: new Uint8Array(1),
        mimeType: 'x/y',
      })),
    });
    const count = async (store: Store) => (await store.trace(id(1)))[0]?.attachments?.length ?? 0;

    test('are 100 at the most in one request, and one that brings more is refused whole', async () => {
      for (const [to, kept] of [
        [99, 99],
        [100, 100],
        [101, 0],
      ] as const) {
        const store = await makeStore();
        const applied = store.apply([attach(0, to)]);
        if (kept > 0) await applied;
        else await expect(applied).rejects.toMatchObject({ status: 413 });
        expect(await count(store)).toBe(kept);
      }
    });

    test('are 100 at the most over all requests, of which one may bring the same again', async () => {
      const store = await makeStore();
      await store.apply([attach(0, 99)]);
      await store.apply([attach(0, 99), attach(99, 100)]);
      await expect(store.apply([post(2, 2), attach(100, 101)])).rejects.toMatchObject({ status: 413 });
      await store.apply([attach(50, 100)]);
      expect(await count(store)).toBe(100);
      expect(await store.trace(id(2))).toEqual([]);
    });
  });

  describe('a subscription', () => {
    test('tells after each apply which traces have changed, those left among them', async () => {
      const store = await makeStore();
      const told: number[][] = [];
      const stop = store.subscribe(({ traceIds }) => told.push(traceIds.map((traceId) => Number(traceId.slice(-12)))));
      await store.apply([post(1, 1), post(2, 1), post(3, 3)]);
      await store.apply([]);
      await store.apply([{ kind: 'patch', id: id(3), fields: { tags: ['a'] }, attachments: [] }]);
      await store.apply([post(3, 4)]);
      stop();
      stop();
      await store.apply([post(6, 6)]);
      expect(told).toEqual([[1, 3], [3], [3, 4]]);
    });

    test('sees the change when it is told, and one that throws keeps nobody from anything', async () => {
      const lines: string[] = [];
      diagnostics.setLog((_, message) => lines.push(message));
      onTestFinished(() => diagnostics.setLog('warn'));
      const store = await makeStore();
      let seen: Promise<unknown[]> | undefined;
      store.subscribe(() => {
        throw new Error('no');
      });
      store.subscribe(() => {
        seen = store.runs({});
      });
      await store.apply([post(1, 1)]);
      expect(await seen).toHaveLength(1);
      expect(lines).toEqual(["a listener of the receiver's store failed: no"]);
    });
  });
}
