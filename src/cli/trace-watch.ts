import type { Store } from '../receiver/store.ts';
import type { RunRecord } from '../run/record.ts';
import { progressOf } from './progress.ts';

/**
 * Quiet after which a trace that looks finished is drawn. An exporter waits 250 ms before it sends, so children may come
 * a batch later than their root.
 */
const SETTLE_MS = 300;
/** Quiet after which a trace is drawn that has ended but still lacks something, which may never come. */
const PATIENCE_MS = 2_000;
/** With each further drawing of one trace the quiet has to be twice as long, so often. */
const DOUBLINGS_MAX = 4;
/** Reading a trace copies its payloads; it may take at most this part of the time. */
const READING_SHARE = 0.1;

export interface TraceWatchOptions {
  store: Store;
  /** The drawing of a trace, without its notes. */
  draw: (runs: readonly RunRecord[]) => string;
  /** Called with a drawing and its notes, ready to be shown. */
  show: (text: string) => void;
}

interface Watched {
  timer: NodeJS.Timeout | undefined;
  /** Whether something came since the trace was last looked at for good. */
  isDue: boolean;
  /** What was shown last. */
  shown: string;
  runs: number;
  drawings: number;
  readingMs: number;
}

/**
 * Decides when a trace is shown: once when it has finished, again when more of it comes, and at the end all that was
 * not shown before, finished or not.
 */
export class TraceWatch {
  readonly #options: TraceWatchOptions;
  readonly #traces = new Map<string, Watched>();
  readonly #looks = new Set<Promise<void>>();
  readonly #unsubscribe: () => void;
  #wake: (() => void) | undefined;
  #quietTimer: NodeJS.Timeout | undefined;

  constructor(options: TraceWatchOptions) {
    this.#options = options;
    this.#unsubscribe = options.store.subscribe(({ traceIds }) => {
      for (const traceId of traceIds) this.#touch(traceId);
      if (this.#wake !== undefined) this.#awaitQuiet(this.#wake);
    });
  }

  /** Resolves when nothing has come for a moment. */
  quiet(): Promise<void> {
    return new Promise((resolve) => this.#awaitQuiet(resolve));
  }

  /** Shows what has not been shown, and watches no more. */
  async end(): Promise<void> {
    this.#unsubscribe();
    for (const { timer } of this.#traces.values()) clearTimeout(timer);
    await Promise.all(this.#looks);
    for (const [traceId, watched] of this.#traces) {
      if (watched.isDue) await this.#look(traceId, watched, 'end');
    }
  }

  #awaitQuiet(resolve: () => void): void {
    this.#wake = resolve;
    clearTimeout(this.#quietTimer);
    this.#quietTimer = setTimeout(resolve, SETTLE_MS);
  }

  #touch(traceId: string): void {
    const watched = this.#traces.get(traceId) ?? newWatched();
    this.#traces.set(traceId, watched);
    watched.isDue = true;
    const quietMs = SETTLE_MS * 2 ** Math.min(watched.drawings, DOUBLINGS_MAX);
    this.#lookIn(Math.max(quietMs, watched.readingMs / READING_SHARE), traceId, watched, 'settled');
  }

  #lookIn(delayMs: number, traceId: string, watched: Watched, reason: Reason): void {
    clearTimeout(watched.timer);
    watched.timer = setTimeout(() => {
      const look = this.#look(traceId, watched, reason).finally(() => this.#looks.delete(look));
      this.#looks.add(look);
    }, delayMs);
  }

  async #look(traceId: string, watched: Watched, reason: Reason): Promise<void> {
    const before = performance.now();
    const timer = watched.timer;
    const runs = await this.#options.store.trace(traceId);
    watched.readingMs = performance.now() - before;
    // Nothing left of it: the store has forgotten the trace, or it has become a part of another.
    if (runs.length === 0) {
      this.#traces.delete(traceId);
      return;
    }
    const progress = progressOf(runs);
    const hasMoved = watched.timer !== timer;
    if (reason !== 'end' && (hasMoved || progress === 'open')) return;
    if (reason === 'settled' && progress === 'ragged') {
      this.#lookIn(PATIENCE_MS, traceId, watched, 'patient');
      return;
    }
    watched.isDue = false;
    this.#show(runs, watched);
  }

  #show(runs: readonly RunRecord[], watched: Watched): void {
    const text = [this.#options.draw(runs), ...notesOn(runs)].join('\n');
    // A message that came twice changes nothing.
    if (text === watched.shown) return;
    this.#options.show(watched.drawings === 0 ? text : `${againNote(runs.length - watched.runs)}\n${text}`);
    watched.shown = text;
    watched.runs = runs.length;
    watched.drawings += 1;
  }
}

/** Why a trace is looked at: something came and quiet followed; quiet lasted; nothing will come any more. */
type Reason = 'settled' | 'patient' | 'end';

function newWatched(): Watched {
  return { timer: undefined, isDue: false, shown: '', runs: 0, drawings: 0, readingMs: 0 };
}

function notesOn(runs: readonly RunRecord[]): string[] {
  const open = runs.filter(({ end_time }) => end_time === undefined).length;
  if (open === 0) return [];
  return [`(incomplete: ${open} ${open === 1 ? 'run has' : 'runs have'} not ended)`];
}

function againNote(more: number): string {
  if (more <= 0) return '(again, as it is now)';
  return `(again, with ${more} more ${more === 1 ? 'run' : 'runs'})`;
}
