import { type Signal, signal } from '@preact/signals';
import { api, isLocked } from './api.ts';

/** State of the event stream. `off` means that the user paused the stream. */
export const live: Signal<'connecting' | 'on' | 'lost' | 'off'> = signal('connecting');

/** Function that receives the ids of the changed traces, or undefined if the ids are unknown. */
type Listener = (traceIds: ReadonlySet<string> | undefined) => void;

/** Delay before retrying a stream that the receiver refused, in milliseconds. Browsers do not retry refused streams. */
const RETRY_MS = 3_000;
/** Maximum time that the first view waits for the event stream, in milliseconds. */
const OPENING_MS_MAX = 1_000;

const listeners = new Set<Listener>();
let source: EventSource | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;

/** Adds a listener. Returns a function that removes the listener. */
export function onChanges(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Opens the event stream unless the user has paused the stream. If the page is hidden, closes the stream instead.
 * Browsers allow only six connections per origin across all tabs. Call `listen` again when the visibility of the page
 * changes. Resolves when the stream is open, has failed, or takes longer than `OPENING_MS_MAX`.
 */
export async function listenForChanges(): Promise<void> {
  if (live.value === 'off') return;
  close();
  live.value = 'connecting';
  if (!document.hidden) await opened(new EventSource('/query/changes'));
}

export function toggleLive(): void {
  if (live.value === 'off') {
    live.value = 'connecting';
    void listenForChanges();
    return;
  }
  close();
  live.value = 'off';
}

function close(): void {
  clearTimeout(retry);
  source?.close();
}

function opened(stream: EventSource): Promise<void> {
  source = stream;
  return new Promise((resolve) => {
    setTimeout(resolve, OPENING_MS_MAX);
    stream.addEventListener('open', () => {
      live.value = 'on';
      resolve();
      // A view that has already read its data may have missed changes.
      notify(undefined);
    });
    stream.addEventListener('change', ({ data }: MessageEvent<string>) => {
      const { trace_ids } = JSON.parse(data) as { trace_ids?: string[] };
      notify(trace_ids === undefined ? undefined : new Set(trace_ids));
    });
    stream.addEventListener('error', () => {
      live.value = 'lost';
      resolve();
      if (stream.readyState === EventSource.CLOSED) void retryLater();
    });
  });
}

/**
 * Opens the event stream again after a delay. A refused stream does not report its status, so an API call first checks
 * whether a key is required. If a key is required, the stream opens after the login.
 */
async function retryLater(): Promise<void> {
  await api.projects().catch(() => undefined);
  if (live.value === 'lost' && !isLocked.value) retry = setTimeout(() => void listenForChanges(), RETRY_MS);
}

function notify(traceIds: ReadonlySet<string> | undefined): void {
  for (const listener of listeners) listener(traceIds);
}
