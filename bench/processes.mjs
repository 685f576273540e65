import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { complaintOf } from './complaint.mjs';
import { durabilityOf, environmentOf, fileOf, isTraced, isUsual } from './drivers.mjs';
import { planOf } from './plan.mjs';
import { runsOf } from './workloads/workload.mjs';

/** Longer than any driver takes: one that hangs fails its row, and the others still run. */
const DRIVER_TIMEOUT_MS = 300_000;

/** As much as tells what is wrong. */
const SAID_CHARS_MAX = 10_000;

/**
 * Starts the sink, the service that all drivers send to. `ask` takes `reset`, `count`, or `behave` with how it is to answer from
 * now on, and gives back its count.
 */
export async function startSink() {
  const child = fork(pathOf('sink/service.mjs'));
  const [{ port }] = await once(child, 'message');
  const ask = async (kind, more) => {
    child.send({ kind, ...more });
    const [{ count }] = await once(child, 'message');
    return count;
  };
  return { url: `http://127.0.0.1:${port}`, ask, close: () => child.disconnect() };
}

/**
 * Runs one driver in a process of its own. `plan` says what it is to do, `behaviour` how the sink answers once the driver is
 * warm, when its count begins too. Gives back the driver's figures with what has arrived, or `complaint`: why there are none, or
 * why they do not count. Where nothing is to be delivered, nothing has to arrive.
 */
export async function runDriver(name, { sink, plan: given, behaviour = {}, beside }) {
  const plan = planOf(given);
  const { takesGzip } = plan;
  await sink.ask('behave', { takesGzip });
  const spool = spoolOf(name);
  const child = fork(pathOf(fileOf(name)), [JSON.stringify(plan)], {
    env: {
      ...bareEnvironment(),
      ...environmentOf(name, sink.url, plan),
      ...spool.env,
      ...(!isUsual(name) && { BENCH_BESIDE: beside }),
    },
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), DRIVER_TIMEOUT_MS);
  let said = '';
  child.stderr.on('data', (chunk) => {
    if (said.length < SAID_CHARS_MAX) said += chunk;
  });
  let figures;
  let count;
  child.on('message', async (message) => {
    if (message.kind === 'warm') {
      await sink.ask('reset');
      await sink.ask('behave', { takesGzip, ...behaviour });
    }
    if (message.kind === 'done') {
      figures = message.figures;
      count = await sink.ask('count');
    }
    child.send({});
  });
  const [code, signal] = await once(child, 'close');
  clearTimeout(timer);
  spool.remove();
  await sink.ask('behave', {});
  if (signal !== null || code !== 0 || count === undefined) {
    const why = signal === null ? `ended with ${code}` : `killed by ${signal}`;
    return { complaint: `${why}: ${firstError(said)}` };
  }
  const runs = runsOf(plan);
  const { bytes, bodyBytes, payloadBytes, requests, requestsAtOnce, refused } = count;
  const arrived = {
    bytesPerRun: bytes / runs,
    bodyBytesPerRun: bodyBytes / runs,
    payloadBytesPerRun: payloadBytes / runs,
    requests,
    requestsAtOnce,
    refused,
  };
  const result = { runs, ...figures, ...arrived };
  if (!plan.isDelivered) return result;
  const complaint = complaintOf(count, isTraced(name) ? runs : 0);
  return { ...result, complaint: complaint ?? (said === '' ? undefined : `it said: ${firstError(said)}`) };
}

/** The folder of a driver that writes runs to disk, and the variables for it. */
function spoolOf(name) {
  const durability = durabilityOf(name);
  if (durability === undefined) return { env: {}, remove() {} };
  const folder = mkdtempSync(join(tmpdir(), 'runspan-bench-'));
  return {
    env: { RUNSPAN_DURABILITY: durability, RUNSPAN_SPOOL_DIR: folder },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The caller's environment without settings of anything that is measured. */
export function bareEnvironment() {
  const settings = /^(RUNSPAN|LANGSMITH|LANGCHAIN|LANGFUSE|BRAINTRUST|OTEL|NODE|BENCH)_/;
  return Object.fromEntries(Object.entries(process.env).filter(([key]) => !settings.test(key)));
}

/** The line that names the error, out of what Node prints when a program throws. */
function firstError(text) {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return (lines.find((line) => /^\w*Error\b/.test(line)) ?? lines[0] ?? 'no reason given').slice(0, 160);
}

function pathOf(file) {
  return fileURLToPath(new URL(file, import.meta.url));
}
