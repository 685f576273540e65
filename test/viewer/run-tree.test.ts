import { expect, test } from 'vitest';
import type { RunOutline } from '#src/receiver/domain/run-view.ts';
import { foldedCalls } from '#src/receiver/domain/trace/call-records.ts';
import { isInternal, type RunTree, repeatsIn, treeOf, unfolded } from '#src/viewer/trace/run-tree.ts';

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

test('the further records of a call are directly below its head, and so are the runs below them', () => {
  const heads: Record<string, string> = { b: 'a', d: 'a', e: 'missing' };
  const calls = runs('a b<a c<b d e f<d').map((one) => ({
    ...one,
    ...(heads[one.id] && { same_call_as: heads[one.id] }),
  }));
  expect(draw(treeOf(unfolded(foldedCalls(calls as RunOutline[]))))).toBe('a .b .d .c .f e');
});

test('ten or more equal runs without children that follow each other belong to the first of them', () => {
  const repeats = (count: number, change: Partial<RunOutline> = {}, at = 4) => {
    const calls = Array.from({ length: count }, (_, index) => ({ ...run(`${index}`, 'a'), name: 'embed' }));
    Object.assign(calls[at] ?? {}, change);
    return [...repeatsIn(treeOf([run('a'), ...calls, run('b', 'a')]))].map(([id, head]) => `${id}<${head}`);
  };
  expect(repeats(9)).toEqual([]);
  expect(repeats(10)).toEqual(['1<0', '2<0', '3<0', '4<0', '5<0', '6<0', '7<0', '8<0', '9<0']);
  expect(repeats(11)).toHaveLength(10);
  for (const change of [{ status: 'error' }, { name: 'other' }, { run_type: 'llm' }, { model: 'm' }] as const) {
    expect(repeats(11, change)).toEqual([]);
    expect(repeats(11, change, 0)).not.toContain('1<0');
    expect(repeats(11, change, 0)).toContain('2<1');
  }
});

test('equal roots, and equal runs of different parents, are not repeats', () => {
  const names = (text: string) => runs(text).map((one) => ({ ...one, name: 'same' }));
  expect(repeatsIn(treeOf(names('a b c d e f g h i j k'))).size).toBe(0);
  const parents = names(
    ['r', ...Array.from({ length: 12 }, (_, index) => `p${index}<r c${index}<p${index}`)].join(' '),
  );
  expect(repeatsIn(treeOf(parents)).size).toBe(0);
});

test('a step of a framework is internal if it has succeeded and is no root', () => {
  const step = (status: RunOutline['status']) => [
    { ...run('a'), internal: true as const },
    { ...run('b', 'a'), internal: true as const, status },
    run('c', 'a'),
  ];
  expect(treeOf(step('success')).branches.map(isInternal)).toEqual([false, true, false]);
  for (const status of ['error', 'pending', 'interrupted', 'incomplete', 'cancelled'] as const) {
    expect(treeOf(step(status)).branches.some(isInternal)).toBe(false);
  }
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
