import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { type ConfigureOptions, resolveSettings } from '../config/options.ts';
import { projectText } from '../run/encoded-run.ts';
import type { FlushLimit, FlushResult } from '../run/sink.ts';
import { exporterFor, preloadSoon, renewKey } from './create-exporter.ts';
import type { Exporter } from './exporter.ts';
import { Ledger, type Stats, totalStats } from './ledger.ts';

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

  /**
   * Open exporters that `configure` created. If `configure` receives a new API key, all of these exporters use the new
   * key.
   */
  readonly #successive = new Set<Exporter>();
  #configured: Exporter | undefined;

  get hasOpenRuns(): boolean {
    return [...this.#ledgers].some(({ counts }) => counts.open > 0);
  }

  get isEmpty(): boolean {
    return this.#open.size === 0;
  }

  /** Creates the exporter for new traces. The previous exporter delivers its remaining runs and then closes. */
  configure(options: ConfigureOptions | undefined): Exporter | undefined {
    this.#configured?.retire();
    this.#configured = this.#build(options, true);
    return this.#configured;
  }

  create(options: ConfigureOptions | undefined): Exporter | undefined {
    return this.#build(options, false);
  }

  flush(limit: FlushLimit | undefined): Promise<FlushResult> {
    return together([...this.#open].map((exporter) => exporter.flush(limit)));
  }

  close(limit: FlushLimit | undefined): Promise<FlushResult> {
    return together([...this.#open].map((exporter) => exporter.close(limit)));
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

async function together(results: readonly Promise<FlushResult>[]): Promise<FlushResult> {
  const all = await Promise.all(results);
  return { ok: all.every(({ ok }) => ok), pending: all.reduce((sum, { pending }) => sum + pending, 0) };
}
