import { expect, it } from 'vitest';
import { type Progress, progressOf } from '../../src/cli/progress.ts';
import type { RunRecord } from '../../src/run/record.ts';
import { makeOpenRun, makeRun } from './records.ts';

it.each<[string, RunRecord[], Progress]>([
  ['whose runs have all ended', [makeRun('1', 'a'), makeRun('1.1', 'b')], 'finished'],
  ['whose root has not ended', [makeOpenRun('1', 'a'), makeRun('1.1', 'b')], 'open'],
  ['of whose roots one has not ended', [makeRun('1', 'a'), makeOpenRun('2', 'b')], 'open'],
  ['with a child that has not ended', [makeRun('1', 'a'), makeOpenRun('1.1', 'b')], 'ragged'],
  ['without its root', [makeRun('1.1', 'b')], 'ragged'],
  ['with a gap', [makeRun('1', 'a'), makeRun('1.1.1', 'c')], 'ragged'],
  ['without runs', [], 'ragged'],
])('a trace %s counts as such', (_, runs, progress) => {
  expect(progressOf(runs)).toBe(progress);
});
