#!/usr/bin/env node
// npm run bench [-- full | ingest | receiver | clickhouse | viewer | page] [--node VERSION] [options]
//
// Runs a benchmark after a build, with `--node` on another Node. Its child processes use the same Node. `page` only
// generates docs/benchmarks-tables.md.
import { build, failWith, nodeFor, run } from './run.mjs';

const PROGRAMS = {
  full: ['bench/run.mjs', '--full'],
  ingest: ['bench/run.mjs', '--only', 'ingest'],
  receiver: ['bench/receiver.mjs'],
  clickhouse: ['bench/clickhouse.mjs'],
  viewer: ['bench/viewer.mjs'],
  page: ['bench/page.mjs'],
};

const [name = '', ...rest] = process.argv.slice(2);
const isNamed = Object.hasOwn(PROGRAMS, name);
const program = isNamed ? PROGRAMS[name] : ['bench/run.mjs'];
const given = isNamed ? rest : process.argv.slice(2);

const at = given.indexOf('--node');
const version = at < 0 ? undefined : (given[at + 1] ?? '');
const node = nodeFor(version);
if (at >= 0 && node === undefined) failWith(`Expected --node to be a version like 26, got '${version}'`);
const options = given.filter((_, index) => at < 0 || index < at || index > at + 1);
if (name === 'page' || build()) run([...program, ...options], { node });
