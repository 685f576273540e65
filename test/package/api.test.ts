import { describe, expect, it } from 'vitest';
import { root } from '../support/folders.ts';
import { apiReader } from './api-reader.ts';
import { exportsOf, referencePages, undescribed } from './reference.ts';
import { entries } from './repository.ts';

const readApi = apiReader(
  root,
  entries.map((entry) => `dist/${entry}.d.cts`),
);
const apis = entries.map((entry) => ({
  name: entry === 'index' ? 'runspan' : entry,
  specifier: entry === 'index' ? 'runspan' : `runspan/${entry}`,
  page: `${entry === 'index' ? 'runspan' : entry}.md`,
  ...readApi(`dist/${entry}.d.cts`),
}));

/** The names of all entry points except `langsmith`, which has the names of LangSmith's package. */
const names = apis
  .filter(({ name }) => name !== 'langsmith')
  .flatMap((api) => [...new Set(exportsOf(api).map(({ name = '' }) => name))]);

describe.each(apis)('the entry point $name', ({ name, report }) => {
  // The entry `langsmith` has LangSmith's types, which use `any`.
  it.skipIf(name === 'langsmith')('has no `any` in its signatures', () => {
    expect(report.replace(/'[^'\n]*'|\/\/.*/g, '')).not.toMatch(/\bany\b/);
  });

  it('has only types in its signatures that an entry point exports', () => {
    const foreign = [...report.matchAll(/ae-forgotten-export\) The symbol "(.*?)"/g)];
    expect(foreign.map(([, symbol = '']) => symbol).filter((symbol) => !names.includes(symbol))).toEqual([]);
  });
});

it('each name is exported by one entry point', () => {
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});

it('each public name and option has a description', () => {
  expect(apis.flatMap((api) => undescribed(api))).toEqual([]);
});

it.each([...referencePages(apis)])(
  'docs/reference/%s is the committed page; npm run generate updates it',
  async (name, page) => {
    await expect(page).toMatchFileSnapshot(`../../docs/reference/${name}`, 'update it with: npm run generate');
  },
);
