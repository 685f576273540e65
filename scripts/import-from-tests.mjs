import { join } from 'node:path';
import { runnerImport } from 'vite';
import { root } from './run.mjs';

/**
 * Imports a TypeScript module of the tests, which Node 20 cannot load.
 *
 * @param {string} path below `test/`
 */
export async function importFromTests(path) {
  const { module } = await runnerImport(join(root, 'test', path), { configFile: false, logLevel: 'error', root });
  return module;
}
