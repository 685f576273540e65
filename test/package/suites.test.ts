import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isolated, programs, virtualTime } from '../suites.ts';
import { root } from '../support/folders.ts';

it('every listed test file exists', () => {
  expect([...programs, ...isolated].filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

it('no test file is in two suites', () => {
  const listed = [...programs, ...isolated, ...virtualTime];
  expect(listed.filter((path, index) => listed.indexOf(path) !== index)).toEqual([]);
});
