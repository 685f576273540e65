// Runs in the main process of vitest, where `vitest` cannot be imported.
import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { startNode } from '../../support/program.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of a database in the ClickHouse that the files of a project share. */
    clickHouse: string;
  }
}

/** Starts one process for all files. The process loads ClickHouse when a test uses it. */
export default async function setUp({ provide }: TestProject): Promise<() => Promise<void>> {
  const { url, stop } = await startProcess();
  provide('clickHouse', url);
  return stop;
}

const SHIM = fileURLToPath(new URL('./shim.mjs', import.meta.url));
/** A shim that hangs is killed after this time. */
const LIFE_MAX_MS = 3_600_000;

export async function startProcess(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const folder = mkdtempSync(join(dataRoot(), 'runspan-clickhouse-'));
  const { child, printed, ended } = startNode([SHIM, folder], {}, undefined, LIFE_MAX_MS);
  const [url] = await printed(/http:\S+/);
  return {
    url,
    stop: async () => {
      child.stdin?.end();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A file system in memory. */
const MEMORY = '/dev/shm';
const MEMORY_BYTES_MIN = 2_000_000_000;

/** Returns the parent of data folders. ClickHouse writes many small files, which some disks create slowly. */
function dataRoot(): string {
  if (!existsSync(MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize < MEMORY_BYTES_MIN ? tmpdir() : MEMORY;
}
