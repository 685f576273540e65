import { describe, expect, test } from 'vitest';
import { perfettoEvents } from '#src/receiver/api/export/perfetto.ts';
import type { RunOutline } from '#src/receiver.ts';

const at = (ms: number) => `2026-11-20T07:00:00.${ms.toString().padStart(3, '0')}000Z`;

function run(id: string, startMs: number, endMs?: number, parent?: string): RunOutline {
  return {
    id,
    name: id,
    run_type: 'chain',
    status: endMs === undefined ? 'pending' : 'success',
    start_time: at(startMs),
    ...(endMs === undefined ? {} : { end_time: at(endMs) }),
    ...(parent === undefined ? {} : { parent_run_id: parent }),
  };
}

function slicesOf(...runs: RunOutline[]): Record<string, { ts: number; dur: number; tid: number }> {
  const events = [...perfettoEvents(runs)].map((text) => JSON.parse(text));
  return Object.fromEntries(events.filter(({ ph }) => ph === 'X').map((slice) => [slice.name, slice]));
}

describe('in the trace for Perfetto', () => {
  test('a run has its start and duration in microseconds', () => {
    const { a } = slicesOf(run('a', 1, 3));
    expect(a).toMatchObject({ ts: Date.UTC(2026, 10, 20, 7) * 1_000 + 1_000, dur: 2_000, tid: 1 });
  });

  const root = run('a', 0, 100);

  test.each<[string, number[], RunOutline[]]>([
    [
      'consecutive and nested runs share a lane',
      [1, 1, 1],
      [run('b', 10, 20, 'a'), run('c', 20, 40, 'a'), run('d', 25, 40, 'c')],
    ],
    [
      'runs that overlap are in different lanes, with the runs below them',
      [1, 2, 2],
      [run('b', 10, 50, 'a'), run('c', 20, 60, 'a'), run('d', 30, 60, 'c')],
    ],
    [
      'a run that is inside another in time shares its lane',
      [1, 1, 1],
      [run('b', 10, 20, 'a'), run('c', 15, 20, 'a'), run('d', 20, 30, 'a')],
    ],
    ['a run that ends after its parent is in another lane', [2], [run('b', 5, 120, 'a')]],
    [
      'a lane is free as soon as its run has ended',
      [2, 1, 2, 2],
      [run('b', 5, 120), run('c', 100, 130), run('d', 120, 120), run('e', 121, 125)],
    ],
  ])('%s', (_, lanes, runs) => {
    expect(Object.values(slicesOf(root, ...runs)).map(({ tid }) => tid)).toEqual([1, ...lanes]);
  });

  test('a run that has not ended lasts until the last known time', () => {
    expect(slicesOf(run('a', 0), run('b', 10, 50, 'a')).a?.dur).toBe(50_000);
    expect(slicesOf(run('a', 5)).a?.dur).toBe(0);
  });
});
