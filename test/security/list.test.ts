import { describe, expect, test } from 'vitest';
import { filesUnder, read } from '../package/repository.ts';
import { lines } from './list.mjs';

/** The numbers at the ends of titles, wherever a test is. */
const proven = new Set(
  filesUnder('test', '.test.ts').flatMap((file) =>
    [...read(`test/${file}`).matchAll(/\[security (\d+)\]['"`],/g)].map(([, number]) => Number(number)),
  ),
);

describe('the list of what a security reviewer is promised', () => {
  test('is numbered from 1 without a gap', () => {
    expect(lines.map(({ number }) => number)).toEqual(lines.map((_, index) => index + 1));
    expect(lines).toHaveLength(18);
  });

  test.each(lines.filter(({ later }) => later === undefined))('has a test for line $number', ({ number }) => {
    expect(proven).toContain(number);
  });

  test('has no test for a line that is to come: that would no longer be to come', () => {
    expect(lines.filter(({ number, later }) => later !== undefined && proven.has(number))).toEqual([]);
  });

  test('has every line that a test is about', () => {
    expect([...proven].filter((number) => lines[number - 1] === undefined)).toEqual([]);
  });

  test('is the table of SECURITY.md', () => {
    const rows = [...read('SECURITY.md').matchAll(/^\| (\d+) \| (.+) \|$/gm)].map(([, number, text]) => [
      Number(number),
      text,
    ]);
    expect(rows).toEqual(
      lines.map(({ number, rule, later }) => [number, later === undefined ? rule : `Not yet, ${later}: ${rule}`]),
    );
  });
});
