import { createHash } from 'node:crypto';
import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf } from '../../base/text.ts';
import type { RunOutline } from '../../receiver/domain/run-view.ts';
import { DEFAULT_SCOPE, type Store } from '../../receiver/store/store.ts';
import { counted } from '../terminal-text.ts';

/**
 * Idle time in milliseconds before a trace is checked. An exporter sends a batch every 250 ms, so child runs may arrive
 * one batch after their root.
 */
const SETTLE_MS = 300;
/**
 * Maximum delay before a check, in milliseconds. The delay doubles after each check, because each check reads the whole
 * trace.
 */
const SETTLE_MAX_MS = 4_800;
/** Number of checks before an incomplete trace is drawn. Three checks take at least 2.1 s. */
const RAGGED_CHECKS = 3;
const REMEMBERED_MAX = 10_000;

/** The changes and the runs of traces. A store, or a receiver of another process. */
export type TraceFeed = Pick<Store, 'subscribe' | 'outline'>;

export interface TraceWatchOptions {
  store: TraceFeed;
  draw: (runs: readonly RunOutline[], traceId: string) => string | Promise<string>;
  /** Whether to omit notes about open runs or added runs from drawings. @default false */
  isPlain?: boolean;
  /** Whether to draw only when the watch ends. @default false */
  isAtEnd?: boolean;
  lastLine?: (traceId: string) => string;
  show: (text: string) => void;
  /**
   * Maximum number of traces to remember. Runs that arrive for a forgotten trace are drawn as a new trace.
   * @default 10000
   */
  rememberedMax?: number;
}

interface Watched {
  timer: NodeJS.Timeout | undefined;
  checks: number;
  /** Whether runs have arrived since the trace was last drawn. */
  isDue: boolean;
  /** Hash and run count of the last drawing. The text is not kept, because it may be several megabytes long. */
  drawn: { readonly hash: string; readonly runs: number } | undefined;
}

/** Draws each trace when it finishes, and draws it again if more runs arrive. `close()` draws the unfinished traces. */
export class TraceWatch {
  readonly #options: TraceWatchOptions;
  /** Watched traces by id. The least recently changed trace comes first. */
  readonly #traces = new Map<string, Watched>();
  readonly #unsubscribe: () => void;
  #checks: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: TraceWatchOptions) {
    this.#options = options;
    this.#unsubscribe = options.store.subscribe(DEFAULT_SCOPE, ({ traceIds }) => {
      for (const traceId of traceIds) this.#touch(traceId);
    });
  }

  async end(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe();
    for (const [traceId, watched] of this.#traces) {
      clearTimeout(watched.timer);
      this.#checkNow(traceId, watched);
    }
    await this.#checks;
  }

  #touch(traceId: string): void {
    const watched = this.#traces.get(traceId) ?? { timer: undefined, checks: 0, isDue: true, drawn: undefined };
    this.#traces.delete(traceId);
    this.#traces.set(traceId, watched);
    watched.isDue = true;
    if (!this.#options.isAtEnd) this.#checkLater(traceId, watched);
  }

  #checkLater(traceId: string, watched: Watched): void {
    clearTimeout(watched.timer);
    const delayMs = Math.min(SETTLE_MS * 2 ** watched.checks, SETTLE_MAX_MS);
    watched.timer = setTimeout(() => this.#checkNow(traceId, watched), delayMs);
  }

  #checkNow(traceId: string, watched: Watched): void {
    watched.timer = undefined;
    this.#checks = this.#checks
      .then(() => this.#check(traceId, watched))
      .catch((error) => diagnostics.error(`trace ${traceId} cannot be drawn: ${messageOf(error)}`));
  }

  async #check(traceId: string, watched: Watched): Promise<void> {
    if (!watched.isDue) return;
    watched.checks += 1;
    const texts = await this.#options.store.outline(DEFAULT_SCOPE, traceId);
    const runs = texts.map((text): RunOutline => JSON.parse(text));
    // If a timer is set, more runs have arrived and another check follows.
    if (watched.timer !== undefined) return;
    const progress = progressOf(runs);
    // After its root has arrived, a trace may have the id of the root, under which it is watched from then on.
    const shown = this.#traces.get(runs[0]?.id ?? traceId);
    if (shown !== undefined && shown !== watched) {
      shown.drawn ??= watched.drawn;
      this.#traces.delete(traceId);
      return;
    }
    // The store has deleted the trace or merged it into another trace.
    if (runs.length === 0) this.#traces.delete(traceId);
    else if (this.#isClosed || progress === 'finished') await this.#draw(traceId, runs, watched);
    else if (progress === 'ragged' && watched.checks < RAGGED_CHECKS) this.#checkLater(traceId, watched);
    else if (progress === 'ragged') await this.#draw(traceId, runs, watched);
  }

  async #draw(traceId: string, runs: readonly RunOutline[], watched: Watched): Promise<void> {
    const { draw, show, lastLine, isPlain = false } = this.#options;
    watched.isDue = false;
    const drawing = await draw(runs, traceId);
    const { drawn } = watched;
    const text = isPlain ? drawing : [drawing, ...notesOn(runs), lastLine?.(traceId) ?? []].flat().join('\n');
    const hash = createHash('sha256').update(text).digest('base64');
    watched.drawn = { hash, runs: runs.length };
    this.#forgetOldest();
    // A repeated message does not change the drawing.
    if (hash === drawn?.hash) return;
    show(drawn === undefined || isPlain ? text : `${againNote(runs.length - drawn.runs)}\n${text}`);
  }

  #forgetOldest(): void {
    const { rememberedMax = REMEMBERED_MAX } = this.#options;
    for (const [traceId, { isDue }] of this.#traces) {
      if (this.#traces.size <= rememberedMax) break;
      if (!isDue) this.#traces.delete(traceId);
    }
  }
}

/**
 * Returns the progress of a trace:
 *
 * - `finished`: all runs have ended, and no parent is missing.
 * - `ragged`: the root has ended, but another run is still open or a parent is missing.
 * - `open`: a root run has not ended.
 */
function progressOf(runs: readonly RunOutline[]): 'finished' | 'ragged' | 'open' {
  const ids = new Set(runs.map(({ id }) => id));
  let isComplete = true;
  for (const { parent_run_id: parentId, end_time: endTime } of runs) {
    if (parentId === undefined && endTime === undefined) return 'open';
    if (endTime === undefined || (parentId !== undefined && !ids.has(parentId))) isComplete = false;
  }
  return isComplete ? 'finished' : 'ragged';
}

function notesOn(runs: readonly RunOutline[]): string[] {
  const open = runs.filter(({ end_time }) => end_time === undefined).length;
  return open === 0 ? [] : [`(incomplete: ${counted(open, 'run has', 'runs have')} not ended)`];
}

function againNote(more: number): string {
  return more <= 0 ? '(updated)' : `(updated, with ${counted(more, 'more run', 'more runs')})`;
}
