import { Bell } from '../protocol/bell.ts';
import type { SessionStore, StoredEvent } from '../storage/session-store.ts';
import { isWanted, type Subscription } from './subscription.ts';

/** Readers take a stream for broken in which nothing comes for longer. */
const HEARTBEAT_MS = 5_000;
/** Events that are read at once; the reader's slowness holds up the next. */
const PAGE_EVENTS = 200;

/**
 * The events of a thread as server-sent events: those that have been, then those that come, until the reader leaves. Nothing is kept for a reader but the number of its last
 * event, so a slow one costs nothing; where it falls so far behind that events are no longer kept, it is told which by a `missed_events`.
 */
export function eventStream(
  sessions: SessionStore,
  threadId: string,
  subscription: Subscription,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let after = subscription.since ?? 0;
  let isOver = false;
  const bell = new Bell();
  const unwatch = sessions.watch(threadId, () => bell.ring());

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
        if (isWanted(event, subscription)) frames += frame(event);
      }
      if (frames !== '') return frames;
      const leftMs = heartbeatAt - performance.now();
      if (leftMs <= 0 || (events.length === 0 && !(await bell.rung(leftMs)))) return ': heartbeat\n\n';
      if (isOver) return '';
    }
  }

  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => controller.enqueue(encoder.encode(': open\n\n')),
      pull: async (controller) => {
        try {
          const text = await next();
          if (!isOver) controller.enqueue(encoder.encode(text));
        } catch (error) {
          // A stream that has failed is not told that its reader leaves.
          unwatch();
          throw error;
        }
      },
      cancel: () => {
        isOver = true;
        unwatch();
        bell.ring();
      },
    },
    { highWaterMark: 0 },
  );
}

function frame({ seq, channel, body }: StoredEvent): string {
  const method = channel === 'input' ? 'input.requested' : channel.split(':')[0];
  return `id: ${seq}\nevent: ${method}\ndata: {"type":"event","event_id":"${seq}","seq":${seq},${body.slice(1)}\n\n`;
}

/** Numbers of the events around the gap. */
function missed(after: number, droppedThrough: number): string {
  const data = { name: 'missed_events', payload: { after, before: droppedThrough + 1 } };
  const params = { namespace: [], timestamp: Date.now(), data };
  const event = { type: 'event', event_id: `missed-${droppedThrough}`, method: 'custom', params };
  return `event: custom\ndata: ${JSON.stringify(event)}\n\n`;
}
