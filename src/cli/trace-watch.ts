import { createHash } from 'node:crypto';
import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import type { RunOutline } from '../receiver/store/run-view.ts';
import type { Store } from '../receiver/store/store.ts';

/**
 * Quiet after which a trace is looked at. An exporter waits 250 ms before it sends, so children may come a batch later
 * than their root.
 */
const SETTLE_MS = 300;
/** A look goes through the whole trace, so with each one the quiet before the next has to be twice as long, up to this. */
const SETTLE_MAX_MS = 4_800;
/** Looks after which a trace is drawn that has ended but still lacks something: 2.1 s of quiet, if nothing came between. */
const RAGGED_LOOKS = 3;
const REMEMBERED_MAX = 10_000;

export interface TraceWatchOptions {
  store: Store;
  /** The drawing of a trace, without its notes. */
  draw: (runs: readonly RunOutline[], traceId: string) => string | Promise<string>;
  /** Says nothing beside the drawings. @default false */
  isPlain?: boolean;
  /** Called with a drawing and its notes, ready to be shown. */
  show: (text: string) => void;
  /** Traces that have been shown and are remembered; more of an older one is shown as if it were a new one. @default 10000 */
  rememberedMax?: number;
}

interface Watched {
  timer: NodeJS.Timeout | undefined;
  looks: number;
  /** Whether something came since the trace was shown. */
  isDue: boolean;
  /** What was shown last: not the text, which may be megabytes. */
  shown: { readonly hash: string; readonly runs: number } | undefined;
}

/**
 * Shows each trace once when it has finished, again when more of it comes, and at the end all that was not shown before,
 * finished or not.
 */
export class TraceWatch {
  readonly #options: TraceWatchOptions;
  readonly #traces = new Map<string, Watched>();
  /** Those of which nothing came since they were shown, the one shown longest ago first. */
  readonly #settled = new Set<string>();
  readonly #looks = new Set<Promise<void>>();
  readonly #unsubscribe: () => void;
  #state: 'open' | 'closed' = 'open';
  #forgottenTraces = 0;

  constructor(options: TraceWatchOptions) {
    this.#options = options;
    this.#unsubscribe = options.store.subscribe(({ traceIds, forgotten }) => {
      for (const traceId of traceIds) this.#touch(traceId);
      this.#forgottenTraces += forgotten?.traces ?? 0;
    });
  }

  /** Shows what has not been shown, says how much the store has forgotten, and watches no more. */
  async end(): Promise<void> {
    this.#state = 'closed';
    this.#unsubscribe();
    for (const { timer } of this.#traces.values()) clearTimeout(timer);
    await Promise.all(this.#looks);
    for (const [traceId, watched] of this.#traces) {
      if (watched.isDue) await this.#look(traceId, watched, 'end');
    }
    if (this.#forgottenTraces > 0 && !this.#options.isPlain) this.#options.show(forgottenNote(this.#forgottenTraces));
  }

  #touch(traceId: string): void {
    const watched = this.#traces.get(traceId) ?? { timer: undefined, looks: 0, isDue: true, shown: undefined };
    this.#traces.set(traceId, watched);
    watched.isDue = true;
    this.#settled.delete(traceId);
    this.#lookLater(traceId, watched);
  }

  #lookLater(traceId: string, watched: Watched): void {
    clearTimeout(watched.timer);
    watched.timer = setTimeout(
      () => {
        const look = this.#look(traceId, watched, 'quiet').finally(() => this.#looks.delete(look));
        this.#looks.add(look);
      },
      Math.min(SETTLE_MS * 2 ** watched.looks, SETTLE_MAX_MS),
    );
  }

  /** Never rejects: a trace that the store cannot tell is not shown. */
  async #look(traceId: string, watched: Watched, reason: Reason): Promise<void> {
    try {
      await this.#lookAt(traceId, watched, reason);
    } catch (error) {
      diagnostics.error(`trace ${traceId} cannot be drawn: ${messageOf(error)}`);
    }
  }

  async #lookAt(traceId: string, watched: Watched, reason: Reason): Promise<void> {
    const { timer } = watched;
    watched.looks += 1;
    const runs = await this.#options.store.outline(traceId);
    // Something came meanwhile, and will be looked at.
    if (watched.timer !== timer) return;
    // Nothing left of it: the store has forgotten the trace, or it has become a part of another.
    if (runs.length === 0) this.#traces.delete(traceId);
    else {
      const step = stepAfter(progressOf(runs), reason, watched.looks);
      if (step === 'show') await this.#show(traceId, runs, watched);
      else if (step === 'look again' && this.#state === 'open') this.#lookLater(traceId, watched);
    }
  }

  async #show(traceId: string, runs: readonly RunOutline[], watched: Watched): Promise<void> {
    const { draw, show, isPlain = false } = this.#options;
    watched.isDue = false;
    const drawing = await draw(runs, traceId);
    const { shown } = watched;
    const text = isPlain ? drawing : [drawing, ...notesOn(runs)].join('\n');
    const hash = createHash('sha256').update(text).digest('base64');
    watched.shown = { hash, runs: runs.length };
    if (!watched.isDue) this.#settle(traceId);
    // A message that came twice changes nothing.
    if (hash === shown?.hash) return;
    show(shown === undefined || isPlain ? text : `${againNote(runs.length - shown.runs)}\n${text}`);
  }

  #settle(traceId: string): void {
    const { rememberedMax = REMEMBERED_MAX } = this.#options;
    this.#settled.add(traceId);
    for (const oldest of this.#settled) {
      if (this.#settled.size <= rememberedMax) break;
      this.#settled.delete(oldest);
      this.#traces.delete(oldest);
    }
  }
}

/** Why a trace is looked at: something came and quiet followed, or nothing will come any more. */
export type Reason = 'quiet' | 'end';

/** What a look leads to; `leave` until more comes. */
export type Step = 'show' | 'look again' | 'leave';

/** `looks` are those at the trace so far, this one included. */
export function stepAfter(progress: Progress, reason: Reason, looks: number): Step {
  if (reason === 'end' || progress === 'finished') return 'show';
  if (progress === 'open') return 'leave';
  return looks < RAGGED_LOOKS ? 'look again' : 'show';
}

/**
 * How far a trace has come, as far as its runs tell:
 *
 * - `finished`: its root has ended, and so have all others.
 * - `ragged`: it may be all there will be, or not: the root has ended but a run below has not, or a parent has not come.
 * - `open`: a root has not ended.
 */
export type Progress = 'finished' | 'ragged' | 'open';

export function progressOf(runs: readonly RunOutline[]): Progress {
  const ids = new Set(runs.map(({ id }) => id));
  let isWhole = runs.length > 0;
  for (const { parent_run_id: parentId, end_time: endTime } of runs) {
    if (parentId === undefined && endTime === undefined) return 'open';
    if (endTime === undefined || (parentId !== undefined && !ids.has(parentId))) isWhole = false;
  }
  return isWhole ? 'finished' : 'ragged';
}

function notesOn(runs: readonly RunOutline[]): string[] {
  const open = runs.filter(({ end_time }) => end_time === undefined).length;
  if (open === 0) return [];
  return [`(incomplete: ${open} ${open === 1 ? 'run has' : 'runs have'} not ended)`];
}

function forgottenNote(traces: number): string {
  const count = `${traces} ${traces === 1 ? 'trace' : 'traces'}`;
  return `(the receiver has forgotten ${count} to stay within its limits; what was not drawn before is lost)`;
}

function againNote(more: number): string {
  if (more <= 0) return '(again, as it is now)';
  return `(again, with ${more} more ${more === 1 ? 'run' : 'runs'})`;
}
