#!/usr/bin/env node
// npm run generate                             updates all files that a test compares: api, matrix and lockfile
// npm run generate -- api                      docs/reference/
// npm run generate -- matrix                   docs/opentelemetry-attributes.md, and the tables in docs/configuration.md
// npm run generate -- lockfile                 the lockfiles' missing entries
// npm run generate -- screenshots              docs/images/
// npm run generate -- site [--serve] [--base /runspan/]   the documentation site, see scripts/docs.mjs
import { build, failWith, run } from './run.mjs';

const GENERATORS = {
  api: () => build() && updateCommitted('test/package/api.test.ts'),
  matrix: () => updateCommitted('test/package/attribute-matrix.test.ts', 'test/package/settings-page.test.ts'),
  lockfile: () => run(['scripts/lockfile.mjs']),
  screenshots: () => build() && run(['scripts/build-chat.mjs']) && run(['scripts/screenshots/screenshots.mjs']),
  site: (options) => run(['scripts/docs.mjs', ...options]),
};

const [name, ...options] = process.argv.slice(2);
if (name === undefined) for (const each of ['api', 'matrix', 'lockfile']) GENERATORS[each]();
else if (Object.hasOwn(GENERATORS, name)) GENERATORS[name](options);
else failWith(`usage: npm run generate [-- ${Object.keys(GENERATORS).join(' | ')}]`);

/** Writes the committed files that the tests compare with the code. */
function updateCommitted(...testFiles) {
  return run(['node_modules/vitest/vitest.mjs', 'run', ...testFiles, '--update', '--testNamePattern', 'committed']);
}
