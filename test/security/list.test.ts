import { describe, expect, test } from 'vitest';
import { filesUnder, read } from '../package/repository.ts';

const rows = [...read('SECURITY.md').matchAll(/^\| (\d+) \| .+ \|$/gm)].map(([, number]) => Number(number));

/** The rows that test titles name, in all test files. */
const tested = new Set(
  filesUnder('test', '.test.ts').flatMap((file) =>
    [...read(`test/${file}`).matchAll(/\[security (\d+)\]['"`],/g)].map(([, number]) => Number(number)),
  ),
);

describe('the table of SECURITY.md', () => {
  test('has 18 rows, numbered from 1', () => {
    expect(rows).toEqual(Array.from({ length: 18 }, (_, index) => index + 1));
  });

  test.each(rows)('has a test for row %i', (row) => {
    expect(tested).toContain(row);
  });

  test('has every row that a test names', () => {
    expect([...tested].filter((row) => !rows.includes(row))).toEqual([]);
  });
});
