import { expect, test } from 'vitest';
import type { RunOutline } from '#src/receiver/domain/run-view.ts';
import { type RunTree, recordsIn, shareOf, treeOf } from '#src/viewer/trace/run-tree.ts';

/** Runs by id and parent: `b<a` is a run `b` below `a`. */
const runs = (text: string): RunOutline[] =>
  text.split(' ').map((one) => {
    const [id = '', parent] = one.split('<');
    return run(id, parent);
  });
const run = (id: string, parent?: string, startMs = 0, ms?: number): RunOutline => ({
  id,
  name: id,
  run_type: 'chain',
  status: 'success',
  start_time: new Date(startMs).toISOString(),
  ...(parent === undefined ? {} : { parent_run_id: parent }),
  ...(ms === undefined ? {} : { end_time: new Date(startMs + ms).toISOString() }),
});
const draw = ({ branches }: RunTree): string =>
  branches.map(({ run: { id }, depth, isOrphan }) => `${'.'.repeat(depth)}${id}${isOrphan ? '?' : ''}`).join(' ');

test.each([
  ['runs in any order', 'e<d c<b a b<a d<a', 'a .b ..c .d ..e'],
  ['orphans at the root', 'a x<gone y<x', 'a x? .y'],
  ['runs in a cycle of parents', 'a x<y y<x z<z', 'a x? .y z?'],
  ['each id once', 'a b<a b<a', 'a .b'],
])('a tree has %s', (_, text, drawn) => {
  expect(draw(treeOf(runs(text)))).toBe(drawn);
});

test('a tree of no runs is empty', () => {
  expect(treeOf([])).toMatchObject({ branches: [], startMs: 0, endMs: 0 });
});

test('each call has a number of further records, at its outermost record', () => {
  const outers: Record<string, string> = { b: 'a', c: 'a', d: 'a', e: 'missing' };
  const calls = runs('a b<a c<b d e').map((one) => ({
    ...one,
    ...(outers[one.id] && { same_call_as: outers[one.id] }),
  }));
  expect([...recordsIn(treeOf(calls as RunOutline[]))]).toEqual([['a', 3]]);
});

test('the time range has microseconds', () => {
  const last = { ...run('b', 'a', 120), end_time: '1970-01-01T00:00:00.200250Z' };
  expect(treeOf([run('a', undefined, 100, 50), last])).toMatchObject({ startMs: 100, endMs: 200.25 });
});

test('100,000 siblings and a chain of 20,000 runs are built at once', () => {
  const wide = treeOf([run('a'), ...Array.from({ length: 100_000 }, (_, index) => run(`${index}`, 'a'))]);
  expect(wide.branches[0]?.end).toBe(100_001);
  const deep = treeOf([run('0'), ...Array.from({ length: 20_000 }, (_, index) => run(`${index + 1}`, `${index}`))]);
  expect(deep.branches.at(-1)?.depth).toBe(20_000);
  expect(deep.depthMax).toBe(20_000);
});

test('a zoomed axis shows the part of a run that is within it', () => {
  const axis = { startMs: 100, lengthMs: 200, nowMs: 0 };
  expect(shareOf(axis, 150, 200)).toEqual({ left: 25, width: 25 });
  expect(shareOf(axis, 0, 200)).toEqual({ left: 0, width: 50 });
  expect(shareOf(axis, 200, Number.POSITIVE_INFINITY)).toEqual({ left: 50, width: 50 });
  expect([shareOf(axis, 0, 99), shareOf(axis, 301, 400), shareOf(axis, Number.NaN, Number.NaN)]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
