import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { complaintOf } from './complaint.mjs';
import { durabilityOf, environmentOf, fileOf, isBeside, isTraced } from './drivers.mjs';
import { planOf } from './plan.mjs';
import { runsOf } from './workloads/workload.mjs';

/** A driver that hangs fails its row after this time. */
const DRIVER_TIMEOUT_MS = 300_000;

/** Enough for an error message. */
const STDERR_CHARS_MAX = 10_000;

/**
 * Starts the sink, the service that all drivers send to. `ask` sends it `reset`, `count`, or `behave` with its new
 * behaviour, and returns its counts.
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
 * Runs one driver in its own process. `behaviour` applies to the sink after the warm-up. `beside` is another checkout,
 * for drivers that measure one. Returns the driver's figures and those of the sink's count, with a `complaint` if they
 * do not count.
 */
export async function runDriver(name, { sink, plan: given, behaviour = {}, beside, figuresOf = sinkFigures }) {
  const plan = planOf(given);
  const { encoding } = plan;
  await sink.ask('behave', { encoding });
  const spool = spoolOf(name);
  const child = fork(pathOf(fileOf(name)), [JSON.stringify(plan)], {
    env: {
      ...bareEnvironment(),
      ...environmentOf(name, sink.url, plan),
      ...spool.env,
      ...(isBeside(name) && { BENCH_BESIDE: beside }),
    },
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), DRIVER_TIMEOUT_MS);
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    if (stderr.length < STDERR_CHARS_MAX) stderr += chunk;
  });
  let figures;
  let count;
  child.on('message', async (message) => {
    if (message.kind === 'warm') {
      await sink.ask('reset');
      await sink.ask('behave', { encoding, ...behaviour });
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
    return { complaint: `${why}: ${firstError(stderr)}` };
  }
  const runs = runsOf(plan);
  const result = { runs, ...figures, ...figuresOf(count, runs, figures) };
  if (!plan.isDelivered) return result;
  const complaints = [
    complaintOf(count, isTraced(name) ? sentOf(runs, figures) : 0),
    stderr && `stderr: ${firstError(stderr)}`,
  ];
  return { ...result, complaint: complaints.filter(Boolean).join('; ') || undefined };
}

function sinkFigures({ bytes, bodyBytes, payloadBytes, requests }, runs, figures) {
  const sent = sentOf(runs, figures);
  return {
    bytesPerRun: bytes / runs,
    bodyBytesPerRun: bodyBytes / sent,
    payloadBytesPerRun: payloadBytes / sent,
    requests,
  };
}

/** The number of runs that must arrive: all that the driver has not counted as left out. */
function sentOf(runs, { sampledOut = 0 }) {
  return runs - sampledOut;
}

/** The folder of a driver that writes runs to disk, and the variables for it. */
function spoolOf(name) {
  const durability = durabilityOf(name);
  if (durability === undefined) return { env: {}, remove() {} };
  const folder = mkdtempSync(join(tmpdir(), 'runspan-bench-'));
  return {
    env: {
      RUNSPAN_DURABILITY: durability,
      RUNSPAN_SPOOL_DIR: folder,
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The caller's environment without any settings for the measured libraries. */
export function bareEnvironment() {
  const settings = /^(RUNSPAN|LANGSMITH|LANGCHAIN|LANGFUSE|BRAINTRUST|OTEL|NODE|BENCH)_/;
  return Object.fromEntries(Object.entries(process.env).filter(([key]) => !settings.test(key)));
}

/** Returns the line with the error's name from a failed program's output. */
function firstError(text) {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return (lines.find((line) => /^\w*Error\b/.test(line)) ?? lines[0] ?? 'no reason given').slice(0, 160);
}

function pathOf(file) {
  return fileURLToPath(new URL(file, import.meta.url));
}
