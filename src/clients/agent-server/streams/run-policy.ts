import type { OpenAnswer } from '../../../http/transport.ts';
import type { Api } from '../../api.ts';
import { type CallOptions, TEXT_OPTION, TIMEOUT } from '../../client-options.ts';
import { type Endpoint, type PreparedCall, pathOf, queryText } from '../../endpoint.ts';
import type { ServerSentEvent } from '../../event-stream.ts';
import type { RunPlace } from '../errors.ts';
import type { RunSettings } from '../run-request.ts';
import { type AgentEvent, agentEventOf, type RunError } from './agent-event.ts';
import type { ResumePolicy, StreamRequest } from './event-source.ts';
import type { ReceivedEvent } from './stream-trace.ts';

/** Options for calls that return a stream. For a stream, `timeoutMs` limits only the wait for response headers. */
export interface StreamOptions extends CallOptions {
  /**
   * Id of the event after which the stream starts, if the server stores events. Use `-1` to start at the first event.
   */
  lastEventId?: string;
  /** Overrides the client's `idleTimeoutMs` for this stream. */
  idleTimeoutMs?: number;
}

export const STREAM_OPTIONS: NonNullable<Endpoint['options']> = { lastEventId: TEXT_OPTION, idleTimeoutMs: TIMEOUT };

export interface SentEvent<Values> {
  readonly event: AgentEvent<Values>;
  readonly characters: number;
}

/**
 * Resumes a run's stream after the last event id. The request is sent to the `Location` from the first response, or to
 * the run's path.
 */
export class RunPolicy<Values> implements ResumePolicy<SentEvent<Values>> {
  readonly place: { -readonly [Key in keyof RunPlace]: RunPlace[Key] };
  readonly #call: PreparedCall;
  /** Whether the stream belongs to one run and throws the run's error. */
  readonly #isOfRun: boolean;
  readonly #isStored: boolean;
  /** Path and query from which to resume. */
  #location: string | undefined;
  runError: RunError | undefined;
  end: 'open' | 'at a break' = 'open';
  #lastId: string;
  #sawEvent = false;
  /** Event id after which the connection resumes. The id is empty after the connection's first event. */
  #continuedId: string | undefined;

  constructor(call: PreparedCall) {
    const { method, ids, body } = call;
    this.#call = call;
    this.#isOfRun = method === 'POST' || ids.run_id !== undefined;
    this.#lastId = (call.own as StreamOptions).lastEventId ?? '';
    this.#isStored =
      !this.#isOfRun || this.#lastId !== '' || (body as RunSettings | undefined)?.stream_resumable === true;
    this.place = { runId: ids.run_id, threadId: ids.thread_id };
  }

  get first(): StreamRequest {
    return { call: this.#call, lastEventId: (this.#call.own as StreamOptions).lastEventId };
  }

  opened(headers: OpenAnswer['headers'], api: Api): void {
    if (this.#isOfRun) Object.assign(this.place, placeOf(headers['content-location'], this.place));
    this.#location = resumePath(headers.location, api);
  }

  /** When joining a stream, the run may already have ended, so no event arrives. */
  get isComplete(): boolean {
    return this.#sawEvent || this.#call.method === 'GET';
  }

  connected(): string {
    this.#continuedId = this.#lastId;
    return this.#lastId;
  }

  accept(sent: ServerSentEvent): SentEvent<Values> | undefined {
    const isRepeated = this.#continuedId !== '' && sent.hasOwnId && sent.id === this.#continuedId;
    this.#continuedId = '';
    if (isRepeated) return undefined;
    this.#lastId = sent.id;
    this.#sawEvent = true;
    const event = agentEventOf<Values>(sent);
    if (this.#isOfRun) {
      if (event.event === 'metadata' && typeof event.data.run_id === 'string') this.place.runId ??= event.data.run_id;
      if (event.event === 'error') this.runError = event.data;
      if (event.event === 'error' || event.event === 'end') this.end = 'at a break';
    }
    return { event, characters: sent.data.length };
  }

  nameOf({ event }: SentEvent<Values>): string {
    return event.name;
  }

  recorded({ event }: SentEvent<Values>, sent: ServerSentEvent): ReceivedEvent {
    const isState = event.event === 'values' && event.namespace.length === 0;
    return { name: sent.name, data: event.data, state: isState ? () => sent.data : undefined };
  }

  resume(): StreamRequest | string {
    const path = this.#location ?? this.#storedPath();
    if (path === undefined) return 'the server does not store the events of the run, so the stream cannot continue';
    if (this.#sawEvent && this.#lastId === '') return 'the last event has no id, so the stream cannot continue';
    const { name, method, options } = this.#call;
    // If the connection broke before the first event of a new run, request all events.
    return {
      call: { name, method: 'GET', path, options },
      lastEventId: this.#lastId === '' && method === 'POST' ? '-1' : this.#lastId,
    };
  }

  #storedPath(): string | undefined {
    const { runId, threadId } = this.place;
    if (!this.#isStored) return undefined;
    if (this.#call.method === 'GET') return this.#call.path + queryText(this.#call.query);
    const thread = threadId === undefined ? '' : `/threads/${pathOf(threadId)}`;
    return runId === undefined ? undefined : `${thread}/runs/${pathOf(runId)}/stream`;
  }
}

/** Reads the run id and thread id from `Content-Location: /threads/{thread_id}/runs/{run_id}`. */
export function placeOf(header: unknown, known: RunPlace): RunPlace {
  const [, threadId, runId] = /(?:\/threads\/([^/?#]+))?\/runs\/([^/?#]+)/.exec(String(header ?? '')) ?? [];
  return { runId: runId ?? known.runId, threadId: known.threadId ?? threadId };
}

/**
 * Returns the path in a `Location` header, relative to the base URL. Returns undefined for another origin, because the
 * API key must not be sent there.
 */
function resumePath(location: unknown, api: Api): string | undefined {
  const base = new URL(api.urlOf(''));
  if (typeof location !== 'string' || !URL.canParse(location, base.href)) return undefined;
  const { origin, pathname, search } = new URL(location, base);
  if (origin !== base.origin) return undefined;
  const prefix = base.pathname;
  const path = prefix !== '/' && pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : pathname;
  return path + search;
}
