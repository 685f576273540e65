// An exporter as the composition root makes it, in virtual time, before a scripted HTTP service. A test file imports
// `virtual-timers.ts` before anything else, so that the timers of the library are those of the virtual clock.

// Loaded here, because the library loads them at their first use, in turns of the event loop that nobody can count.
import 'form-data-encoder';
import 'p-queue';
import 'undici';
import { onTestFinished } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import type { Limits } from '../../src/base/limits.ts';
import { delay } from '../../src/base/timers.ts';
import { type ExporterTime, exporterFor } from '../../src/export/create-exporter.ts';
import { Ledger, type Stats } from '../../src/export/ledger.ts';
import type { ConfigureOptions } from '../../src/export/settings.ts';
import { resolveSettings, type Settings } from '../../src/export/settings.ts';
import type { Run } from '../../src/run/run.ts';
import type { RunOptions } from '../../src/run/run-options.ts';
import type { FlushLimit, FlushResult } from '../../src/run/sink.ts';
import { startRun } from '../../src/run/start-run.ts';
import { type Reply, type ScriptedService, type ServiceInfo, scriptedService, traffic } from './scripted-service.ts';
import { threadWork } from './thread-work.ts';
import { told } from './told.ts';
import { virtualClock } from './virtual-timers.ts';

export interface Setup {
  readonly limits?: Partial<Limits>;
  readonly options?: ConfigureOptions;
  /** The response to each request with runs. @default 202 */
  readonly reply?: Reply;
  /** The response to `GET /info`. @default 404 */
  readonly info?: ServiceInfo;
  /** The service of another delivery, in place of one made from `reply` and `info`. */
  readonly service?: ScriptedService;
  /** An address, in place of that of the service. */
  readonly endpoint?: string;
  /** Clocks, random numbers and the file system, if they are not the virtual clock, 1 and the real disk. */
  readonly time?: Partial<ExporterTime>;
}

type Exporter = ReturnType<typeof exporterFor>;

/** An exporter with its service, and all that it reports. */
export interface Delivery {
  readonly exporter: Exporter;
  readonly service: ScriptedService;
  /** Warnings and errors in the log, each with its level. */
  readonly lines: string[];
  /** `reason name` of each dropped run. */
  readonly drops: string[];
  /** The details of the same. */
  readonly details: (string | undefined)[];
  /** Whether the exporter has closed. */
  readonly isClosed: boolean;
  /** Starts a run, in a trace of its own unless a parent is given. */
  start(name?: string, options?: Partial<RunOptions>, parent?: Run): Run;
  /** Starts and ends a run. */
  whole(name?: string, options?: Partial<RunOptions>, outputs?: unknown): Run;
  /** The same for `count` runs named 1, 2, and so on. */
  wholes(count: number): Run[];
  /** Flush and close, with the clock moving on until they return. */
  flush(limit?: FlushLimit): Promise<FlushResult>;
  close(limit?: FlushLimit): Promise<FlushResult>;
  stats(): Stats;
}

export async function delivery(setup: Setup = {}): Promise<Delivery> {
  // Hooks run last first: each test begins at 0 ms.
  onTestFinished(() => virtualClock.reset());
  const service = setup.service ?? (await scriptedService(setup.reply, setup.info));
  const lines = told('warn');
  const drops: string[] = [];
  const details: (string | undefined)[] = [];
  const settings = resolveSettings(
    {
      endpoint: setup.endpoint ?? service.url,
      onDrop: (reason, { name, detail }) => {
        drops.push(`${reason} ${name}`);
        details.push(detail);
      },
      ...setup.options,
      limits: { startDelayMs: 0, ...setup.limits },
    },
    false,
  ) as Settings;
  let isClosed = false;
  const exporter = exporterFor(
    settings,
    new Ledger(),
    () => {
      isClosed = true;
    },
    { monotonicMs: () => virtualClock.nowMs, random: () => 1, delay, ...setup.time },
  );
  onTestFinished(async () => {
    diagnostics.setLog('silent');
    await finished(exporter.close({ timeoutMs: 0 }));
  });
  const start: Delivery['start'] = (name = 'run', options = {}, parent = undefined) =>
    parent === undefined ? startRun({ name, exporter, root: true, ...options }) : parent.child({ name, ...options });
  const whole: Delivery['whole'] = (name, options, outputs = {}) => {
    const run = start(name, options);
    run.end(outputs);
    return run;
  };
  return {
    exporter,
    service,
    lines,
    drops,
    details,
    get isClosed() {
      return isClosed;
    },
    start,
    whole,
    wholes: (count) => Array.from({ length: count }, (_, at) => whole(String(at + 1))),
    flush: (limit) => finished(exporter.flush(limit)),
    close: (limit) => finished(exporter.close(limit)),
    stats: () => exporter.stats(),
  };
}

/** Limits that keep everything in the queue until a flush, and send it in one batch. */
export const onFlush: Partial<Limits> = { lingerMs: 1_000_000, requestsInFlight: 1 };

/** Moves the clock on, and lets everything happen that is due meanwhile. */
export async function advance(ms: number): Promise<void> {
  await settle();
  await virtualClock.advance(ms, settle);
  await settle();
}

/** Moves the clock on, timer by timer, until something holds. */
export async function until(condition: () => boolean): Promise<void> {
  for (let steps = 0; ; steps++) {
    await settle();
    if (condition()) return;
    if (steps === STEPS_MAX) throw new Error(`it does not happen within ${virtualClock.nowMs} ms`);
    const nextMs = virtualClock.nextMs;
    if (nextMs !== undefined) await virtualClock.advance(nextMs - virtualClock.nowMs, settle);
  }
}

const STEPS_MAX = 2_000;

/** Moves the clock on until a promise settles. */
export async function finished<Value>(promise: Promise<Value>): Promise<Value> {
  let isSettled = false;
  const settles = (): void => {
    isSettled = true;
  };
  promise.then(settles, settles);
  await until(() => isSettled);
  return promise;
}

/** Turns of the event loop without traffic, after which nothing is on its way over a socket. */
const QUIET_TURNS = 16;

/** Waits until all work that is due now is done, requests, responses and compression included. */
export async function settle(): Promise<void> {
  for (let quiet = 0, seen = traffic.count; quiet < QUIET_TURNS; quiet++) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (seen === traffic.count && threadWork.pending === 0) continue;
    seen = traffic.count;
    quiet = 0;
  }
}
