import { expect, test } from 'vitest';
import { expectRuns } from '#src/testing/expect-runs.ts';
import { matchers } from '#src/testing/matchers.ts';

expect.extend(matchers);

const run = (name: string, fields: object = {}) => ({
  id: `0193b3a0-0000-7000-8000-${name.padStart(12, '0')}`,
  trace_id: '0193b3a0-0000-7000-8000-000000000001',
  dotted_order: name,
  name,
  run_type: 'chain' as const,
  start_time: `2026-11-20T07:00:0${name}.000000Z`,
  end_time: `2026-11-20T07:00:0${name}.500000Z`,
  inputs: {},
  ...fields,
});

const RUNS = [
  run('1', { inputs: { question: 'why?', tags: ['a', { b: 1 }] }, outputs: { text: 'so' } }),
  run('2', { parent_run_id: run('1').id, run_type: 'tool', error: 'RangeError: no index\n    at x' }),
];

/** Expectations that hold for the runs, and others that do not. */
const TRUE = [
  '1',
  { name: '2', error: /no index/ },
  { name: '2', error: 'RangeError: no index', parent: '1', times: 1 },
  { inputs: { tags: ['a', { b: 1 }] } },
  { inputs: { question: { asymmetricMatch: (value: unknown) => value === 'why?' } } },
];
const FALSE = [
  '3',
  { name: '1', error: /./ },
  { inputs: { tags: ['a'] } },
  { inputs: { tags: { 0: 'a' } } },
  { inputs: { question: { asymmetricMatch: () => false } } },
  { outputs: { text: 'so', more: undefined }, name: '2' },
];

test.each(TRUE)('the run %j is found, as by the matcher for Vitest', (expected) => {
  expectRuns(RUNS).toHaveRun(expected);
  expect(() => expectRuns(RUNS).not.toHaveRun(expected)).toThrow('.not.toHaveRun(');
  expect(matcherFinds(expected)).toBe(true);
});

test.each(FALSE)('no run %j is found, as by the matcher for Vitest', (expected) => {
  expectRuns(RUNS).not.toHaveRun(expected);
  expect(() => expectRuns(RUNS).toHaveRun(expected)).toThrow('no run matches');
  expect(matcherFinds(expected)).toBe(false);
});

function matcherFinds(expected: unknown): boolean {
  try {
    (expect(RUNS) as unknown as { toHaveRun(value: unknown): void }).toHaveRun(expected);
    return true;
  } catch {
    return false;
  }
}

test('a failed assertion shows the expectation, the differences and the runs', () => {
  const assertion = () => expectRuns(RUNS).toMatchTrace({ name: '1', children: [{ name: '2', error: /no page/ }] });
  expect(assertion).toThrow(
    expect.objectContaining({
      name: 'AssertionError',
      message: `expect(recorded).toMatchTrace(expected)

1 > 2: error: expected /no page/, got "RangeError: no index"

Recorded:
  1 (chain)
    2 (tool): RangeError: no index`,
    }),
  );
  expect(() => expectRuns(RUNS).toHaveRun({ name: '1', error: /./ })).toThrow(
    "expect(recorded).toHaveRun({ name: '1', error: /./ })",
  );
});
