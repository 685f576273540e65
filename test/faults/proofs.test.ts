import { describe, expect, test } from 'vitest';
import { complaintsOf, type Report } from './proofs.mjs';

const faults = [
  { number: 1, fault: 'rain' },
  { number: 2, fault: 'snow' },
];

/** A report of one file with these tests, each a title and how it ended. */
const reportOf = (...tests: [title: string, status?: string][]): Report => ({
  testResults: [{ assertionResults: tests.map(([title, status = 'passed']) => ({ title, status })) }],
});

describe('nothing is wrong', () => {
  test('where every row has a test that passed', () => {
    expect(complaintsOf(reportOf(['stays dry [fault 1]'], ['is swept [fault 2]']), faults, [])).toEqual([]);
  });

  test('where a row has several, in several files, one of them left out', () => {
    const { testResults } = reportOf(['is swept [fault 2]', 'skipped']);
    const others = reportOf(['stays dry [fault 1]'], ['is salted [fault 2]'], ['stays warm [fault 1]'], ['sleeps']);
    expect(complaintsOf({ testResults: [...testResults, ...others.testResults] }, faults, [])).toEqual([]);
  });

  test('where a row without a test is on the list of those', () => {
    expect(complaintsOf(reportOf(['stays dry [fault 1]']), faults, [2])).toEqual([]);
  });
});

describe('it is told that a row has no passing test', () => {
  const complaint = 'no passing test has a title that ends in [fault 2]: snow';

  test.each([
    ['when there is none', []],
    ['when it failed', [['is swept [fault 2]', 'failed']]],
    ['when it was left out', [['is swept [fault 2]', 'skipped']]],
    ['when it is still to be written', [['is swept [fault 2]', 'todo']]],
    ['when its title goes on', [['is swept [fault 2] and salted']]],
    ['when its title has another number that ends in the same digit', [['is swept [fault 12]']]],
  ] as [string, [string, string?][]][])('%s', (_, tests) => {
    expect(complaintsOf(reportOf(['stays dry [fault 1]'], ...tests), faults, [])).toContain(complaint);
  });
});

test('it is told that a test is about a row that is not there', () => {
  const report = reportOf(['stays dry [fault 1]'], ['is swept [fault 2]'], ['melts [fault 3]']);
  expect(complaintsOf(report, faults, [])).toEqual([
    'the table has no fault 3, which a test is about: melts [fault 3]',
  ]);
});

describe('the list of rows without a test', () => {
  const report = reportOf(['stays dry [fault 1]'], ['is swept [fault 2]']);

  test('has to lose a row that has one', () => {
    expect(complaintsOf(report, faults, [2])).toEqual([
      'fault 2 has a test: take it off the list of those that have none',
    ]);
  });

  test('keeps one whose only test has failed', () => {
    expect(complaintsOf(reportOf(['stays dry [fault 1]'], ['is swept [fault 2]', 'failed']), faults, [2])).toEqual([]);
  });

  test('has no row that is not there', () => {
    expect(complaintsOf(report, faults, [3])).toEqual([
      'the table has no fault 3, which the list of those without a test has',
    ]);
  });
});
