/**
 * Connects recording and delivery. No other module imports the code for both. Registers the sink factory and keeps the
 * process's exporters.
 */
import { diagnostics } from './base/diagnostics.ts';
import { FETCH_RECORDER, type FetchRecorder, shared } from './base/shared.ts';
import type { ConfigureOptions } from './config/options.ts';
import { preloadIfConfigured } from './delivery/create-exporter.ts';
import { type Stats, totalStats } from './delivery/ledger.ts';
import { ProcessExporters } from './delivery/process-exporters.ts';
import { flushedAfter } from './instrument/with-flush.ts';
import { withoutTracing } from './platform/suppress-tracing.ts';
import { untraced } from './run/context/current.ts';
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
 * An exporter delivers runs in the background and has its own queue and counters. Pass an exporter as the `exporter`
 * option to `traceable`, `startRun` or a span processor. Nested runs use the exporter of their parent.
 */
export interface Exporter extends RunSink {
  /** Returns this exporter's counters and delivery state. */
  stats(): Stats;
  /**
   * Resolves when the queue is less than three quarters full, or when the exporter closes. In a batch job, await
   * `ready()` before each trace so that no run is dropped as `queue_full`. A pending `ready()` keeps the process alive.
   */
  ready(): Promise<void>;
}

/** The exporter that `configure` and `createExporter` return while tracing is off. */
const offExporter: Exporter = { ...noopSink, stats: () => totalStats(), ready: () => Promise.resolve() };

const all: ProcessExporters = shared('exporters', () => new ProcessExporters());

// Calls the log function with tracing off, because a traced log function could log in an endless loop. If there are no
// exporters, no run is recorded.
diagnostics.callBy((call) => withoutTracing(() => (all.isEmpty ? call() : untraced(call))));

registerSinkFactory(
  () => all.configure(undefined),
  () => !all.isEmpty,
);
registerPreload(preloadIfConfigured);
registerStats(stats);

// Jest gives each test file its own globals, but the `fetch` of the process. A `fetch` recorder from outside the test
// file does not know the file's runs and would record their model calls twice.
const { fetch } = globalThis as { fetch?: { readonly [FETCH_RECORDER]?: FetchRecorder } };
const recorder = fetch?.[FETCH_RECORDER];
if (recorder !== undefined && recorder.realm !== globalThis) Reflect.set(globalThis, 'fetch', recorder.original);

/**
 * Sets up tracing for the process. Options take precedence over environment variables. If you call `configure` again,
 * later runs go to a new exporter. The previous exporter delivers its runs and closes. Invalid options are logged once
 * and ignored. Tracing is off if there is no valid endpoint. Never throws.
 */
export function configure(options?: ConfigureOptions): Exporter {
  const configured = all.configure(options);
  installSink(configured);
  return configured ?? offExporter;
}

/**
 * Creates an additional exporter, for example for a tenant's API key or a second service. The exporter is used only
 * where you pass it as an option. Accepts the same options as `configure`. Call `close` when you no longer need the
 * exporter.
 */
export function createExporter(options?: ConfigureOptions): Exporter {
  return all.create(options) ?? offExporter;
}

/**
 * @internal Like `createExporter`, but all callers with the same key share one exporter. After the returned sink has
 *   been garbage-collected, the exporter delivers its remaining runs and then closes.
 */
export function shareExporter(key: unknown, options: ConfigureOptions): RunSink {
  return all.share(key, options) ?? noopSink;
}

/**
 * Waits until all exporters have delivered or dropped the runs recorded before this call. Does not wait for open runs.
 * Never rejects. After a timeout, `ok` is false and `pending` is the number of undelivered runs.
 */
export async function flush(limit?: FlushLimit): Promise<FlushResult> {
  return all.flush(limit);
}

/** Flushes all exporters, then closes them. Later runs are dropped with the reason `closed`. Never rejects. */
export async function shutdown(limit?: FlushLimit): Promise<FlushResult> {
  return all.close(limit);
}

/**
 * Wraps a serverless handler so that its runs are delivered before the platform freezes the instance. The wrapped
 * handler has the same type, results and errors. If the handler returns a promise, the caller's promise settles after
 * the flush. A web `Response` with a body is returned immediately, and its body ends after the flush. If the platform
 * provides `waitUntil`, the flush runs in `waitUntil` and delays nothing.
 *
 * The flush takes up to `timeoutMs`, by default 2 seconds. On AWS Lambda, the flush ends at least 250 ms before the
 * function's timeout. If the handler returns no promise, the flush continues in the background after the handler
 * returns.
 */
export function withFlush<Handler extends CallableFunction>(handler: Handler, options?: FlushLimit): Handler {
  return flushedAfter(handler, options, flush, () => all.hasOpenRuns);
}

/**
 * Returns the delivery state and the sum of all exporters' counters in the process. Do not call `stats` for every
 * request. Each call sorts up to 500 request durations per exporter, which takes tens of microseconds.
 */
export function stats(): Stats {
  return all.stats();
}
