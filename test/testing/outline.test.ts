import { expect, test } from 'vitest';
import { outlineOf } from '#src/testing.ts';
import { makeOpenRun, makeRun } from '../support/records.ts';

test('an outline has a line for each run, indented below its parent, with its type and its error', () => {
  const runs = [
    makeRun('1', 'answer'),
    makeRun('1.1', 'search', {
      start_time: '2026-11-20T07:22:39.000000Z',
      run_type: 'tool',
      error: 'Error: no\n    at f (/srv/app.js:1:2)',
    }),
    makeRun('1.1.1', 'fetch'),
    makeOpenRun('1.2', 'model', { run_type: 'llm' }),
    makeRun('2', 'later'),
  ];
  expect(outlineOf(runs)).toBe(
    'answer (chain)\n  search (tool): Error: no\n    fetch (chain)\n  model (llm): open\nlater (chain)',
  );
});

test('an outline sorts siblings by start or by name', () => {
  const [a, b] = [
    makeRun('2', 'a', { start_time: '2026-11-20T07:22:41.000000Z' }),
    makeRun('1', 'b', { start_time: '2026-11-20T07:22:40.000000Z' }),
  ];
  expect(outlineOf([a, b])).toBe('b (chain)\na (chain)');
  expect(outlineOf([a, b], { ordered: false })).toBe('a (chain)\nb (chain)');
});

test('an outline prints names and errors on one line, shortened to 200 characters', () => {
  const named = (name: string) => outlineOf([makeRun('1', name, { error: `${'e'.repeat(201)}` })]);
  expect(named('two\n\tlines')).toBe(`two lines (chain): ${'e'.repeat(200)}…`);
  expect(named('n'.repeat(200))).toContain(`${'n'.repeat(200)} (chain)`);
  expect(named('n'.repeat(201))).toContain(`${'n'.repeat(200)}… (chain)`);
});

test.each([
  [999, 999, 'run (chain)'],
  [1_000, 1_000, 'run (chain)'],
  [1_001, 1_001, '… and 1 more'],
  [1_003, 1_001, '… and 3 more'],
])('an outline of %i runs has %i lines', (runs, lines, last) => {
  const outline = outlineOf(Array.from({ length: runs }, (_, index) => makeRun(`${index}`, 'run'))).split('\n');
  expect(outline).toHaveLength(lines);
  expect(outline.at(-1)).toBe(last);
});

test('an outline without runs is empty', () => {
  expect(outlineOf([])).toBe('');
});
