import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { type ConfigureOptions, resolveSettings } from '../config/options.ts';
import { withoutTracing } from '../platform/suppress-tracing.ts';
import { delayedEndsSettled } from '../run/delayed-ends.ts';
import { projectText } from '../run/encoded-run.ts';
import { flushLimitMs } from '../run/run-options.ts';
import { type FlushLimit, type FlushResult, flushed, type RunSink } from '../run/sink.ts';
import { exporterFor, preloadSoon, renewKey } from './create-exporter.ts';
import { type Exporter, FLUSH_TIMEOUT_MS } from './exporter.ts';
import { Ledger, type Stats, totalStats } from './ledger.ts';

interface SharedExporter {
  readonly key: unknown;
  readonly exporter: Exporter;
  readonly sink: WeakRef<RunSink>;
}

export class ProcessExporters {
  readonly #open = new Set<Exporter>();
  /** Counters of all exporters in memory, including closed exporters. A closed exporter counts new runs as dropped. */
  readonly #ledgers = new Set<Ledger>();
  /** Sum of the counters from all garbage-collected exporters. */
  readonly #settled = new Ledger();
  readonly #gone = new FinalizationRegistry<Ledger>((ledger) => {
    this.#ledgers.delete(ledger);
    this.#settled.absorb(ledger);
  });

  /** Open exporters that `configure` created. All of them use a new API key that `configure` receives. */
  readonly #successive = new Set<Exporter>();
  #configured: Exporter | undefined;

  readonly #shared = new Map<unknown, SharedExporter>();
  /** Runs keep a reference to their sink. Without the sink, no run can start or end. */
  readonly #unused = new FinalizationRegistry<SharedExporter>((unused) => {
    if (this.#shared.get(unused.key) === unused) this.#shared.delete(unused.key);
    unused.exporter.retire();
  });

  get hasOpenRuns(): boolean {
    return [...this.#ledgers].some(({ counts }) => counts.open + counts.held > 0);
  }

  get isEmpty(): boolean {
    return this.#open.size === 0;
  }

  /** Creates the exporter for new traces. The previous exporter delivers its remaining runs and then closes. */
  configure(options: ConfigureOptions | undefined): Exporter | undefined {
    this.#configured?.retire();
    this.#configured = this.create(options, true);
    return this.#configured;
  }

  /** A tracer that records this work would create the next exporter. */
  create(options: ConfigureOptions | undefined, isForProcess = false): Exporter | undefined {
    return withoutTracing(() => this.#build(options, isForProcess));
  }

  /**
   * Returns a sink for the exporter of all callers with the same key, and creates the exporter if necessary. After the
   * sink has been garbage-collected, the exporter delivers its remaining runs and then closes.
   */
  share(key: unknown, options: ConfigureOptions): RunSink | undefined {
    const known = this.#shared.get(key);
    const knownSink = known?.exporter.isClosing === false ? known.sink.deref() : undefined;
    if (knownSink !== undefined) return knownSink;
    const exporter = this.create(options);
    if (exporter === undefined) return undefined;
    const sink = sinkOf(exporter);
    const entry: SharedExporter = { key, exporter, sink: new WeakRef(sink) };
    this.#shared.set(key, entry);
    this.#unused.register(sink, entry);
    return sink;
  }

  flush(limit: FlushLimit | undefined): Promise<FlushResult> {
    return this.#all(limit, (exporter) => exporter.flush(limit));
  }

  close(limit: FlushLimit | undefined): Promise<FlushResult> {
    return this.#all(limit, (exporter) => exporter.close(limit));
  }

  async #all(limit: FlushLimit | undefined, call: (exporter: Exporter) => Promise<FlushResult>): Promise<FlushResult> {
    if (this.isEmpty) {
      // The runs of `recordRuns` have no exporter.
      const limitMs = flushLimitMs('flush and shutdown', limit, FLUSH_TIMEOUT_MS);
      const { waitingRuns: pending } = await delayedEndsSettled(limitMs);
      return { ok: pending === 0, pending };
    }
    return flushed([...this.#open].map(call));
  }

  stats(): Stats {
    return totalStats(
      [this.#settled, ...this.#ledgers],
      [...this.#open].map((exporter) => exporter.backlog()),
    );
  }

  #build(options: ConfigureOptions | undefined, isForProcess: boolean): Exporter | undefined {
    // Getters in the options object may throw.
    const settings = guard('configure', () => resolveSettings(options, isForProcess));
    if (settings === undefined) {
      diagnostics.debug('tracing is off: there is no valid endpoint, or tracing was turned off');
      return undefined;
    }
    diagnostics.debug(
      `runs are sent to ${settings.endpoint.origin}, project "${projectText(settings.capture.project)}"`,
    );
    if (settings.dispatcher === undefined) preloadSoon();
    const ledger = new Ledger();
    const exporter = exporterFor(settings, ledger, () => {
      this.#open.delete(exporter);
      this.#successive.delete(exporter);
    });
    this.#ledgers.add(ledger);
    this.#gone.register(exporter, ledger);
    this.#open.add(exporter);
    if (!isForProcess) return exporter;
    for (const earlier of this.#successive) renewKey(earlier, settings);
    this.#successive.add(exporter);
    return exporter;
  }
}

/** Returns a sink that the exporter does not reference. */
function sinkOf(exporter: Exporter): RunSink {
  const { capture, hold, flush, close } = exporter;
  return {
    capture,
    hold,
    flush,
    close,
    start: (run) => exporter.start(run),
    end: (run) => exporter.end(run),
    skip: () => exporter.skip(),
    urlOf: (run) => exporter.urlOf(run),
  };
}
