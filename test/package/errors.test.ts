import { describe, expect, it } from 'vitest';
import { errorCodes } from '../../src/base/errors.ts';
import { filesUnder, read } from './repository.ts';
import { sourceFacts } from './source-facts.ts';

const thrown = filesUnder('src', '.ts').flatMap((path) =>
  sourceFacts(path, read(`src/${path}`)).errorCodes.map((code) => ({ path, code })),
);

describe('the table of error codes', () => {
  it('is the one of docs/errors.md, code by code and word by word', () => {
    const rows = [...read('docs/errors.md').matchAll(/^\| `(.+?)` *\| (.+?) *\|$/gm)];
    expect(Object.fromEntries(rows.map(([, code, condition]) => [code, condition]))).toEqual(errorCodes);
  });

  it('has no code that nothing throws, and nothing is thrown that it does not have', () => {
    expect([...new Set(thrown.map(({ code }) => code))].sort()).toEqual(Object.keys(errorCodes).sort());
  });

  it('is written out where an error is made, so that the code can be searched for', () => {
    expect(thrown.filter(({ code }) => code === undefined)).toEqual([]);
  });

  it('names every code alike', () => {
    for (const code of Object.keys(errorCodes)) expect(code).toMatch(/^RUNSPAN(_[A-Z]+)+$/);
  });
});

describe('the codes of a file', () => {
  it('are found where errors are made, on either side of a condition, and missed where they are computed', () => {
    const codes = (argument: string) => sourceFacts('x.ts', `throw new RunspanError(${argument}, '');`).errorCodes;
    expect(codes(`'A'`)).toEqual(['A']);
    expect(codes(`busy ? 'A' : 'B'`)).toEqual(['A', 'B']);
    expect(codes('code')).toEqual([undefined]);
  });
});
