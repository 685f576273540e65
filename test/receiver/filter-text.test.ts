import fc from 'fast-check';
import { expect, test } from 'vitest';
import { absoluteText, parseFilter } from '#src/receiver/filter/parser.ts';
import { read } from '../package/repository.ts';

const NOW_MS = Date.parse('2026-11-20T12:00:00.000Z');

test('the documentation contains only valid conditions', () => {
  const rows = read('docs/filters.md')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.split(' | '));
  const cells = rows.map(([first = '', second = '']) => (first.includes('?') ? second : first));
  const texts = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text));
  expect(texts.length).toBeGreaterThan(45);
  for (const text of texts) {
    const terms = parseFilter(text, NOW_MS);
    expect([text, terms.flatMap(({ problem }) => problem ?? [])]).toEqual([text, []]);
    // Only the examples of search words contain search words.
    if (!text.startsWith('refund ')) expect(terms.map(({ kind }) => kind)).not.toContain('words');
  }
});

const aPiece = fc.oneof(
  fc.constantFrom(' ', '"', '\\', '(', ')', '-', '*', ',', ':', '..', '>', '=', 'OR ', 'AND ', 'NOT ', 'any('),
  fc.constantFrom('name:', 'meta.', 'meta.k=', 'feedback.k', 'latency', 'since:1h', 'is:root', 'x', '5', 'Ä', '\ud800'),
);
const aText = fc.array(aPiece, { maxLength: 30 }).map((pieces) => pieces.join(''));

test('each text is parsed, and the text of a condition is parsed to the same condition', () => {
  fc.assert(
    fc.property(aText, (text) => {
      for (const term of parseFilter(text, NOW_MS)) {
        if (term.node !== undefined) expect(parseFilter(term.text, NOW_MS)).toEqual([term]);
      }
    }),
    { numRuns: 2_000 },
  );
});

test.each(['(', '-(', 'NOT ', '"', ' OR', 'any(', '*,', '\\"', 'meta.', 'AND ', '  '])(
  '%j repeated is parsed in a moment',
  (piece) => {
    const text = `a${piece.repeat(4_000 / piece.length - 1)}`;
    // The time of the processor, because other programs may use it in the meantime.
    const begun = process.cpuUsage();
    parseFilter(text, NOW_MS);
    expect(process.cpuUsage(begun).user).toBeLessThan(200_000);
  },
);

test('the absolute text of a filter has neither relative times nor invalid conditions', () => {
  const text = 'since:2h a latency>soon "b c" before:15m name:x';
  expect(absoluteText(parseFilter(text, NOW_MS))).toBe(
    'since:2026-11-20T10:00:00.000Z a "b c" before:2026-11-20T11:45:00.000Z name:x',
  );
});
