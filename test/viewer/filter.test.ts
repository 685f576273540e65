import { expect, test } from 'vitest';
import { parseFilter } from '#src/receiver/filter/parser.ts';
import { condition, metadataCondition, queryOf, withTerms } from '#src/viewer/data/filter.ts';

const NOW_MS = Date.parse('2026-11-20T12:00:00.000Z');
const query = (filter: string): string =>
  [...queryOf({ filter }, NOW_MS)].map(([name, value]) => `${name}=${value}`).join(' & ');

test.each([
  ['', ''],
  ['status:error', 'filter=status:error'],
  ['type:llm  name:"x y"', 'filter=type:llm name:"x y"'],
  ['user:ada OR (tag:vip -model:gpt*)', 'filter=user:ada OR (tag:vip -model:gpt*)'],
  ['status:error AND meta.user', 'filter=status:error meta.user'],
  ['since:1h', 'filter=since:2026-11-20T11:00:00.000Z'],
  ['before:15m', 'filter=before:2026-11-20T11:45:00.000Z'],
  ['since:2026-11-19T09:00Z', 'filter=since:2026-11-19T09:00:00.000Z'],
  ['since:2026-11-19', `filter=since:${new Date('2026-11-19T00:00').toISOString()}`],
  ['late "blue order" parcel', 'filter=late "blue order" parcel'],
  ['"not closed', 'filter="not closed"'],
  ['name:"not closed', 'filter=name:"not closed"'],
  ['12:30 "stauts:error"', 'filter=12:30 "stauts:error"'],
  ['https://example.com/a?b=c foo:bar call(x) a-b', 'filter=https://example.com/a?b=c foo:bar call(x) a-b'],
  ['status:error late', 'filter=status:error late'],
])('%s queries %s', (text, expected) => {
  expect(query(text)).toBe(expected);
  expect(parseFilter(withTerms(text, ''), NOW_MS)).toEqual(parseFilter(text, NOW_MS));
});

test.each([
  ['latency>soon', 'latency> expects a duration: 500ms, 2s, 1m'],
  ['latency>', 'latency> expects a duration: 500ms, 2s, 1m'],
  ['latency:1..5..9', 'latency: expects a duration: 500ms, 2s, 1m'],
  ['latency:5x', 'latency: expects a duration: 500ms, 2s, 1m'],
  ['tokens>many', 'tokens> expects a number: 1000'],
  ['tokens:..', 'tokens: expects a number: 1000'],
  ['cached<50', 'cached< expects a share: 50%, 0.5'],
  ['cached>-1%', 'cached> expects a share: 50%, 0.5'],
  ['cached:..%', 'cached: expects a share: 50%, 0.5'],
  ['feedback.liked>good', 'feedback.liked> expects a number: 0.5'],
  ['meta.n>5', 'meta.n expects = or :'],
  ['user!=ada', 'user!= is no comparison of user; for "not", use -user:'],
  ['name>a', 'name> is no comparison of name; for "not", use -name:'],
  ['stauts:error', 'unknown key "stauts": did you mean status:error?'],
  ['latncy>2s', 'unknown key "latncy": did you mean latency>2s?'],
  ['nmae:"two words"', 'unknown key "nmae": did you mean name:"two words"?'],
  ['-tags:vip', 'unknown key "tags": did you mean tag:vip?'],
  [`usr:${'a'.repeat(99)}`, `unknown key "usr": did you mean user:${'a'.repeat(80)}…?`],
  ['since:2026-02-30', 'since: expects a time: 15m, 1h, 7d, 2026-01-31, 2026-01-31T09:00'],
  ['since:yesterday', 'since: expects a time: 15m, 1h, 7d, 2026-01-31, 2026-01-31T09:00'],
  ['status:', 'status: expects a value'],
  ['name:a,', 'name: expects a value'],
  ['status:failed', 'status: expects one of error, failed_below, pending, success, cancelled, interrupted, incomplete'],
  ['trace:4d5e6f70', 'trace: expects a full id'],
  ['is:llm', 'is: expects root or internal'],
  ['(name:a', 'a parenthesis is not closed'],
  ['()', 'parentheses expect a condition'],
  ['OR name:a', 'OR and NOT expect a condition after them, and OR also before it'],
  ['name:a OR', 'OR and NOT expect a condition after them, and OR also before it'],
  ['name:a OR late', 'search words cannot be used with OR, NOT, any() or parentheses'],
  ['-late', 'search words cannot be used with OR, NOT, any() or parentheses'],
  ['any(user:ada -(any(tag:a)))', 'any() cannot contain any()'],
  ['any(since:1h)', 'since: and before: cannot be used with OR, NOT, any() or parentheses'],
  [`${'('.repeat(11)}name:a${')'.repeat(11)}`, 'parentheses and negations are nested at most 10 levels deep'],
  ['('.repeat(4_000), 'parentheses and negations are nested at most 10 levels deep'],
  [`name:${'a,'.repeat(50)}a`, 'a filter has at most 50 values'],
  ['a'.repeat(4_001), 'a filter has at most 4000 characters'],
])('%s is ignored with an explanation', (text, problem) => {
  const [term] = parseFilter(text, 0);
  expect(term?.problem).toBe(problem);
  expect(query(text)).not.toContain(term?.text);
});

test('limits include their maximum', () => {
  const texts = ['a'.repeat(4_000), `${'('.repeat(10)}name:a${')'.repeat(10)}`, `name:${'a,'.repeat(49)}a`];
  for (const text of texts) expect(parseFilter(text, 0).map(({ problem }) => problem)).toEqual([undefined]);
});

test.each([
  ['name:a status:error', 'name:b', 'status:error name:b'],
  ['status:error', 'status:pending', 'status:pending'],
  ['status:error', 'status:error', 'status:error'],
  ['name:a', 'name', 'name:a name'],
  ['name:a', '-name:b', 'name:a -name:b'],
  ['tag:a', 'tag:b', 'tag:a tag:b'],
  ['latency>1s latency<9s', 'latency>=2s', 'latency<9s latency>=2s'],
  ['since:1h word', 'since:2h more', 'word since:2h more'],
  ['meta.a=1 meta.b=2', 'meta.a=3', 'meta.b=2 meta.a=3'],
])('%s with %s becomes %s', (text, more, expected) => {
  expect(withTerms(text, more)).toBe(expected);
});

test('conditions for values survive their printed form', () => {
  const texts = ['plain', 'two words', 'a "quote"', 'back\\slash', 'end\\', 'c:d=e', ' ', 'a,b', '*', '(x)', '-y'];
  for (const value of texts) {
    const values = [{ kind: 'equal', text: value }];
    const nodes = [condition('tag', value), metadataCondition(value, value)].map(
      (text) => parseFilter(`${text} name:a`, 0)[0],
    );
    expect(nodes.map((term) => term?.node)).toEqual([
      { field: 'tag', values },
      { field: 'meta', key: value, values },
    ]);
  }
});

test('the selected project and the project of the filter must both match', () => {
  expect(`${queryOf({ filter: 'project:a', project: 'b' }, NOW_MS)}`).toBe('filter=project%3Aa&project=b');
});

test('durations have units, and are in seconds without one', () => {
  const valid = { '5': 5, '5ms': 0.005, '5s': 5, '5m': 300, '5min': 300, '5h': 18_000, '1d': 86_400, '1w': 604_800 };
  for (const [text, seconds] of Object.entries(valid)) {
    const bounds = [{ operator: '>=', amount: seconds * 1_000_000 }];
    expect(parseFilter(`latency>=${text}`, 0)).toMatchObject([{ node: { field: 'latency', bounds } }]);
  }
});
