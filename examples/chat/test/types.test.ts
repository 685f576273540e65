import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const folder = fileURLToPath(new URL('..', import.meta.url));
const compiler = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));

// The server is compiled by the build.
test.each(['test', 'page'])('the types of %s hold', async (project) => {
  const { stdout } = await promisify(execFile)(process.execPath, [compiler, '-p', project], { cwd: folder }).catch(
    (error: { stdout: string }) => error,
  );
  expect(stdout).toBe('');
});
