import { describe, expect, test } from 'vitest';
import { Family } from '../../src/receiver/store/family.ts';
import { RunState } from '../../src/receiver/store/run-state.ts';
import type { RunFields, RunOperation } from '../../src/receiver.ts';
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

/** Runs that know of each other and stand nowhere yet. `settle` gives places, and the number of times one was set. */
function makeFamily(count: number, parentOf: (index: number) => number | undefined) {
  const byId = new Map<string, RunState>();
  const family = new Family(byId);
  const runs = Array.from({ length: count }, (_, index) => {
    const run = new RunState(id(index));
    run.take(post(index, parentOf(index)));
    byId.set(run.id, run);
    family.enter(run);
    return run;
  });
  const settle = (some: RunState[]): number => {
    let moves = 0;
    for (const run of some) {
      family.settle(run, (moving, to) => {
        moving.place = to;
        moves += 1;
      });
    }
    return moves;
  };
  return { runs, settle };
}

describe('runs without a dotted order', () => {
  test('are moved only as far as their place changes by a parent far above', async () => {
    const { runs, settle } = makeFamily(1_000, (index) => (index === 0 ? undefined : index - 1));
    expect(settle(runs)).toBe(1_000);
    runs[0]?.take({ kind: 'patch', id: id(0), fields: { start_time: new Date(5).toISOString() }, attachments: [] });
    expect(settle(runs.slice(0, 1))).toBe(65);
  });

  test('that are each the parent of the other are moved a few times and then rest', async () => {
    const { runs, settle } = makeFamily(3, (index) => (index + 1) % 3);
    expect(settle(runs)).toBeLessThan(100);
    expect(settle(runs)).toBe(0);
    expect(runs.map(({ place }) => place?.dottedOrder)).toEqual([order(0), order(1), order(2)]);
  });

  test('move with their parent, 50 000 of them', () => {
    const { runs, settle } = makeFamily(200_001, (index) => (index === 0 ? undefined : 0));
    expect(settle(runs.slice(0, 1))).toBe(200_001);
  });
});
