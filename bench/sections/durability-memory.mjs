/** The memory of a program whose service is away, over that of the untraced one: all programs at once, each for some seconds. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { textTable } from '../text-table.mjs';
import { runProgram } from './program.mjs';

const RUNS_PER_SECOND = 5_000;
const SECONDS = 6;
const LEVELS = ['untraced', 'memory', 'spill', 'write-ahead'];

export async function memoryWithoutService() {
  const spoolDir = mkdtempSync(join(tmpdir(), 'runspan-bench-'));
  const env = { RUNSPAN_SPOOL_DIR: spoolDir };
  const measured = await Promise.all(
    LEVELS.map((level) => runProgram('durability-memory-program.mjs', [level, RUNS_PER_SECOND, SECONDS], { env })),
  );
  rmSync(spoolDir, { recursive: true, force: true });
  const [untraced] = measured;
  const rows = LEVELS.map((level, at) => rowOf(level, measured[at], untraced.peakRssMiB));
  const titles = ['peak RSS, service down', 'MiB', 'over untraced', 'runs', 'in memory', 'on disk', 'dropped'];
  const table = textTable(titles, rows);
  return {
    table: `${table}\n${RUNS_PER_SECOND} runs a second for ${SECONDS} s, default limits, all programs at once; what is dropped was refused as queue_full, and told`,
    figures: Object.fromEntries(LEVELS.map((level, at) => [level, measured[at]])),
  };
}

function rowOf(level, { peakRssMiB, stats, lines }, untracedMiB) {
  const over = (peakRssMiB - untracedMiB).toFixed(0);
  if (stats === undefined) return [level, peakRssMiB.toFixed(0), '–', '–', '–', '–', '–'];
  const { created, open, queued, inFlight, spooled, sent, dropped, droppedByReason } = stats;
  const adds = created === open + queued + inFlight + spooled + sent + dropped;
  const isTold = dropped === 0 || lines.some((line) => line.includes('dropped (queue_full)'));
  if (!adds || !isTold || dropped !== droppedByReason.queue_full) {
    return [
      level,
      `invalid: ${adds ? 'a loss was not told as queue_full' : 'the ledger does not add up'}`,
      '',
      '',
      '',
      '',
      '',
    ];
  }
  return [level, peakRssMiB.toFixed(0), over, created, queued + inFlight, spooled, dropped].map(String);
}
