#!/usr/bin/env node
// Compares the behaviour of this build with that of an earlier one: npm run test:net -- --against <folder>.
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const USAGE = `usage: node scripts/net/net.mjs [programs] [values] --against <folder of a built checkout>
  --candidate <folder>  the build to check, by default this checkout
  --node <file>         the Node that runs both builds, by default this one
  --values <count>      values to compare, by default 20000
  --programs <count>    programs to compare, by default 200
  --only <number>       one program, with all that it did
  --seed <number>       by default 1`;

const { values: given, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    against: { type: 'string' },
    candidate: { type: 'string', default: fileURLToPath(new URL('../..', import.meta.url)) },
    node: { type: 'string', default: process.execPath },
    values: { type: 'string', default: '20000' },
    programs: { type: 'string', default: '200' },
    only: { type: 'string' },
    seed: { type: 'string', default: '1' },
  },
});
const parts = positionals.length === 0 ? ['programs', 'values'] : positionals;
const folders = [given.against ?? '', given.candidate].map((folder) => resolve(folder));
const missing = folders.filter((folder) => !existsSync(join(folder, 'dist/index.js')));
if (given.against === undefined || parts.some((part) => part !== 'programs' && part !== 'values')) {
  console.error(USAGE);
  process.exitCode = 2;
} else if (missing.length > 0) {
  console.error(`No dist/index.js in ${missing.join(' and ')}; run \`npm ci\` and \`npm run build\` there first.`);
  process.exitCode = 2;
} else process.exitCode = (await compareAll()) ? 0 : 1;

async function compareAll() {
  const options = { folders, node: given.node, seed: Number(given.seed) };
  const startedMs = Date.now();
  let isFine = true;
  if (parts.includes('programs')) {
    const { comparePrograms } = await import('./programs.mjs');
    const only = given.only === undefined ? undefined : Number(given.only);
    isFine = (await comparePrograms({ ...options, count: Number(given.programs), only })) && isFine;
  }
  if (parts.includes('values')) {
    const { compareValues } = await import('./values.mjs');
    isFine = (await compareValues({ ...options, count: Number(given.values) })) && isFine;
  }
  const seconds = ((Date.now() - startedMs) / 1_000).toFixed(1);
  console.log(`${isFine ? 'no unintended difference' : 'DIFFERENT'} after ${seconds} s`);
  return isFine;
}
