import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { root } from '../support/folders.ts';

interface Defect {
  readonly title: string;
  readonly file: string;
  readonly find: string;
}

const folder = join(root, 'test/defects');
const defects: Defect[] = [];
for (const name of readdirSync(folder)) {
  const { defects: some } = await import(pathToFileURL(join(folder, name)).href);
  defects.push(...some);
}

test('every planted defect has its place in the source, once', () => {
  const misplaced = defects.filter(({ file, find }) => readFileSync(join(root, file), 'utf8').split(find).length !== 2);
  expect(defects.length).toBeGreaterThan(0);
  expect(misplaced.map(({ title, file }) => `${file}: ${title}`)).toEqual([]);
});
