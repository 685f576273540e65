import { createParser } from 'eventsource-parser';
import type { ChatServer } from './chat-server.ts';

/** An event as it came. */
export interface SeenEvent {
  readonly event_id: string;
  readonly seq: number;
  readonly method: string;
  readonly params: {
    readonly namespace: readonly string[];
    readonly run_id?: string;
    readonly data: Readonly<Record<string, unknown>>;
  };
}

/** Reads the stream of a thread, until one event is the last that is wanted. */
export async function* eventsOf(
  chat: ChatServer,
  threadId: string,
  subscription: object = {},
): AsyncGenerator<SeenEvent> {
  const stop = new AbortController();
  const answer = await fetch(`${chat.url}/api/threads/${threadId}/stream`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(subscription),
    signal: stop.signal,
  });
  if (answer.status !== 200 || answer.body === null) throw new Error(`${answer.status} ${await answer.text()}`);
  const events: SeenEvent[] = [];
  const parser = createParser({ onEvent: ({ data }) => events.push(JSON.parse(data) as SeenEvent) });
  try {
    for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
      parser.feed(text);
      yield* events.splice(0);
    }
  } finally {
    stop.abort();
  }
}

/** The events of a thread up to the end of a run. */
export async function untilEnd(
  chat: ChatServer,
  threadId: string,
  runId: string,
  subscription: object = {},
): Promise<SeenEvent[]> {
  const events: SeenEvent[] = [];
  for await (const event of eventsOf(chat, threadId, subscription)) {
    events.push(event);
    if (isEnd(event) && event.params.run_id === runId) return events;
  }
  throw new Error(`the stream of ${threadId} has ended before run ${runId}`);
}

/** Whether a run as a whole has ended by it. */
export function isEnd({ method, params }: SeenEvent): boolean {
  return method === 'lifecycle' && params.namespace.length === 0 && params.data.event !== 'running';
}

/** How the runs of a thread begin and end, in the order of its events. */
export function courseOf(events: readonly SeenEvent[]): string[] {
  return events
    .filter(({ method, params }) => method === 'lifecycle' && params.namespace.length === 0)
    .map(({ params }) => `${params.run_id} ${params.data.event}`);
}

/** The text of the messages of one namespace, by what was streamed. */
export function streamedText(
  events: readonly SeenEvent[],
  isWanted: (namespace: readonly string[]) => boolean,
): string {
  return events
    .filter(({ method, params }) => method === 'messages' && isWanted(params.namespace))
    .map(({ params }) => (params.data.delta as { text?: string } | undefined)?.text ?? '')
    .join('');
}
