// Creates an exporter in virtual time with a scripted HTTP service. Import `virtual-timers.ts` first, so that the
// library uses the timers of the virtual clock.

// The library loads these modules at their first use, which takes an unknown number of turns of the event loop.
import 'form-data-encoder';
import 'p-queue';
import { onTestFinished } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import type { Limits, Tuning } from '#src/config/limits.ts';
import { type ConfigureOptions, resolveSettings, type Settings } from '#src/config/options.ts';
import { type ExporterTime, exporterFor } from '#src/delivery/create-exporter.ts';
import { Ledger, type Stats } from '#src/delivery/ledger.ts';
import { delay } from '#src/platform/timers.ts';
import type { Run } from '#src/run/run.ts';
import type { RunOptions } from '#src/run/run-options.ts';
import type { FlushLimit, FlushResult } from '#src/run/sink.ts';
import { startRun } from '#src/run/start-run.ts';
import { logLines } from './log-lines.ts';
import { type Reply, type ScriptedService, type ServiceInfo, scriptedService, traffic } from './scripted-service.ts';
import { threadWork } from './thread-work.ts';
import { virtualClock } from './virtual-timers.ts';

export interface Setup {
  readonly limits?: Partial<Limits & Tuning>;
  readonly options?: ConfigureOptions;
  /** The response to each request with runs. @default 202 */
  readonly reply?: Reply;
  /** The response to `GET /info`. @default 404 */
  readonly info?: ServiceInfo;
  /** The service of another delivery, instead of a new one. */
  readonly service?: ScriptedService;
  /** The endpoint, if it is not the address of the service. */
  readonly endpoint?: string;
  /** Whether large requests are compressed. By default, those to localhost are not. */
  readonly compress?: boolean | undefined;
  /** Replaces the virtual clock, the random number 1 and the real file system. */
  readonly time?: Partial<ExporterTime>;
}

type Exporter = ReturnType<typeof exporterFor>;

export interface Delivery {
  readonly exporter: Exporter;
  readonly service: ScriptedService;
  /** Warnings and errors in the log, each with its level. */
  readonly lines: string[];
  /** `reason name` of each dropped run. */
  readonly drops: string[];
  readonly details: (string | undefined)[];
  readonly isClosed: boolean;
  /** Starts a root run, or a child of the parent. */
  start(name?: string, options?: Partial<RunOptions>, parent?: Run): Run;
  whole(name?: string, options?: Partial<RunOptions>, outputs?: unknown): Run;
  /** Starts and ends `count` runs named 1, 2, and so on. */
  wholes(count: number): Run[];
  /** Flushes. The clock advances until the promise settles, also in `close`. */
  flush(limit?: FlushLimit): Promise<FlushResult>;
  close(limit?: FlushLimit): Promise<FlushResult>;
  /** Has three runs named `good` accepted, one after another: evidence against runs that have failed before. */
  others(): Promise<void>;
  stats(): Stats;
}

export async function delivery(setup: Setup = {}): Promise<Delivery> {
  // Each test begins at 0 ms. Hooks run in reverse order.
  onTestFinished(() => virtualClock.reset());
  const service = setup.service ?? (await scriptedService(setup.reply, setup.info));
  const lines = logLines('warn');
  const drops: string[] = [];
  const details: (string | undefined)[] = [];
  const given = resolveSettings(
    {
      endpoint: setup.endpoint ?? service.url,
      onDrop: (reason, { name, detail }) => {
        drops.push(`${reason} ${name}`);
        details.push(detail);
      },
      ...setup.options,
    },
    false,
  ) as Settings;
  const settings = { ...given, limits: { ...given.limits, startDelayMs: 0, ...setup.limits } };
  let isClosed = false;
  const exporter = exporterFor(
    { ...settings, compress: setup.compress ?? settings.compress },
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
    others: async () => {
      for (let count = 0; count < 3; count++) {
        const { id } = whole('good');
        void exporter.flush();
        await until(() => service.arrivals('good').some((arrival) => arrival.id === id && arrival.isEnded));
        await advance(1_000);
      }
    },
    stats: () => exporter.stats(),
  };
}

/** Limits that keep all runs in the queue until a flush, which sends them in one batch. */
export const onFlush: Partial<Limits & Tuning> = { lingerMs: 1_000_000, requestsInFlight: 1 };

/** Advances the clock, and waits for the work of all timers that become due. */
export async function advance(ms: number): Promise<void> {
  await settle();
  await virtualClock.advance(ms, settle);
  await settle();
}

/** Advances the clock, timer by timer, until the condition is true. */
export async function until(condition: () => boolean): Promise<void> {
  for (let steps = 0; ; steps++) {
    await settle();
    if (condition()) return;
    if (steps === STEPS_MAX) throw new Error(`the condition is still false after ${virtualClock.nowMs} ms`);
    const nextMs = virtualClock.nextMs;
    if (nextMs !== undefined) await virtualClock.advance(nextMs - virtualClock.nowMs, settle);
  }
}

const STEPS_MAX = 2_000;

/** Advances the clock until the promise settles. */
export async function finished<Value>(promise: Promise<Value>): Promise<Value> {
  let isSettled = false;
  const settles = (): void => {
    isSettled = true;
  };
  promise.then(settles, settles);
  await until(() => isSettled);
  return promise;
}

/** After this many turns of the event loop without traffic, no data is on its way over a socket. */
const QUIET_TURNS = 16;

/** Waits until no request, response or compression is in progress. */
export async function settle(): Promise<void> {
  for (let quiet = 0, seen = traffic.count; quiet < QUIET_TURNS; quiet++) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (seen === traffic.count && threadWork.pending === 0) continue;
    seen = traffic.count;
    quiet = 0;
  }
}
