import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { root, temporaryFolder } from '../support/folders.ts';
import { apiReporter } from './api-report.ts';
import { entries } from './repository.ts';

const declarationsOf = (entry: string): string => `dist/${entry}.d.ts`;
const reportOf = apiReporter(root, entries.map(declarationsOf));

describe.each(entries)('the entry point %s', (entry) => {
  const name = entry === 'index' ? 'runspan' : entry;

  it('has the names and signatures of its committed report; npm run api updates it', async () => {
    const report = reportOf(declarationsOf(entry));
    expect(report.replace(/'[^'\n]*'|\/\/.*/g, '')).not.toMatch(/\bany\b/);
    await expect(report).toMatchFileSnapshot(`../../api/${name}.api.md`, 'update it with: npm run api');
  });
});

it.each(entries)('the entry point %s exports every type that its signatures name', (entry) => {
  const forgotten = [...reportOf(declarationsOf(entry)).matchAll(/ae-forgotten-export\) The symbol "(.*?)"/g)];
  expect(forgotten.map(([, name]) => name)).toEqual([]);
});

it.each(['index', 'clients', 'receiver', 'testing'])('the entry point %s exports RunspanError', async (entry) => {
  const { RunspanError } = await import(`../../src/${entry}.ts`);
  expect(new RunspanError('RUNSPAN_TIMEOUT', 'late')).toMatchObject({ code: 'RUNSPAN_TIMEOUT', message: 'late' });
});

describe('the report', () => {
  const { path: folder, remove } = temporaryFolder();
  afterAll(remove);

  it('shows a changed signature, in a file that the entry only re-exports', () => {
    const project = (parameter: string): string => {
      mkdirSync(join(folder, 'dist'), { recursive: true });
      cpSync(join(root, 'package.json'), join(folder, 'package.json'));
      writeFileSync(join(folder, 'dist/main.d.ts'), `export { wrap } from './inner.ts';\n`);
      writeFileSync(join(folder, 'dist/inner.d.ts'), `export declare function wrap(name: ${parameter}): void;\n`);
      return apiReporter(folder, [])('dist/main.d.ts');
    };
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    expect(project('string')).toContain('export function wrap(name: string): void;');
    expect(project('number')).toContain('export function wrap(name: number): void;');
  });
});
