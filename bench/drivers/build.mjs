import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** At full speed, programs create runs faster than the receiver stores them. */
export const QUEUE_ROOM = { queueRuns: 1_000_000, queueBytes: 2 ** 30 };

/** Imports an entry of this checkout's build, or of the build under `BENCH_BESIDE`. */
export function importBuild(entry) {
  const { BENCH_BESIDE } = process.env;
  if (BENCH_BESIDE !== undefined) return import(pathToFileURL(join(BENCH_BESIDE, 'dist', `${entry}.js`)).href);
  return import(entry === 'index' ? 'runspan' : `runspan/${entry}`);
}
