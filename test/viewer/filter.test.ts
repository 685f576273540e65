import { expect, test } from 'vitest';
import { condition, metadataCondition, parseFilter, queryOf, withTerms } from '../../src/viewer/data/filter.ts';

const NOW_MS = Date.parse('2026-11-20T12:00:00.000Z');
const query = (filter: string): string =>
  [...queryOf({ filter }, NOW_MS)].map(([name, value]) => `${name}=${value}`).join(' & ');

test.each([
  ['', ''],
  ['status:error', 'status=error'],
  ['status:error status:pending', 'status=error & status=pending'],
  ['type:llm', 'run_type=llm'],
  ['name:"x y"', 'name=x y'],
  ['name:"say \\"hi\\""', 'name=say "hi"'],
  ['tag:prod tag:eu', 'tag=prod & tag=eu'],
  ['model:gpt-4o', 'model=gpt-4o'],
  [
    'project:shop trace:01a1f9f4-c90e-7d88-b1a8-7d7ec3932406',
    'project=shop & trace_id=01a1f9f4-c90e-7d88-b1a8-7d7ec3932406',
  ],
  ['meta.user=42', 'metadata=user=42'],
  ['meta.user', 'metadata=user'],
  ['meta."a b"="c d"', 'metadata=a b=c d'],
  ['latency>=2s', 'latency_ms_min=2000'],
  ['latency>2s', 'latency_ms_min=2000.001'],
  ['latency<500ms', 'latency_ms_max=499.999'],
  ['latency>1 latency<=1.5m', 'latency_ms_min=1000.001 & latency_ms_max=90000'],
  ['tokens>1000', 'tokens_min=1001'],
  ['tokens<=1000 tokens>=10', 'tokens_max=1000 & tokens_min=10'],
  ['tokens<1', 'tokens_max=0'],
  ['since:1h', 'started_from=2026-11-20T11:00:00.000Z'],
  ['before:15m', 'started_before=2026-11-20T11:45:00.000Z'],
  ['since:2026-11-19T09:00Z', 'started_from=2026-11-19T09:00:00.000Z'],
  ['since:2026-11-19', `started_from=${new Date('2026-11-19T00:00').toISOString()}`],
  ['late "blue order" parcel', 'text=late "blue order" parcel'],
  ['"not closed', 'text="not closed"'],
  ['https://example.com/a?b=c foo:bar', 'text=https://example.com/a?b=c foo:bar'],
  ['status:error late', 'status=error & text=late'],
])('%s queries %s', (text, expected) => {
  expect(query(text)).toBe(expected);
  expect(parseFilter(withTerms(text, ''))).toEqual(parseFilter(text));
});

test.each([
  ['latency>soon', 'latency> expects a duration: 500ms, 2s, 1m'],
  ['latency>', 'latency> expects a duration: 500ms, 2s, 1m'],
  ['tokens>many', 'tokens> expects a number: 1000'],
  ['since:yesterday', 'since: expects a time: 15m, 1h, 7d, 2026-01-31, 2026-01-31T09:00'],
  ['status:', 'status: expects a value'],
  ['status:failed', 'status: expects one of error, pending, success, cancelled, interrupted, incomplete'],
  ['trace:4d5e6f70', 'trace: expects a full id'],
])('%s is ignored with an explanation', (text, problem) => {
  expect(parseFilter(text).map((term) => term.problem)).toEqual([problem]);
  expect(query(text)).toBe('');
});

test.each([
  ['name:a status:error', 'name:b', 'status:error name:b'],
  ['status:error', 'status:pending', 'status:error status:pending'],
  ['status:error', 'status:error', 'status:error'],
  ['name:a', 'name', 'name:a name'],
  ['latency>1s latency<9s', 'latency>=2s', 'latency<9s latency>=2s'],
  ['since:1h word', 'since:2h more', 'word since:2h more'],
  ['meta.a=1 meta.b=2', 'meta.a=3', 'meta.b=2 meta.a=3'],
])('%s with %s becomes %s', (text, more, expected) => {
  expect(withTerms(text, more)).toBe(expected);
});

test('conditions for values survive their printed form', () => {
  for (const value of ['plain', 'two words', 'a "quote"', 'back\\slash', 'c:d=e', ' ']) {
    expect(query(condition('tag', value))).toBe(`tag=${value}`);
    expect(query(metadataCondition('a key', value))).toBe(`metadata=a key=${value}`);
  }
});

test('the selected project replaces the project of the filter', () => {
  expect(`${queryOf({ filter: 'project:a', project: 'b' }, NOW_MS)}`).toBe('project=b');
});

test('durations have units, and are in seconds without one', () => {
  const valid = { '5': 5, '5ms': 0.005, '5s': 5, '5m': 300, '5min': 300, '5h': 18_000, '1d': 86_400, '1w': 604_800 };
  for (const [text, seconds] of Object.entries(valid)) {
    expect(query(`latency>=${text}`)).toBe(`latency_ms_min=${seconds * 1_000}`);
  }
  expect(['5x', '', '-1s'].map((text) => query(`latency>=${text}`))).toEqual(['', '', '']);
});
