#!/usr/bin/env node
// Runs a program on another Node: `node scripts/on-node.mjs bench/run.mjs --node 26 [arguments]`. Without `--node` the program runs
// on this Node. Its child processes use the same Node.
import { spawnSync } from 'node:child_process';
import { delimiter, dirname } from 'node:path';
import { nodeBinary } from './node-binary.mjs';

const [program, ...given] = process.argv.slice(2);
const at = given.indexOf('--node');
const version = at < 0 ? undefined : (given[at + 1] ?? '');

if (version !== undefined && !/^\d+(\.\d+){0,2}$/.test(version)) {
  console.error(`Expected --node to be a version like 26, got '${version}'`);
  process.exitCode = 2;
} else {
  const binary = version === undefined ? process.execPath : nodeBinary(version);
  const { status } = spawnSync(
    binary,
    [program, ...given.filter((_, index) => at < 0 || index < at || index > at + 1)],
    {
      stdio: 'inherit',
      env: { ...process.env, PATH: [dirname(binary), process.env.PATH].join(delimiter) },
    },
  );
  process.exitCode = status ?? 1;
}
