/**
 * The composition root: the one place that knows both the call path and delivery. It gives `run/sink` its factory, and
 * keeps count of the exporters of the process.
 */
import { diagnostics } from './base/diagnostics.ts';
import { guard } from './base/guard.ts';
import { exporterFor, preloadIfConfigured, preloadSoon, renewKey } from './export/create-exporter.ts';
import type { Exporter as RunExporter } from './export/exporter.ts';
import { Ledger, type Stats, totalStats } from './export/ledger.ts';
import type { ConfigureOptions } from './export/settings.ts';
import { resolveSettings } from './export/settings.ts';
import { flushedAfter } from './instrument/with-flush.ts';
import { untraced } from './run/context.ts';
import { projectText } from './run/encoded-run.ts';
import {
  type FlushLimit,
  type FlushResult,
  installSink,
  noopSink,
  type RunSink,
  registerPreload,
  registerSinkFactory,
} from './run/sink.ts';
import { registerStats } from './run/stats.ts';

/**
 * Takes runs and delivers them in the background, with a queue and a ledger of its own. Pass it as `exporter` to
 * `traceable`, `startRun` or a span processor; runs below go where their parent goes.
 */
export interface Exporter extends RunSink {
  /** Its own ledger, and how its delivery is doing. */
  stats(): Stats;
  /**
   * Resolves when the queue is less than three quarters full: at once if it is already, and when the exporter closes. A batch
   * job that awaits it before each trace waits instead of losing runs as `queue_full`. Keeps the process alive meanwhile.
   */
  ready(): Promise<void>;
}

/** Stands where tracing is off. */
const offExporter: Exporter = { ...noopSink, stats: () => totalStats(), ready: () => Promise.resolve() };

/** Those that have not closed. */
const exporters = new Set<RunExporter>();

/** The ledgers of all that may still count: a closed exporter counts the runs that reach it as dropped. */
const ledgers = new Set<Ledger>();
/** The sum of those that are gone. */
const settled = new Ledger();
const gone = new FinalizationRegistry<Ledger>((ledger) => {
  ledgers.delete(ledger);
  settled.absorb(ledger);
});

/** Those of them that were configured for the process: a key that is configured takes the place of theirs. */
const successive = new Set<RunExporter>();

// A line that is told by a function that is traced, or a console that is, would be followed by others about its run. Where
// there is no exporter there is nothing to trace, and no context is entered.
diagnostics.callBy((call) => (exporters.size === 0 ? call() : untraced(call)));

let configured: RunExporter | undefined;

registerSinkFactory(() => {
  configured = build(undefined, true);
  return configured;
});
registerPreload(preloadIfConfigured);
registerStats(stats);

/**
 * Sets up tracing for the process, in place of what the environment alone would give. Called again, later runs go to a
 * new exporter, and the old one finishes what it has and closes. What is wrong in the options is told in one line each
 * and left out; without a usable endpoint tracing is off. Never throws.
 */
export function configure(options?: ConfigureOptions): Exporter {
  configured?.retire();
  configured = build(options, true);
  installSink(configured);
  return configured ?? offExporter;
}

/**
 * Makes an exporter that is not installed for the process: for one tenant's key, or a second service. Options are those
 * of `configure`. Close it when you are done with it.
 */
export function createExporter(options?: ConfigureOptions): Exporter {
  return build(options, false) ?? offExporter;
}

/**
 * Waits until everything recorded before the call is delivered or given up, by every exporter; runs that are still open
 * are not waited for. Never rejects: `ok` is false when the limit came first, and `pending` says how many runs were left.
 */
export async function flush(limit?: FlushLimit): Promise<FlushResult> {
  return together([...exporters].map((exporter) => exporter.flush(limit)));
}

/** Flushes, then closes every exporter; later runs are counted as dropped (`closed`). Never rejects. */
export async function shutdown(limit?: FlushLimit): Promise<FlushResult> {
  return together([...exporters].map((exporter) => exporter.close(limit)));
}

/**
 * Wraps the handler of a serverless function, so that its runs are delivered before the platform freezes the instance. The
 * wrapped handler has the same type, results and errors. If the handler returns a promise, the caller's promise settles after
 * the flush. A web `Response` with a body is returned at once, and its reader receives the end after the flush. If the platform
 * has `waitUntil`, it receives the flush, and nothing is delayed.
 *
 * The flush takes at most `timeoutMs`, by default 2 seconds, and on AWS Lambda at most the remaining time of the call less a
 * quarter of a second. A result that is not a promise cannot be delayed: its flush continues after the call.
 */
export function withFlush<Handler extends CallableFunction>(handler: Handler, options?: FlushLimit): Handler {
  return flushedAfter(handler, options, flush);
}

/**
 * The delivery ledger of all exporters that the process has had, summed, and how delivery is doing. It sorts the durations
 * of up to 500 requests of each, tens of microseconds: ask now and then, and not in every call.
 */
export function stats(): Stats {
  return totalStats(
    [settled, ...ledgers],
    [...exporters].map((exporter) => exporter.backlog()),
  );
}

function build(options: ConfigureOptions | undefined, isForProcess: boolean): RunExporter | undefined {
  // Options may be read through getters of the application.
  const settings = guard('configure', () => resolveSettings(options, isForProcess));
  if (settings === undefined) {
    diagnostics.debug('tracing is off: there is no usable endpoint, or it was turned off');
    return undefined;
  }
  diagnostics.debug(`runs go to ${settings.endpoint.origin}, project "${projectText(settings.capture.project)}"`);
  if (settings.dispatcher === undefined) preloadSoon();
  const ledger = new Ledger();
  const exporter = exporterFor(settings, ledger, () => {
    exporters.delete(exporter);
    successive.delete(exporter);
  });
  ledgers.add(ledger);
  gone.register(exporter, ledger);
  exporters.add(exporter);
  if (!isForProcess) return exporter;
  for (const earlier of successive) renewKey(earlier, settings);
  successive.add(exporter);
  return exporter;
}

async function together(results: readonly Promise<FlushResult>[]): Promise<FlushResult> {
  const all = await Promise.all(results);
  return { ok: all.every(({ ok }) => ok), pending: all.reduce((sum, { pending }) => sum + pending, 0) };
}
