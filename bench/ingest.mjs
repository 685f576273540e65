/** Measures drivers that send to runspan's own receiver, which writes into an SQLite file. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bareEnvironment, runDriver } from './processes.mjs';

const SERVING = fileURLToPath(new URL('receiver/serving.mjs', import.meta.url));

/** Runs one driver against a new receiver with an empty file. */
export async function runIntoReceiver(name, job) {
  const receiver = await startReceiver(name);
  try {
    return await runDriver(name, { ...job, sink: receiver, figuresOf: intakeFigures });
  } finally {
    await receiver.close();
  }
}

/**
 * Returns a driver's figures from the receiver's count. A search finds all runs after the receiver has indexed their
 * texts, which it does between writes and after the last write.
 */
export function intakeFigures({ bytes, requests, cpuUs, indexed }, runs, { runsPerSecond }) {
  const bytesPerRun = bytes / runs;
  return {
    requests,
    bytesPerRun,
    mbPerSecond: (bytesPerRun * runsPerSecond) / 1e6,
    receiverCpuUsPerRun: cpuUs / runs,
    ...(indexed && {
      indexedRunsPerSecond: runs / (runs / runsPerSecond + indexed.seconds),
      indexedCpuUsPerRun: indexed.cpuUs / runs,
    }),
  };
}

/** Starts a receiver in its own process, with the interface of the sink. */
async function startReceiver(driver) {
  const folder = mkdtempSync(join(tmpdir(), 'runspan-bench-'));
  const child = fork(SERVING, [join(folder, 'runs.db'), ...(driver === 'simple' ? ['simple'] : [])], {
    env: bareEnvironment(),
  });
  const [url] = await once(child, 'message');
  const send = async (message) => {
    child.send(message);
    return (await once(child, 'message'))[0];
  };
  const ask = async (kind) => {
    if (kind === 'behave') return undefined;
    // The texts of warm-up runs are not indexed while the clock runs.
    if (kind === 'reset') await send('settle');
    const startedMs = performance.now();
    const count = await send(kind);
    // Indexing takes longer than all else, and as long for each driver, so only one row includes it.
    if (kind !== 'count' || driver !== 'prepared') return count;
    await send('settle');
    const seconds = (performance.now() - startedMs) / 1_000;
    return { ...count, indexed: { seconds, cpuUs: (await send('count')).cpuUs } };
  };
  const close = async () => {
    if (child.connected) {
      child.send('end');
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  };
  return { url, ask, close };
}
