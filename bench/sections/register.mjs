/** Measures the time that `--import runspan/register` adds to the start of a program that imports runspan. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '../processes.mjs';
import { median } from '../statistics.mjs';
import { textTable } from '../text-table.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const STARTS = 25;
const PROGRAMS = { empty: [], runspan: ['--import', 'runspan'], register: ['--import', 'runspan/register'] };

/** Interleaves the starts, so that other load on the machine affects all equally. The first starts fill the caches. */
export async function register() {
  const importMs = [];
  const registerMs = [];
  for (let start = 0; start <= STARTS; start++) {
    const [empty, runspan, registered] = Object.values(PROGRAMS).map(startMs);
    if (start === 0) continue;
    importMs.push(runspan - empty);
    registerMs.push(registered - runspan);
  }
  const figures = [{ name: 'runspan/register', importMs: median(importMs), registerMs: median(registerMs) }];
  const rows = figures.map((figure) => [figure.name, figure.importMs.toFixed(1), `+${figure.registerMs.toFixed(1)}`]);
  const table = textTable(['start, ms', 'import of runspan', 'with register'], rows);
  return { table: `${table}\n${STARTS} starts each, medians`, figures };
}

function startMs(options) {
  const env = { ...bareEnvironment(), RUNSPAN_ENDPOINT: 'http://127.0.0.1:9' };
  const atMs = performance.now();
  const { status, stderr } = spawnSync(process.execPath, [...options, '-e', ''], { cwd: ROOT, encoding: 'utf8', env });
  if (status !== 0) throw new Error(`the program ended with ${status}: ${stderr}`);
  return performance.now() - atMs;
}
