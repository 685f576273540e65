import { describe, expect, it } from 'vitest';
import { root } from '../support/folders.ts';
import { apiReader } from './api-reader.ts';
import { referencePages, undescribed } from './reference.ts';
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

describe.each(apis)('the entry point $name', ({ name, report }) => {
  // The entry `langsmith` has LangSmith's types, which use `any`.
  it.skipIf(name === 'langsmith')('has no `any` in its signatures', () => {
    expect(report.replace(/'[^'\n]*'|\/\/.*/g, '')).not.toMatch(/\bany\b/);
  });

  it('exports all types of its signatures', () => {
    const forgotten = [...report.matchAll(/ae-forgotten-export\) The symbol "(.*?)"/g)];
    expect(forgotten.map(([, symbol]) => symbol)).toEqual([]);
  });
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

it.each(['index', 'clients', 'langsmith', 'receiver', 'testing'])(
  'the entry point %s exports RunspanError',
  async (entry) => {
    const { RunspanError } = await import(`../../src/${entry}.ts`);
    expect(new RunspanError('RUNSPAN_TIMEOUT', 'late')).toMatchObject({ code: 'RUNSPAN_TIMEOUT', message: 'late' });
  },
);
