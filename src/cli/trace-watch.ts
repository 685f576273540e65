import type { Store } from '../receiver/store.ts';
import type { RunRecord } from '../run/record.ts';

/**
 * Quiet after which a trace is looked at. An exporter waits 250 ms before it sends, so children may come a batch later
 * than their root.
 */
const SETTLE_MS = 300;
/** A look copies the payloads of its trace, so with each one the quiet before the next has to be twice as long, up to this. */
const SETTLE_MAX_MS = 4_800;
/** Looks after which a trace is drawn that has ended but still lacks something: 2.1 s of quiet, if nothing came between. */
const RAGGED_LOOKS = 3;

export interface TraceWatchOptions {
  store: Store;
  /** The drawing of a trace, without its notes. */
  draw: (runs: readonly RunRecord[]) => string;
  /** Called with a drawing and its notes, ready to be shown. */
  show: (text: string) => void;
}

interface Watched {
  timer: NodeJS.Timeout | undefined;
  looks: number;
  /** Whether something came since the trace was shown. */
  isDue: boolean;
  /** What was shown last. */
  shown: { readonly text: string; readonly runs: number } | undefined;
}

/**
 * Shows each trace once when it has finished, again when more of it comes, and at the end all that was not shown before,
 * finished or not.
 */
export class TraceWatch {
  readonly #options: TraceWatchOptions;
  readonly #traces = new Map<string, Watched>();
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
    if (this.#forgottenTraces > 0) this.#options.show(forgottenNote(this.#forgottenTraces));
  }

  #touch(traceId: string): void {
    const watched = this.#traces.get(traceId) ?? { timer: undefined, looks: 0, isDue: true, shown: undefined };
    this.#traces.set(traceId, watched);
    watched.isDue = true;
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

  async #look(traceId: string, watched: Watched, reason: Reason): Promise<void> {
    const { timer } = watched;
    watched.looks += 1;
    const runs = await this.#options.store.trace(traceId);
    // Something came meanwhile, and will be looked at.
    if (watched.timer !== timer) return;
    // Nothing left of it: the store has forgotten the trace, or it has become a part of another.
    if (runs.length === 0) this.#traces.delete(traceId);
    else {
      const step = stepAfter(progressOf(runs), reason, watched.looks);
      if (step === 'show') this.#show(runs, watched);
      else if (step === 'look again' && this.#state === 'open') this.#lookLater(traceId, watched);
    }
  }

  #show(runs: readonly RunRecord[], watched: Watched): void {
    const { shown } = watched;
    const text = [this.#options.draw(runs), ...notesOn(runs)].join('\n');
    watched.isDue = false;
    // A message that came twice changes nothing.
    if (text === shown?.text) return;
    watched.shown = { text, runs: runs.length };
    this.#options.show(shown === undefined ? text : `${againNote(runs.length - shown.runs)}\n${text}`);
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

export function progressOf(runs: readonly RunRecord[]): Progress {
  const ids = new Set(runs.map(({ id }) => id));
  let isWhole = runs.length > 0;
  for (const { parent_run_id: parentId, end_time: endTime } of runs) {
    if (parentId === undefined && endTime === undefined) return 'open';
    if (endTime === undefined || (parentId !== undefined && !ids.has(parentId))) isWhole = false;
  }
  return isWhole ? 'finished' : 'ragged';
}

function notesOn(runs: readonly RunRecord[]): string[] {
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
