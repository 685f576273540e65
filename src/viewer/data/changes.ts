import { type Signal, signal } from '@preact/signals';
import { api, isLocked } from './api.ts';

/** How the page stands to what the receiver tells: `off` by the reader's wish. */
export const live: Signal<'connecting' | 'on' | 'lost' | 'off'> = signal('connecting');

/** Called with the traces that have changed, or without when it is not known which. */
type Listener = (traceIds: ReadonlySet<string> | undefined) => void;

/** After a refusal a browser does not try again by itself. */
const RETRY_MS = 3_000;
/** What is shown does not wait longer for the stream of changes. */
const OPENING_MS_MAX = 1_000;

const listeners = new Set<Listener>();
let source: EventSource | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;
/** Whether something may have happened that nobody told. */
let isBehind = false;

/** Until the function given back has been called. */
export function onChanges(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Follows what happens, unless the reader does not wish it, or does not see it: browsers hold six connections to an origin
 * for all tabs together, so that a tab in the background lets go of its own. To be called again when that has changed.
 * Resolves when nothing that happens from then on is missed, or is known to be missed.
 */
export async function listen(): Promise<void> {
  if (live.value === 'off') return;
  leave();
  live.value = 'connecting';
  if (document.hidden) isBehind = true;
  else await opened(new EventSource('/query/changes'));
}

/** Stops following what happens, or follows it again from here on. */
export function toggleLive(): void {
  if (live.value === 'off') {
    isBehind = true;
    live.value = 'connecting';
    void listen();
    return;
  }
  leave();
  live.value = 'off';
}

function leave(): void {
  clearTimeout(retry);
  source?.close();
}

function opened(stream: EventSource): Promise<void> {
  source = stream;
  return new Promise((resolve) => {
    const timer = setTimeout(() => settle(true), OPENING_MS_MAX);
    const settle = (isMissed: boolean): void => {
      clearTimeout(timer);
      isBehind ||= isMissed;
      resolve();
    };
    stream.addEventListener('open', () => {
      live.value = 'on';
      settle(false);
      // What happened meanwhile has been missed when the receiver is another one than before.
      if (isBehind) tell(undefined);
      isBehind = false;
    });
    stream.addEventListener('change', ({ data }: MessageEvent<string>) => {
      const { trace_ids } = JSON.parse(data) as { trace_ids?: string[] };
      tell(trace_ids === undefined ? undefined : new Set(trace_ids));
    });
    stream.addEventListener('error', () => {
      live.value = 'lost';
      settle(true);
      if (stream.readyState === EventSource.CLOSED) void tryAgain();
    });
  });
}

/** A stream does not tell why it was refused. Where the key is asked for, whoever logs in listens again. */
async function tryAgain(): Promise<void> {
  await api.projects().catch(() => undefined);
  if (live.value === 'lost' && !isLocked.value) retry = setTimeout(() => void listen(), RETRY_MS);
}

function tell(traceIds: ReadonlySet<string> | undefined): void {
  for (const listener of listeners) listener(traceIds);
}
