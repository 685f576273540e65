import { expect, test } from 'vitest';
import { startRun } from '../../src/run/start-run.ts';
import { snapshotOf } from '../../src/testing.ts';
import { makeRun } from '../support/records.ts';

const EXPECTED =
  'Expected what recordRuns() gives, a list of recorded runs such as `await receiver.runs()`, or one of them, got ';

test.each([
  ['nothing', undefined, 'undefined'],
  ['null', null, 'null'],
  ['text', 'runs', '"runs"'],
  ['a promise of runs', Promise.resolve([]), 'a promise; await it'],
  ['a list with something else in it', [makeRun('1', 'a'), 'b'], '"b"'],
  ['a receiver', { runs: async () => [] }, 'an object'],
  ['a run that is being traced', startRun({ name: 'a' }), 'an object'],
])('refuses %s', (_, recorded, got) => {
  const message = EXPECTED + got;
  expect(() => snapshotOf(recorded as never)).toThrow(
    expect.objectContaining({ code: 'RUNSPAN_INVALID_OPTION', message }),
  );
});

test('takes an empty list', () => {
  expect(snapshotOf([])).toEqual([]);
  expect(snapshotOf({ runs: [] })).toEqual([]);
});
