import { expect, test } from 'vitest';
import {
  fieldTerm,
  metadataTerm,
  millisecondsOf,
  parseFilter,
  printFilter,
  queryOf,
  withTerm,
} from '../../src/viewer/data/filter.ts';

const NOW_MS = Date.parse('2026-11-20T12:00:00.000Z');
const query = (text: string): [string, string][] => [...queryOf(parseFilter(text), NOW_MS)];
const added = (text: string, more: string): string =>
  printFilter(parseFilter(more).reduce(withTerm, parseFilter(text)));

test.each<[string, [string, string][]]>([
  ['', []],
  ['status:error', [['status', 'error']]],
  [
    'status:error status:pending',
    [
      ['status', 'error'],
      ['status', 'pending'],
    ],
  ],
  ['type:llm', [['run_type', 'llm']]],
  ['name:"x y"', [['name', 'x y']]],
  ['name:"say \\"hi\\""', [['name', 'say "hi"']]],
  [
    'tag:prod tag:eu',
    [
      ['tag', 'prod'],
      ['tag', 'eu'],
    ],
  ],
  ['model:gpt-4o', [['model', 'gpt-4o']]],
  [
    'project:shop trace:01a1f9f4-c90e-7d88-b1a8-7d7ec3932406',
    [
      ['project', 'shop'],
      ['trace_id', '01a1f9f4-c90e-7d88-b1a8-7d7ec3932406'],
    ],
  ],
  ['meta.user=42', [['metadata', 'user=42']]],
  ['meta.user', [['metadata', 'user']]],
  ['meta."a b"="c d"', [['metadata', 'a b=c d']]],
  ['latency>=2s', [['latency_ms_min', '2000']]],
  ['latency>2s', [['latency_ms_min', '2000.001']]],
  ['latency<500ms', [['latency_ms_max', '499.999']]],
  [
    'latency>1 latency<=1.5m',
    [
      ['latency_ms_min', '1000.001'],
      ['latency_ms_max', '90000'],
    ],
  ],
  ['tokens>1000', [['tokens_min', '1001']]],
  [
    'tokens<=1000 tokens>=10',
    [
      ['tokens_max', '1000'],
      ['tokens_min', '10'],
    ],
  ],
  ['tokens<1', [['tokens_max', '0']]],
  ['since:1h', [['started_from', '2026-11-20T11:00:00.000Z']]],
  ['before:15m', [['started_before', '2026-11-20T11:45:00.000Z']]],
  ['since:2026-11-19T09:00Z', [['started_from', '2026-11-19T09:00:00.000Z']]],
  ['late "blue order" parcel', [['text', 'late "blue order" parcel']]],
  ['"not closed', [['text', '"not closed"']]],
  ['https://example.com/a?b=c foo:bar', [['text', 'https://example.com/a?b=c foo:bar']]],
  [
    'status:error late',
    [
      ['status', 'error'],
      ['text', 'late'],
    ],
  ],
])('%s asks for %j', (text, expected) => {
  expect(query(text)).toEqual(expected);
});

test('a date without a time is one of the place where it is typed', () => {
  expect(query('since:2026-11-19')).toEqual([['started_from', new Date('2026-11-19T00:00').toISOString()]]);
});

test.each([
  ['latency>soon', 'latency> wants a duration: 500ms, 2s, 1m'],
  ['latency>', 'latency> wants a duration: 500ms, 2s, 1m'],
  ['tokens>many', 'tokens> wants a number: 1000'],
  ['since:yesterday', 'since: wants a time: 15m, 1h, 7d, 2026-01-31, 2026-01-31T09:00'],
  ['status:', 'status: wants a value'],
  ['status:failed', 'status: wants one of error, pending, success, cancelled, interrupted, incomplete'],
  ['trace:4d5e6f70', 'trace: wants a whole id'],
])('%s says what is wrong and asks for nothing', (text, problem) => {
  expect(parseFilter(text).map((term) => term.problem)).toEqual([problem]);
  expect(query(text)).toEqual([]);
});

test('what is printed is parsed to the same', () => {
  const text = 'status:error name:"x y" meta.user=42 latency>2s since:1h late "blue order"';
  expect(printFilter(parseFilter(text))).toBe(text);
  expect(parseFilter(printFilter(parseFilter(text)))).toEqual(parseFilter(text));
});

test('a condition takes the place of the one that it cannot stand beside', () => {
  expect(added('name:a status:error', 'name:b')).toBe('status:error name:b');
  expect(added('status:error', 'status:pending')).toBe('status:error status:pending');
  expect(added('status:error', 'status:error')).toBe('status:error');
  expect(added('latency>1s latency<9s', 'latency>=2s')).toBe('latency<9s latency>=2s');
  expect(added('since:1h word', 'since:2h more')).toBe('word since:2h more');
  expect(added('meta.a=1 meta.b=2', 'meta.a=3')).toBe('meta.b=2 meta.a=3');
});

test('values of runs become conditions that find them, whatever is in them', () => {
  for (const value of ['plain', 'two words', 'a "quote"', 'back\\slash', 'c:d=e', ' ']) {
    expect(query(fieldTerm('tag', value).text)).toEqual([['tag', value]]);
    expect(query(metadataTerm('a key', value).text)).toEqual([['metadata', `a key=${value}`]]);
  }
});

test('durations have units; without one they are seconds', () => {
  expect(['5', '5ms', '5s', '5m', '5min', '5h', '1d', '1w', '0.5s', '5x', '', '-1s'].map(millisecondsOf)).toEqual([
    5_000,
    5,
    5_000,
    300_000,
    300_000,
    18_000_000,
    86_400_000,
    604_800_000,
    500,
    undefined,
    undefined,
    undefined,
  ]);
});
