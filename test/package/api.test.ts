import { describe, expect, it } from 'vitest';
import { root } from '../support/folders.ts';
import { apiReporter } from './api-report.ts';
import { entries } from './repository.ts';

const declarationsOf = (entry: string): string => `dist/${entry}.d.cts`;
const reportOf = apiReporter(root, entries.map(declarationsOf));

describe.each(entries)('the entry point %s', (entry) => {
  const name = entry === 'index' ? 'runspan' : entry;

  it('has the names and signatures of its committed report; npm run api updates it', async () => {
    const report = reportOf(declarationsOf(entry));
    // The entry `langsmith` has LangSmith's types, which use `any`.
    if (entry !== 'langsmith') expect(report.replace(/'[^'\n]*'|\/\/.*/g, '')).not.toMatch(/\bany\b/);
    await expect(report).toMatchFileSnapshot(`../../api/${name}.api.md`, 'update it with: npm run api');
  });
});

it.each(entries)('the entry point %s exports all types of its signatures', (entry) => {
  const forgotten = [...reportOf(declarationsOf(entry)).matchAll(/ae-forgotten-export\) The symbol "(.*?)"/g)];
  expect(forgotten.map(([, name]) => name)).toEqual([]);
});

it.each(['index', 'clients', 'langsmith', 'receiver', 'testing'])(
  'the entry point %s exports RunspanError',
  async (entry) => {
    const { RunspanError } = await import(`../../src/${entry}.ts`);
    expect(new RunspanError('RUNSPAN_TIMEOUT', 'late')).toMatchObject({ code: 'RUNSPAN_TIMEOUT', message: 'late' });
  },
);
