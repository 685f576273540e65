import type { SessionStore, StoredEvent } from '../storage/session-store.ts';
import { isWholeState, type LoggedState, laidTogether, markedOf, type StateTail } from './logged-state.ts';
import { STATE_EVENTS_MAX } from './state-writer.ts';

/** How far back is looked: others than runs may have written between. */
const EVENTS_MAX = 2 * STATE_EVENTS_MAX;
const PAGE_EVENTS = 500;

/** The tail of a log as it is, or as it was before a number. Undefined where it has no state. */
export async function stateTail(
  sessions: SessionStore,
  threadId: string,
  before?: number,
): Promise<StateTail | undefined> {
  const end = before ?? (await sessions.lastSeq(threadId)) + 1;
  let found: readonly StoredEvent[] = [];
  for (let last = end - 1; end - last <= EVENTS_MAX; last -= PAGE_EVENTS) {
    const after = Math.max(0, last - PAGE_EVENTS);
    const events = (await sessions.read(threadId, after, PAGE_EVENTS)).events.filter(({ seq }) => seq <= last);
    found = [...events, ...found];
    const start = found.findLastIndex(isWholeState);
    if (start !== -1) return tailOf(found.slice(start));
    // Numbers have no gaps: this is where the log begins.
    if (events.length < PAGE_EVENTS) break;
  }
  return tailOf(found);
}

/** Of events of which the first is a state that has all of its messages, where there is one. */
function tailOf(events: readonly StoredEvent[]): StateTail | undefined {
  let [state, total]: [LoggedState | undefined, number | undefined] = [undefined, undefined];
  for (const event of events) {
    const marked = markedOf(event);
    if (marked === undefined) continue;
    total = marked.state.total;
    const messages = laidTogether(marked, state);
    if (marked.state.id !== undefined && messages !== undefined) state = { id: marked.state.id, messages };
  }
  if (total === undefined) return undefined;
  const behind = events.slice(1);
  return { state, total, events: behind.length, chars: behind.reduce((sum, { body }) => sum + body.length, 0) };
}
