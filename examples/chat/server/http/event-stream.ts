import { Bell } from '../protocol/bell.ts';
import { MISSED_EVENTS } from '../protocol/run-events.ts';
import type { SessionStore, StoredEvent } from '../storage/session-store.ts';
import { isAway } from '../storage/store-error.ts';
import { ChangeReader, StateReader } from './state-reader.ts';
import { isWanted, type Subscription } from './subscription.ts';

/** Readers take a stream for broken in which nothing comes for longer. */
const HEARTBEAT_MS = 5_000;
/** Events that are read at once; the reader's slowness holds up the next. */
const PAGE_EVENTS = 200;
/** What is sent at once, and a last event. */
const FRAMES_CHARS_MAX = 1024 * 1024;

/**
 * The events of a thread as server-sent events: those that have been, then those that come, until the reader leaves or the chat ends. Nothing is kept for a reader but the number of its last
 * event and, where states are sent whole, the last of them, so a slow one costs no more than others; where it falls so far behind that events are no longer kept, it is told which by a `missed_events`.
 */
export function eventStream(
  sessions: SessionStore,
  threadId: string,
  subscription: Subscription,
  end: AbortSignal,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const frameOf = framesFor(sessions, threadId, subscription);
  let after = subscription.since ?? 0;
  let isOver = false;
  const bell = new Bell();
  const ring = (): void => bell.ring();
  const unwatch = sessions.watch(threadId, ring);
  end.addEventListener('abort', ring);

  function leave(): void {
    unwatch();
    end.removeEventListener('abort', ring);
  }

  async function next(): Promise<string> {
    // What is not for this reader comes without a break at times, and is no sign of life for it.
    const heartbeatAt = performance.now() + HEARTBEAT_MS;
    for (;;) {
      const { events, droppedThrough } = await sessions.read(threadId, after, PAGE_EVENTS);
      let frames = '';
      if (droppedThrough > after) {
        frames = missed(after, droppedThrough);
        after = droppedThrough;
      }
      for (const event of events) {
        after = event.seq;
        frames += await frameOf(event);
        if (frames.length >= FRAMES_CHARS_MAX) break;
      }
      if (frames !== '') return frames;
      if (end.aborted && events.length === 0) return '';
      const leftMs = heartbeatAt - performance.now();
      if (leftMs <= 0 || (events.length === 0 && !(await bell.rung(leftMs)))) return ': heartbeat\n\n';
      if (isOver) return '';
    }
  }

  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => controller.enqueue(encoder.encode(': open\n\n')),
      pull: async (controller) => {
        const text = await next().catch((error: unknown) => {
          // Readers come again, and are told what they have missed; hosts would log the stack of each.
          if (end.aborted || isAway(error)) return '';
          // A stream that has failed is not told that its reader leaves.
          leave();
          throw error;
        });
        if (isOver) return;
        if (text !== '') return controller.enqueue(encoder.encode(text));
        leave();
        controller.close();
      },
      cancel: () => {
        isOver = true;
        leave();
        bell.ring();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Makes frames of all events of a thread, in their order; those that are not wanted have none. */
function framesFor(
  sessions: SessionStore,
  threadId: string,
  subscription: Subscription,
): (event: StoredEvent) => Promise<string> {
  const states = new StateReader(sessions, threadId);
  const values = subscription.values === 'changes' ? new ChangeReader(sessions, threadId) : states;
  const areTasksWanted = isWanted({ channel: 'tasks', namespace: [] }, subscription);
  let missedAfter: number | undefined;
  return async (event) => {
    const [isValues, isWantedHere] = [event.channel === 'values', isWanted(event, subscription)];
    const reader = isValues ? values : states;
    // What tasks are given is based on values that are not wanted, or not whole.
    if (isValues && areTasksWanted && !(isWantedHere && reader === states)) await states.bodyOf(event);
    if (!isWantedHere) return '';
    const body = await reader.bodyOf(event);
    if (body === undefined) {
      missedAfter ??= event.seq - 1;
      return '';
    }
    const isState = (isValues || event.channel === 'tasks') && event.namespace.length === 0;
    if (missedAfter === undefined || !isState) return frame(event, body);
    const told = missed(missedAfter, event.seq - 1, ['values', 'tasks']);
    missedAfter = undefined;
    return told + frame(event, body);
  };
}

function frame({ seq, channel }: StoredEvent, body: string): string {
  const method = channel === 'input' ? 'input.requested' : channel.split(':')[0];
  return `id: ${seq}\nevent: ${method}\ndata: {"type":"event","event_id":"${seq}","seq":${seq},${body.slice(1)}\n\n`;
}

/** Tells the numbers of the events around a gap, and the channels where it is one of theirs alone. */
function missed(after: number, through: number, channels?: readonly string[]): string {
  const data = { name: MISSED_EVENTS, payload: { after, before: through + 1, channels } };
  const params = { namespace: [], timestamp: Date.now(), data };
  const id = channels === undefined ? `missed-${through}` : `missed-${through}-${channels}`;
  const event = { type: 'event', event_id: id, method: 'custom', params };
  return `event: custom\ndata: ${JSON.stringify(event)}\n\n`;
}
