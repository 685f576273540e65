import { expect, test } from 'vitest';
import { runWords } from '#src/receiver/domain/query/search-words.ts';

test('the words of a run reach over a mebi of characters, payloads last', () => {
  const long = `${'x'.repeat(63)} `.repeat(16 * 1024);
  expect(runWords({ name: 'n', inputs: { a: `${long.slice(0, -64)} end` } })).toContain('end');
  expect(runWords({ name: 'n', inputs: { a: long }, outputs: { b: 'end' } })).not.toContain('end');
});
