import { describe, expect, test } from 'vitest';
import type { RunOutline } from '../../src/receiver/store/run-view.ts';
import {
  countedUsages,
  matchingBranches,
  openBranches,
  type RunTree,
  treeOf,
} from '../../src/viewer/trace/run-tree.ts';

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
const names = (tree: RunTree, indices: readonly number[]): string =>
  indices.map((index) => tree.branches[index]?.run.id).join(' ');

const tree = treeOf([run('a'), run('b', 'a'), run('c', 'b'), run('d', 'a'), run('e', 'd')]);

describe('a tree', () => {
  test('has its runs depth first, whatever order they came in', () => {
    expect(draw(tree)).toBe('a .b ..c .d ..e');
    expect(draw(treeOf([run('e', 'd'), run('c', 'b'), run('a'), run('b', 'a'), run('d', 'a')]))).toBe(
      'a .b ..c .d ..e',
    );
    expect(draw(treeOf([]))).toBe('');
  });

  test('knows where each branch ends', () => {
    expect(tree.branches.map(({ end }) => end)).toEqual([5, 3, 3, 5, 5]);
  });

  test('counts the usage of model calls, and of other runs without usage below them', () => {
    const of = (tokens: number, made: RunOutline): RunOutline => ({ ...made, usage: { total_tokens: tokens } });
    const model = (tokens: number, made: RunOutline): RunOutline => ({ ...of(tokens, made), run_type: 'llm' });
    const runs = [
      of(9, run('a')),
      of(1, run('b', 'a')),
      run('c', 'a'),
      model(3, run('d', 'c')),
      model(4, run('e', 'd')),
    ];
    expect(countedUsages(treeOf(runs)).map(({ total_tokens }) => total_tokens)).toEqual([1, 3, 4]);
  });

  test('has orphans at the root, told apart, with what is below them', () => {
    expect(draw(treeOf([run('a'), run('x', 'gone'), run('y', 'x')]))).toBe('a x? .y');
  });

  test('has runs that are their own ancestors once each', () => {
    expect(draw(treeOf([run('a'), run('x', 'y'), run('y', 'x'), run('z', 'z')]))).toBe('a x? .y z?');
  });

  test('has runs of one id once', () => {
    expect(draw(treeOf([run('a'), run('b', 'a'), run('b', 'a')]))).toBe('a .b');
  });

  test('covers the time from the first start to the last end, to the microsecond', () => {
    const { startMs, endMs } = treeOf([
      run('a', undefined, 100, 50),
      { ...run('b', 'a', 120), end_time: '1970-01-01T00:00:00.200250Z' },
    ]);
    expect([startMs, endMs]).toEqual([100, 200.25]);
    expect(treeOf([])).toMatchObject({ startMs: 0, endMs: 0 });
  });

  test('of 200 000 runs below one, and of a chain of 50 000, is made at once', () => {
    const wide = treeOf([run('a'), ...Array.from({ length: 200_000 }, (_, index) => run(`${index}`, 'a'))]);
    expect(wide.branches[0]?.end).toBe(200_001);
    const deep = treeOf([run('0'), ...Array.from({ length: 50_000 }, (_, index) => run(`${index + 1}`, `${index}`))]);
    expect(deep.branches.at(-1)?.depth).toBe(50_000);
  });
});

test('nothing below a collapsed run is shown', () => {
  expect(names(tree, openBranches(tree, new Set()))).toBe('a b c d e');
  expect(names(tree, openBranches(tree, new Set(['b'])))).toBe('a b d e');
  expect(names(tree, openBranches(tree, new Set(['a', 'b'])))).toBe('a');
  expect(names(tree, openBranches(tree, new Set(['c'])))).toBe('a b c d e');
});

test('what matches is shown with all above it', () => {
  expect(
    names(
      tree,
      matchingBranches(tree, ({ id }) => id === 'c'),
    ),
  ).toBe('a b c');
  expect(
    names(
      tree,
      matchingBranches(tree, ({ id }) => id === 'b' || id === 'e'),
    ),
  ).toBe('a b d e');
  expect(
    names(
      tree,
      matchingBranches(tree, () => false),
    ),
  ).toBe('');
});
