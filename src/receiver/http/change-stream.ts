import type { Scope } from '../domain/query.ts';
import { isOfProject } from '../domain/run-values.ts';
import { ALL_RUNS, ALL_TIMES, among } from '../filter/run-filter.ts';
import type { ChangeFeed, Store } from '../store/store.ts';

/** Time within which changes are combined into one event, in milliseconds. */
const GATHER_MS = 100;
/** The same for a stream that is limited to a project, because each event needs a query. */
const LIMITED_GATHER_MS = 1_000;
/** Interval between comments that keep an idle connection open, in milliseconds. */
export const HEARTBEAT_MS: number = 15_000;
/**
 * Maximum number of traces in one event. If more traces have changed, the event lists none, and the client reloads
 * everything.
 */
const TRACES_MAX = 1_000;

/** Maximum number and age of the runs to read to find the projects of the traces in one event. */
const RUNS_MAX = 1_000;
const RECENT_US = 60 * 60 * 1_000_000;

/**
 * Yields a store's changes as server-sent events until the signal aborts, or until `isAdmitted` returns false before an
 * event. The first event is `ready` with the current cursor. If traces have changed since the client's cursor, the
 * first event is a `change` event with those traces instead. If the scope is limited to a project, an event names only
 * traces with runs in this project.
 */
export async function* changeStream(
  store: ChangeFeed & Pick<Store, 'list'>,
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
    const named = await tracesIn(store, scope, missed.traceIds);
    yield event(named?.length === 0 ? 'ready' : 'change', missed.cursor, named);
    let yieldedMs = performance.now();
    while (!ended.aborted) {
      if (traceIds.size === 0) {
        await pause(HEARTBEAT_MS, ended, (done) => {
          wake = done;
        });
        if (traceIds.size > 0) continue;
        if (ended.aborted || !(await isAdmitted())) return;
        yield ': no change\n\n';
        yieldedMs = performance.now();
        continue;
      }
      await pause(scope.project === undefined ? GATHER_MS : LIMITED_GATHER_MS, ended);
      if (ended.aborted || !(await isAdmitted())) return;
      const [cursor, changed] = [latest, [...traceIds]];
      traceIds = new Set();
      const own = await tracesIn(store, scope, changed);
      // A comment after each change would tell the client about the activity of other projects.
      if (own?.length === 0 && performance.now() - yieldedMs < HEARTBEAT_MS) continue;
      yield own?.length === 0 ? ': no change\n\n' : event('change', cursor, own);
      yieldedMs = performance.now();
    }
  } finally {
    unsubscribe();
  }
}

/**
 * Returns the traces that a client with this scope may know. Returns undefined if the client must reload everything,
 * because the project of a trace is not known: it was deleted, is not visible yet, has no recent runs, or the changed
 * traces have too many runs. Reads only recent runs, because a store in ClickHouse would read all days.
 */
async function tracesIn(
  store: Pick<Store, 'list'>,
  { project, ...ofTenant }: Scope,
  traceIds: readonly string[] | undefined,
): Promise<readonly string[] | undefined> {
  if (project === undefined || traceIds === undefined || traceIds.length === 0) return traceIds;
  if (traceIds.length > TRACES_MAX) return undefined;
  const range = { ...ALL_TIMES, fromUs: Date.now() * 1_000 - RECENT_US };
  const filter = { ...ALL_RUNS, range, conditions: [among('trace', traceIds)] };
  const { items, next } = await store.list(ofTenant, { filter, limit: RUNS_MAX });
  const known = new Set(items.map(({ trace_id }) => trace_id));
  if (next !== undefined || traceIds.some((id) => !known.has(id))) return undefined;
  const own = new Set(items.filter((run) => isOfProject(run, project)).map(({ trace_id }) => trace_id));
  return traceIds.filter((id) => own.has(id));
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
