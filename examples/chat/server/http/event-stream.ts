import { setTimeout as wait } from 'node:timers/promises';
import { isPrefixMatch } from '@langchain/langgraph/stream';
import type { z } from 'zod';
import { fieldsOf, plainJson } from '../runs/messages.ts';
import { MISSED_EVENTS } from '../runs/run-events.ts';
import type { ThreadStates } from '../runs/thread-states.ts';
import { isUnavailable } from '../storage/database.ts';
import type { NewEvent, StoredEvent } from '../storage/schema.ts';
import type { Store } from '../storage/store.ts';
import type { SUBSCRIPTION } from './requests.ts';

/** Clients and proxies close streams that are silent for longer. */
const HEARTBEAT_MS = 5_000;
const PAGE_EVENTS = 200;
const FRAMES_CHARS_MAX = 1024 * 1024;
/** A checkpoint is stored shortly after its event. */
const STATE_WAIT_MS = 10_000;
const STATE_RETRY_MS = 20;

export type Subscription = z.infer<typeof SUBSCRIPTION>;

export interface EventStreamOptions {
  readonly store: Store;
  readonly states: ThreadStates;
  readonly mask: (text: string) => string;
  readonly threadId: string;
  readonly subscription: Subscription;
  /** Closes the stream. */
  readonly end: AbortSignal;
}

/**
 * The events of a thread as server-sent events: first those in the log, then a comment `live`, then new events, until the
 * client disconnects or the chat stops. The stream keeps the number of the last event and nothing else, so a slow client costs no memory. If
 * events that it needs are no longer in the log, it receives a `missed_events` event.
 */
export function eventStream(options: EventStreamOptions): ReadableStream<Uint8Array> {
  const { store, threadId, subscription, end } = options;
  const encoder = new TextEncoder();
  let after = subscription.since ?? 0;
  let isLeft = false;
  let isLive = false;
  let isWoken = false;
  let wake = (): void => {};
  const onEvents = (): void => {
    isWoken = true;
    wake();
  };
  const unwatch = store.watchEvents(threadId, onEvents);
  end.addEventListener('abort', onEvents);

  function leave(): void {
    isLeft = true;
    unwatch();
    end.removeEventListener('abort', onEvents);
    wake();
  }

  /** Frames of the next events. Undefined if the stream ends. */
  async function next(): Promise<string | undefined> {
    // Events that do not match are no sign of life for the client.
    const heartbeatAt = performance.now() + HEARTBEAT_MS;
    while (!isLeft) {
      isWoken = false;
      const { events, droppedThrough } = await store.read(threadId, after, PAGE_EVENTS);
      let frames = droppedThrough > after ? missed(after, droppedThrough) : '';
      after = Math.max(after, droppedThrough);
      for (const event of events) {
        after = event.seq;
        if (matches(event, subscription)) frames += await frameOf(event, options);
        if (frames.length >= FRAMES_CHARS_MAX) break;
      }
      if (frames !== '') return frames;
      if (events.length > 0) continue;
      if (end.aborted) return undefined;
      if (!isLive) {
        isLive = true;
        return ': live\n\n';
      }
      const leftMs = heartbeatAt - performance.now();
      if (leftMs <= 0) return ': heartbeat\n\n';
      if (!isWoken) await sleep(leftMs);
    }
    return undefined;
  }

  function sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => controller.enqueue(encoder.encode(': open\n\n')),
      pull: async (controller) => {
        try {
          const text = await next();
          if (text !== undefined) return controller.enqueue(encoder.encode(text));
        } catch (error) {
          if (!isLeft) leave();
          // A client that loses its stream connects again, and learns what it missed.
          if (!end.aborted && !isUnavailable(error)) throw error;
        }
        const wasLeft = isLeft;
        leave();
        if (!wasLeft || !end.aborted) closeQuietly(controller);
        return undefined;
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
}

/** Whether an event is one that a subscription asks for. */
export function matches(
  { channel, namespace }: Pick<NewEvent, 'channel' | 'namespace'>,
  { channels, namespaces, depth }: Subscription,
): boolean {
  const isOnChannel =
    channels?.some((wanted) => wanted === channel || (wanted === 'custom' && channel.startsWith('custom:'))) ?? true;
  if (!isOnChannel || namespaces === null || namespaces === undefined || namespaces.length === 0) return isOnChannel;
  return namespaces.some(
    (prefix) =>
      isPrefixMatch([...namespace], [...prefix]) &&
      (depth === null || depth === undefined || namespace.length - prefix.length <= depth),
  );
}

function closeQuietly(controller: ReadableStreamDefaultController): void {
  try {
    controller.close();
  } catch {
    // The client has cancelled the stream.
  }
}

async function frameOf({ seq, channel, namespace, body }: StoredEvent, options: EventStreamOptions): Promise<string> {
  const method = channel === 'input' ? 'input.requested' : channel.split(':')[0];
  const isState = channel === 'values' && namespace.length === 0;
  const whole = isState ? await withState(body, options) : body;
  if (whole === undefined) return '';
  return `id: ${seq}\nevent: ${method}\ndata: {"type":"event","event_id":"${seq}","seq":${seq},${whole.slice(1)}\n\n`;
}

/** Adds the state of the checkpoint that an event names. Undefined if the checkpoint no longer exists. */
async function withState(
  body: string,
  { states, mask, threadId, end }: EventStreamOptions,
): Promise<string | undefined> {
  const { params, ...event } = JSON.parse(body);
  const deadline = performance.now() + STATE_WAIT_MS;
  for (let delayMs = STATE_RETRY_MS; !end.aborted; delayMs *= 2) {
    const state = await states.get(threadId, params.checkpoint_id);
    if (state !== undefined) return mask(plainJson({ ...event, params: { ...params, data: fieldsOf(state).values } }));
    if (performance.now() > deadline) return undefined;
    await wait(delayMs);
  }
  return undefined;
}

/** Reports that events between two numbers are no longer kept. */
function missed(after: number, through: number): string {
  const data = { name: MISSED_EVENTS, payload: { after, before: through + 1 } };
  const params = { namespace: [], timestamp: Date.now(), data };
  const event = { type: 'event', event_id: `missed-${through}`, method: 'custom', params };
  return `event: custom\ndata: ${JSON.stringify(event)}\n\n`;
}
