import type { Scope } from '../domain/query.ts';
import type { ChangeFeed } from '../store/store.ts';

/** Time within which changes are combined into one event, in milliseconds. */
const GATHER_MS = 100;
/** Interval between comments that keep an idle connection open, in milliseconds. */
export const HEARTBEAT_MS: number = 15_000;
/**
 * Maximum number of traces in one event. If more traces have changed, the event lists none, and the client reloads
 * everything.
 */
const TRACES_MAX = 1_000;

/**
 * Yields a store's changes as server-sent events until the signal aborts, or until `isAdmitted` returns false before an
 * event. The first event is `ready` with the current cursor. If traces have changed since the client's cursor, the
 * first event is a `change` event with those traces instead.
 */
export async function* changeStream(
  store: ChangeFeed,
  scope: Scope,
  after: string | undefined,
  ended: AbortSignal,
  isAdmitted: () => Promise<boolean>,
): AsyncGenerator<string> {
  let traceIds = new Set<string>();
  let latest = '';
  let wake = (): void => {};
  const unsubscribe = store.subscribe(scope, (change) => {
    latest = change.cursor;
    if (traceIds.size <= TRACES_MAX) for (const id of change.traceIds) traceIds.add(id);
    wake();
  });
  try {
    const missed = await store.changes(scope, after, TRACES_MAX + 1);
    yield event(missed.traceIds?.length === 0 ? 'ready' : 'change', missed.cursor, missed.traceIds);
    while (!ended.aborted) {
      if (traceIds.size === 0) {
        await pause(HEARTBEAT_MS, ended, (done) => {
          wake = done;
        });
        if (traceIds.size > 0) continue;
        if (ended.aborted || !(await isAdmitted())) return;
        yield ': no change\n\n';
        continue;
      }
      await pause(GATHER_MS, ended);
      if (ended.aborted || !(await isAdmitted())) return;
      const changed = traceIds;
      traceIds = new Set();
      yield event('change', latest, [...changed]);
    }
  } finally {
    unsubscribe();
  }
}

function event(name: string, cursor: string, traceIds: readonly string[] | undefined): string {
  const isListed = traceIds !== undefined && traceIds.length <= TRACES_MAX && name === 'change';
  const data = { seq: cursor, ...(isListed && { trace_ids: traceIds }) };
  return `event: ${name}\nid: ${cursor}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Resolves after `ms` milliseconds, or earlier if the signal aborts or the function passed to `onStart` is called. */
export function pause(ms: number, signal: AbortSignal, onStart: (done: () => void) => void = () => {}): Promise<void> {
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
