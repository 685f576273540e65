import type { Store, StoreChange } from './store/store.ts';

/** Changes that come within it are told together. */
const GATHER_MS = 100;
/** After so long without a change a comment says that the stream is alive. */
const HEARTBEAT_MS = 15_000;
/** Beyond it an event names no traces: anything may have changed. */
const TRACES_MAX = 1_000;

/**
 * The changes of a store as server-sent events, until the signal is aborted. First comes `ready` with the count of changes
 * so far, or, for a reader that was here before, a `change` with all that it has missed; it names no traces to one that knows of
 * more changes than there have been, as the store is another one then.
 */
export async function* changeStream(
  store: Store,
  lastSeq: number | undefined,
  ended: AbortSignal,
): AsyncGenerator<string> {
  const waiting = new WaitingChanges();
  const unsubscribe = store.subscribe((change) => waiting.add(change));
  try {
    const missed = await store.changes(lastSeq ?? Number.MAX_SAFE_INTEGER, TRACES_MAX + 1);
    // A store that has not come so far is another one than the reader knows.
    const isOther = lastSeq !== undefined && lastSeq > missed.seq;
    yield lastSeq === undefined || (missed.traceIds.length === 0 && !isOther)
      ? event('ready', missed.seq, {})
      : event('change', missed.seq, toldOf(isOther ? undefined : missed.traceIds));
    while (!ended.aborted) {
      const change = (await waiting.next(HEARTBEAT_MS, ended)) ? await waiting.take(GATHER_MS, ended) : undefined;
      if (ended.aborted) return;
      yield change === undefined ? ': no change\n\n' : event('change', change.seq, change.told);
    }
  } finally {
    unsubscribe();
  }
}

/** What an event says of the traces that have changed. */
interface Told {
  readonly trace_ids?: readonly string[];
}

function toldOf(traceIds: readonly string[] | undefined): Told {
  return traceIds === undefined || traceIds.length > TRACES_MAX ? {} : { trace_ids: traceIds };
}

function event(name: string, seq: number, told: Told): string {
  return `event: ${name}\nid: ${seq}\ndata: ${JSON.stringify({ seq, ...told })}\n\n`;
}

/** What has changed since it was last told. */
class WaitingChanges {
  #traceIds = new Set<string>();
  #seq = 0;
  #wake: () => void = () => {};

  add({ seq, traceIds }: StoreChange): void {
    this.#seq = seq;
    if (this.#traceIds.size <= TRACES_MAX) for (const id of traceIds) this.#traceIds.add(id);
    this.#wake();
  }

  /** Whether there is a change, waiting for one if need be. */
  async next(limitMs: number, ended: AbortSignal): Promise<boolean> {
    if (this.#traceIds.size === 0) await this.#pause(limitMs, ended, true);
    return this.#traceIds.size > 0;
  }

  async take(gatherMs: number, ended: AbortSignal): Promise<{ seq: number; told: Told }> {
    await this.#pause(gatherMs, ended, false);
    const traceIds = [...this.#traceIds];
    this.#traceIds = new Set();
    return { seq: this.#seq, told: toldOf(traceIds) };
  }

  #pause(limitMs: number, ended: AbortSignal, untilChange: boolean): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        ended.removeEventListener('abort', done);
        this.#wake = () => {};
        resolve();
      };
      const timer = setTimeout(done, limitMs);
      ended.addEventListener('abort', done);
      if (untilChange) this.#wake = done;
      if (ended.aborted) done();
    });
  }
}
