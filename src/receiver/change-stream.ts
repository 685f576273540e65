import type { Store } from './store/store.ts';

/** Changes within this time are combined into one event. */
const GATHER_MS = 100;
/** Interval of comments that keep an idle connection open. */
const HEARTBEAT_MS = 15_000;
/** An event for more traces names none of them, and the client reloads everything. */
const TRACES_MAX = 1_000;

/**
 * Returns the changes of a store as server-sent events until the signal is aborted. The first event is `ready` with the
 * current sequence number, or a `change` with all traces that changed after `lastSeq`. If `lastSeq` is in the future, the
 * store is another one than the client knows, and the event names no traces.
 */
export async function* changeStream(
  store: Store,
  lastSeq: number | undefined,
  ended: AbortSignal,
): AsyncGenerator<string> {
  let traceIds = new Set<string>();
  let seq = 0;
  let wake = (): void => {};
  const unsubscribe = store.subscribe((change) => {
    seq = change.seq;
    if (traceIds.size <= TRACES_MAX) for (const id of change.traceIds) traceIds.add(id);
    wake();
  });
  try {
    const missed = await store.changes(lastSeq ?? Number.MAX_SAFE_INTEGER, TRACES_MAX + 1);
    if (lastSeq !== undefined && lastSeq > missed.seq) yield event('change', missed.seq);
    else if (lastSeq === undefined || missed.traceIds.length === 0) yield event('ready', missed.seq);
    else yield event('change', missed.seq, missed.traceIds);
    while (!ended.aborted) {
      if (traceIds.size === 0) {
        await pause(HEARTBEAT_MS, ended, (done) => {
          wake = done;
        });
        if (traceIds.size === 0 && !ended.aborted) yield ': no change\n\n';
        continue;
      }
      await pause(GATHER_MS, ended);
      if (ended.aborted) return;
      const changed = traceIds;
      traceIds = new Set();
      yield event('change', seq, [...changed]);
    }
  } finally {
    unsubscribe();
  }
}

function event(name: string, seq: number, traceIds?: readonly string[]): string {
  const data = traceIds === undefined || traceIds.length > TRACES_MAX ? { seq } : { seq, trace_ids: traceIds };
  return `event: ${name}\nid: ${seq}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Resolves after `ms`, when the signal is aborted, or when the function passed to `onStart` is called. */
function pause(ms: number, signal: AbortSignal, onStart: (done: () => void) => void = () => {}): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
    onStart(done);
    if (signal.aborted) done();
  });
}
