/**
 * What each level of durability costs while the service is well, what it delivers when the service is slow or refuses now and
 * then, and what memory it needs while the service is away. Few turns, so that all of it takes well under a minute.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runDriver } from '../processes.mjs';
import { median } from '../statistics.mjs';
import { ratioBetween } from '../summary.mjs';
import { textTable } from '../text-table.mjs';
import { agent } from '../workloads/agent.mjs';
import { memoryWithoutService } from './durability-memory.mjs';

const LEVELS = ['memory', 'spill', 'write-ahead'];
const WARMUP_TURNS = 2_000;
const COST = { rounds: 3, turns: 3_000 };
/** What waits stays below the limit of the queue in all of them: a level that loses something has no figure. */
const SLOW = { turns: 4_000, latencyMs: 50 };
const REFUSING = { turns: 7_000, failEvery: 100 };

export async function durability(sink) {
  const parts = [await cost(sink), await throughput(sink), await memoryWithoutService()];
  const [ofCost, ofThroughput, ofMemory] = parts.map(({ figures }) => figures);
  return {
    table: parts.map(({ table }) => table).join('\n\n'),
    figures: { cost: ofCost, throughput: ofThroughput, memory: ofMemory },
  };
}

async function cost(sink) {
  const names = ['limit', ...LEVELS];
  const rounds = [];
  for (let round = 0; round < COST.rounds; round++) {
    const measured = {};
    for (const name of [...names.slice(round), ...names.slice(0, round)]) {
      measured[name] = await runLevel(name, COST.turns, sink);
    }
    rounds.push(measured);
  }
  const rows = names.map((name) => {
    const complaint = rounds.map((round) => round[name].complaint).find(Boolean);
    if (complaint !== undefined) return [name, `invalid: ${complaint}`, '', '', ''];
    const of = (figure) => median(rounds.map((round) => round[name][figure]));
    const ratio = (other) => `${(ratioBetween(name, other, rounds, 'cpuUsPerRun') ?? Number.NaN).toFixed(2)} ×`;
    return [name, of('cpuUsPerRun').toFixed(2), ratio('limit'), ratio('memory'), of('turnP99Us').toFixed(0)];
  });
  const table = textTable(['durability, service up', 'CPU µs/run', '× limit', '× memory', 'turn p99 µs'], rows);
  const runs = COST.turns * agent.runsPerTurn;
  return {
    table: `${table}\n${COST.rounds} interleaved rounds of ${runs} runs each, medians; ratios within each round`,
    figures: rounds,
  };
}

async function throughput(sink) {
  const slow = {};
  await sink.ask('behave', { latencyMs: SLOW.latencyMs });
  for (const name of ['limit', ...LEVELS]) slow[name] = await runLevel(name, SLOW.turns, sink);
  const refusing = {};
  await sink.ask('behave', { failEvery: REFUSING.failEvery });
  // The limit sends nothing again; the levels tell of it, which is no complaint here.
  for (const name of LEVELS) refusing[name] = await runLevel(name, REFUSING.turns, sink, { RUNSPAN_LOG: 'error' });
  await sink.ask('behave', {});
  const rows = ['limit', ...LEVELS].map((name) => [name, delivered(slow[name]), delivered(refusing[name], true)]);
  const titles = ['runs/s, delivered', `${SLOW.latencyMs} ms of latency`, `1 in ${REFUSING.failEvery} answered 503`];
  const [slowRuns, refusingRuns] = [SLOW, REFUSING].map(({ turns }) => turns * agent.runsPerTurn);
  return {
    table: `${textTable(titles, rows)}\none round, ${slowRuns} and ${refusingRuns} runs, until the last is delivered; invalid when one is lost`,
    figures: { slow, refusing },
  };
}

function delivered(result, isRefused = false) {
  if (result === undefined) return '–';
  const complaint = result.complaint ?? (isRefused && result.refused === 0 ? 'nothing was refused' : undefined);
  return complaint === undefined ? result.runsPerSecond.toFixed(0) : `invalid: ${complaint}`;
}

async function runLevel(name, turns, sink, variables = {}) {
  const plan = { turns, warmupTurns: WARMUP_TURNS };
  if (name === 'limit') return runDriver('limit', { plan, sink });
  const spoolDir = mkdtempSync(join(tmpdir(), 'runspan-bench-'));
  const env = { RUNSPAN_DURABILITY: name, RUNSPAN_SPOOL_DIR: spoolDir, ...variables };
  const result = await runDriver('traceable', { plan, sink, env });
  rmSync(spoolDir, { recursive: true, force: true });
  return result;
}
