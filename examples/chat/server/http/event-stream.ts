import { setTimeout as wait } from 'node:timers/promises';
import { isPrefixMatch } from '@langchain/langgraph/stream';
import type { z } from 'zod';
import { plainJson } from '../runs/messages.ts';
import { MISSED_EVENTS } from '../runs/run-events.ts';
import { isUnavailable } from '../storage/database.ts';
import type { NewEvent, StoredEvent } from '../storage/schema.ts';
import type { ThreadStore } from '../storage/store.ts';
import type { SUBSCRIPTION } from './requests.ts';
import type { ThreadStates } from './thread-states.ts';

/** Interval of heartbeats. Clients and proxies close streams that send nothing for longer. */
const HEARTBEAT_MS = 5_000;
const PAGE_EVENTS = 200;
const FRAMES_CHARS_MAX = 1024 * 1024;
/** Maximum time to wait for a checkpoint, which is stored shortly after its event. */
const STATE_WAIT_MS = 10_000;
const STATE_RETRY_MS = 20;

type Subscription = z.infer<typeof SUBSCRIPTION>;

export interface EventStreamOptions {
  readonly store: ThreadStore;
  readonly states: ThreadStates;
  readonly mask: (text: string) => string;
  readonly threadId: string;
  readonly subscription: Subscription;
  /** Number of the last event that the client has received. */
  readonly since: number;
  /** Signal that closes the stream. */
  readonly end: AbortSignal;
}

/**
 * Streams a thread's events as server-sent events until the client disconnects or the chat stops: the events in the
 * log, a comment `live`, then new events. The next events are read from the log only when the client has received the
 * previous ones, so a slow client uses no memory. If events that the client needs were deleted, the client receives a
 * `missed_events` event.
 */
export function eventStream(options: EventStreamOptions): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const frames = framesOf(options);
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const { value, done } = await frames.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      cancel: () => void frames.return(undefined),
    },
    { highWaterMark: 0 },
  );
}

async function* framesOf(options: EventStreamOptions): AsyncGenerator<string> {
  const { store, threadId, subscription, end } = options;
  let after = options.since;
  let isLive = false;
  let isWoken = false;
  let wake = (): void => {};
  const onWake = (): void => {
    isWoken = true;
    wake();
  };
  const untilWoken = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const unwatch = store.watch('events', threadId, onWake);
  end.addEventListener('abort', onWake);
  try {
    yield ': open\n\n';
    let heartbeatAt = performance.now() + HEARTBEAT_MS;
    for (;;) {
      isWoken = false;
      const { events, droppedThrough } = await store.read(threadId, after, PAGE_EVENTS);
      let frames = droppedThrough > after ? missed(after, droppedThrough) : '';
      after = Math.max(after, droppedThrough);
      for (const event of events) {
        after = event.seq;
        if (matches(event, subscription)) frames += await frameOf(event, options);
        if (frames.length >= FRAMES_CHARS_MAX) break;
      }
      if (frames === '') {
        if (events.length > 0) continue;
        if (end.aborted) return;
        const leftMs = heartbeatAt - performance.now();
        if (isLive && leftMs > 0) {
          if (!isWoken) await untilWoken(leftMs);
          continue;
        }
        frames = isLive ? ': heartbeat\n\n' : ': live\n\n';
        isLive = true;
      }
      yield frames;
      heartbeatAt = performance.now() + HEARTBEAT_MS;
    }
  } catch (error) {
    // If the store is unavailable, the stream just ends. The client then reconnects and receives the events that it has
    // missed.
    if (!end.aborted && !isUnavailable(error)) throw error;
  } finally {
    unwatch();
    end.removeEventListener('abort', onWake);
  }
}

/** Whether an event belongs to a subscription. */
function matches({ channel, namespace }: NewEvent, { channels, namespaces, depth }: Subscription): boolean {
  const kind = channel.startsWith('custom:') ? 'custom' : channel;
  if (channels !== undefined && !channels.includes(channel) && !channels.includes(kind)) return false;
  if (!namespaces || namespaces.length === 0) return true;
  return namespaces.some(
    (prefix) =>
      isPrefixMatch([...namespace], prefix) && namespace.length - prefix.length <= (depth ?? Number.POSITIVE_INFINITY),
  );
}

async function frameOf({ seq, channel, namespace, body }: StoredEvent, options: EventStreamOptions): Promise<string> {
  const method = channel === 'input' ? 'input.requested' : channel.split(':')[0];
  const isState = channel === 'values' && namespace.length === 0;
  const whole = isState ? await withState(body, options) : body;
  if (whole === undefined) return '';
  const data = `{"type":"event","event_id":"${seq}","seq":${seq},${options.mask(whole).slice(1)}`;
  return `id: ${seq}\nevent: ${method}\ndata: ${data}\n\n`;
}

/** Adds to an event the state of the checkpoint that it names. Returns undefined if the checkpoint no longer exists. */
async function withState(body: string, { states, threadId, end }: EventStreamOptions): Promise<string | undefined> {
  const { params, ...event } = JSON.parse(body);
  const deadline = performance.now() + STATE_WAIT_MS;
  for (let delayMs = STATE_RETRY_MS; !end.aborted && performance.now() < deadline; delayMs *= 2) {
    const data = await states.valuesOf(threadId, params.checkpoint_id);
    if (data !== undefined) return plainJson({ ...event, params: { ...params, data } });
    await wait(delayMs);
  }
  return undefined;
}

/** Returns an event that reports that the events between two numbers were deleted. */
function missed(after: number, through: number): string {
  const data = { name: MISSED_EVENTS, payload: { after, before: through + 1 } };
  const params = { namespace: [], timestamp: Date.now(), data };
  const event = { type: 'event', event_id: `missed-${through}`, method: 'custom', params };
  return `event: custom\ndata: ${JSON.stringify(event)}\n\n`;
}
