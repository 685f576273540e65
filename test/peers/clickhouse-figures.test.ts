// Keys and changes of stores in ClickHouse, which runs inside another process (see clickhouse/shim.mjs).
import { afterAll, describe, expect, test } from 'vitest';
import type { RunOperation } from '#src/receiver/domain/run-message.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { ClickHouseStore } from '#src/receiver/store/clickhouse/clickhouse-store.ts';
import { ClickHouseKeys } from '#src/receiver/store/clickhouse/keys.ts';
import type { StoreChange } from '#src/receiver/store/store.ts';
import { feedback, id, numberOf, patch, post, simple, span } from '../receiver/conformance/support.ts';
import { startDatabase } from './clickhouse/database.ts';

const { db, openStore, stop } = await startDatabase();
afterAll(stop);

test('Keys in ClickHouse are used, and revoked once', async () => {
  const keys = new ClickHouseKeys(db);
  const store = await openStore();
  const key = { id: 'later', hash: 'ff', tenant: 'a', permission: 'read' as const, createdMs: 5 };
  const named = { ...key, id: 'first', name: 'page', project: 'shop', createdMs: 4 };
  expect([await store.key('later'), await keys.revokeKey('later', 3)]).toEqual([undefined, undefined]);
  await keys.addKey(key);
  await keys.addKey(named);
  await store.useKey('later', 9);
  // The clock has been set back.
  expect(await keys.revokeKey('later', 3)).toEqual({ ...key, usedMs: 9, revokedMs: 3 });
  await store.useKey('later', 12);
  const revoked = { ...key, usedMs: 12, revokedMs: 3 };
  expect(await keys.revokeKey('later', 20)).toEqual(revoked);
  expect(await store.key('later')).toEqual(revoked);
  expect(await keys.keys()).toEqual([named, revoked]);
});

describe('changes in ClickHouse', () => {
  const inBank = { session_name: 'bank' };

  function collector() {
    const received: number[] = [];
    return { received, listener: ({ traceIds }: StoreChange) => void received.push(...traceIds.map(numberOf)) };
  }

  test('are reported once by each receiver, and only while there are listeners', async () => {
    const [first, second] = [await openStore(), await openStore()];
    const scope = { tenant: 'changes' };
    const apply = async (store: ClickHouseStore, number: number): Promise<void> => {
      await store.apply(scope, [post(number)]);
      await store.settled();
    };
    const [one, two, later] = [collector(), collector(), collector()];
    const stop = first.subscribe(scope, one.listener);
    second.subscribe(scope, two.listener);
    second.subscribe({ tenant: 'other' }, two.listener);
    await apply(second, 2);
    expect(two.received).toEqual([2]);
    await expect.poll(() => one.received).toEqual([2]);
    await apply(first, 3);
    await expect.poll(() => two.received).toEqual([2, 3]);
    stop();
    await apply(second, 4);
    first.subscribe({ tenant: 'later' }, later.listener);
    await second.apply({ tenant: 'later' }, [post(5)]);
    await second.settled();
    // The first store has read the changes of the second again.
    await expect.poll(() => later.received).toEqual([5]);
    expect([one.received, two.received]).toEqual([
      [2, 3],
      [2, 3, 4],
    ]);
  });

  test('of every kind reach the listeners of a project at another receiver, and those of other projects do not', async () => {
    const [first, second] = [await openStore(), await openStore()];
    const scope = { tenant: 'kinds' };
    const { received, listener } = collector();
    second.subscribe({ ...scope, project: 'bank' }, listener);
    const marks = collector();
    second.subscribe({ ...scope, project: 'mark' }, marks.listener);
    let mark = 100;
    /** Returns the traces that are reported until a later change of another project is reported. */
    const after = async (change: () => Promise<unknown>): Promise<number[]> => {
      received.length = 0;
      await change();
      await first.settled();
      mark += 1;
      await first.apply(scope, [post(mark, { session_name: 'mark' })]);
      await first.settled();
      await expect.poll(() => marks.received).toContain(mark);
      return [...new Set(received)].sort((a, b) => a - b);
    };
    const apply = (...operations: RunOperation[]) => after(() => first.apply(scope, operations));
    const nested = simple(4, { ...span(4, 3, 5).fields, ...inBank });
    expect(await apply(post(1), post(2, inBank), nested)).toEqual([2, 5]);
    expect(await apply(simple(3, { ...span(3, undefined, 5).fields, trace_id: id(3) }))).toEqual([3, 5]);
    expect(await after(() => first.addFeedback(scope, feedback(1)))).toEqual([]);
    expect(await after(() => first.addFeedback(scope, feedback(2, { id: id(901) })))).toEqual([2]);
    expect(await after(() => first.removeFeedback(scope, feedback(2, { id: id(901) })))).toEqual([2]);
    expect(await apply(patch(4, { session_name: 'shop' }))).toEqual([3]);
    expect(await after(() => first.remove(scope, { kind: 'trace', id: id(1) }))).toEqual([]);
    expect(await after(() => first.remove(scope, { kind: 'trace', id: id(2) }))).toEqual([2]);
    expect(await first.list(scope, parsedQuery({ project: 'bank' }))).toEqual({ items: [] });
  });
});
