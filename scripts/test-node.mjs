#!/usr/bin/env node
// Runs the tests on another Node: `npm run test:node -- 26 [vitest arguments]`.
import { execFileSync, spawnSync } from 'node:child_process';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeBinary } from './node-binary.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const [version, ...vitestArguments] = process.argv.slice(2);

if (version === undefined || !/^\d+(\.\d+){0,2}$/.test(version)) {
  console.error('usage: npm run test:node -- <version, for example 26> [arguments of vitest]');
  process.exitCode = 2;
} else {
  const binary = nodeBinary(version);
  const found = execFileSync(binary, ['--version'], { encoding: 'utf8' }).trim();
  console.log(`the suite on Node ${found}`);
  const answer = spawnSync(binary, [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...vitestArguments], {
    cwd: root,
    stdio: 'inherit',
    // Programs that tests start by name also use this Node.
    env: { ...process.env, PATH: [dirname(binary), process.env.PATH].join(delimiter) },
  });
  process.exitCode = answer.status ?? 1;
}
