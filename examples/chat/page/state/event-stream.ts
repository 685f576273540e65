import { createParser } from 'eventsource-parser';
import { errorOf, fieldsOf, pathOf } from './client.ts';

/** An event of a thread. */
export interface ThreadEvent {
  /** Type of the event, for example `messages` or `lifecycle`. */
  readonly method: string;
  /** Number of the event. Numbers increase with each event of the thread, and are never reused. */
  readonly seq?: number;
  readonly params: {
    /** Path of the subagent that sent the event, or an empty list for the main agent. */
    readonly namespace: readonly string[];
    readonly node?: string;
    readonly run_id?: string;
    readonly data?: unknown;
  };
}

/** Maximum time without a response or data. The server sends at least a comment every 5 s. */
const SILENCE_MS_MAX = 20_000;
const CHANNELS = ['messages', 'tools', 'lifecycle', 'checkpoints', 'input', 'custom'] as const;

/**
 * Opens a connection, and yields the thread's events after the number `since`, and `'live'` after the last stored
 * event. Ends when the server closes the connection. Throws if the server refuses the request, if the connection
 * breaks or is silent for too long, or if the signal aborts.
 */
export async function* eventsOf(
  threadId: string,
  since: number | undefined,
  signal: AbortSignal,
): AsyncGenerator<ThreadEvent | 'live', void, undefined> {
  const connection = new AbortController();
  let silence = setTimeout(() => connection.abort(), SILENCE_MS_MAX);
  try {
    const response = await fetch(`/api${pathOf(threadId)}/stream`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ channels: CHANNELS, since }),
      signal: AbortSignal.any([signal, connection.signal]),
    });
    if (!response.ok || response.body === null) throw await errorOf(response);
    const items: (ThreadEvent | 'live')[] = [];
    const parser = createParser({
      onEvent: ({ data }) => items.push(...eventIn(data)),
      onComment: (text) => void (text.trim() === 'live' && items.push('live')),
    });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      clearTimeout(silence);
      if (done) return;
      parser.feed(value);
      yield* items.splice(0);
      silence = setTimeout(() => connection.abort(), SILENCE_MS_MAX);
    }
  } finally {
    clearTimeout(silence);
    connection.abort();
  }
}

/** Parses an event. Returns nothing for text that is not an event. */
function eventIn(text: string): ThreadEvent[] {
  try {
    const event = JSON.parse(text) as ThreadEvent;
    return Array.isArray(fieldsOf(event.params).namespace) ? [event] : [];
  } catch {
    return [];
  }
}
