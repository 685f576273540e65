import { NoAnswerError } from '../../../http/errors.ts';
import type { PreparedCall } from '../../endpoint.ts';
import type { ServerSentEvent } from '../../event-stream.ts';
import type { RunPlace } from '../errors.ts';
import { type RunError, runErrorOf } from '../streams/agent-event.ts';
import { type ResumePolicy, type StreamRequest, UnrecoverableError } from '../streams/event-source.ts';
import type { ReceivedEvent } from '../streams/stream-trace.ts';
import type { CommandedRun } from './thread-command.ts';
import { type LifecycleData, missedEvents, type ThreadEvent } from './thread-event.ts';
import { threadEventOf } from './thread-event-form.ts';

/** Number of heartbeats after which a connection counts as working, even without an event. */
const WORKING_HEARTBEATS = 3;

/** Limits within which the last event must arrive again after a reconnect. */
const CONFIRMATION_MS = 5_000;
const CONFIRMATION_HEARTBEATS = 1;

/** Number of recent event ids to keep for detecting repeated events. */
const WINDOW_EVENTS = 1_000;

interface ThreadStream {
  readonly call: PreparedCall;
  /** Sequence number after which events are requested. */
  readonly since: number | undefined;
  /** Id of the event after which events are requested, if the server knows the id. */
  readonly lastEventId: string | undefined;
  /** The run whose end also ends the stream. */
  readonly run: CommandedRun | undefined;
}

/**
 * Resumes a thread's event stream. The server never ends this stream, so a closed connection always counts as a break.
 * On each connection, the server sends the requested stored events first.
 *
 *     live ──break──→ resuming ──last event arrives first──→ live
 *                        └──other event, silence──→ restarted ──event──→ live
 *
 * In the state `resuming`, the client requests the last event and all later events. A server that still has the events
 * sends the last event first. Otherwise, the server may have restarted and be counting from 1 again. In the state
 * `restarted`, the client requests all events.
 */
export class ThreadPolicy<Values> implements ResumePolicy<ThreadEvent<Values>> {
  readonly #stream: ThreadStream;
  readonly #seen: SeenEvents;
  #state: 'live' | 'resuming' | 'restarted' = 'live';
  #heartbeats = 0;
  #lastId: string | undefined;
  #idBefore: string | undefined;
  readonly place: RunPlace;
  readonly isComplete = false;
  end: 'open' | 'now' = 'open';
  runError: RunError | undefined;

  constructor(stream: ThreadStream) {
    this.#stream = stream;
    this.#seen = new SeenEvents(stream.since);
    this.place = { runId: stream.run?.run_id, threadId: stream.call.ids.thread_id };
  }

  get lastSeq(): number | undefined {
    return this.#seen.latest?.seq;
  }

  get first(): StreamRequest {
    return this.#request(this.#stream.since, this.#stream.lastEventId);
  }

  get silenceMaxMs(): number {
    return this.#state === 'resuming' ? CONFIRMATION_MS : Number.POSITIVE_INFINITY;
  }

  silent(): void {
    if (this.#state === 'resuming') this.#state = 'restarted';
  }

  connected(): string {
    this.#heartbeats = 0;
    return '';
  }

  accept(sent: ServerSentEvent): ThreadEvent<Values> | undefined {
    const event = threadEventOf<Values>(sent);
    if (this.#state === 'resuming') this.#confirm(event);
    else this.#state = 'live';
    if (!this.#seen.add(event)) return undefined;
    this.#idBefore = this.#lastId;
    this.#lastId = sent.id === '' ? undefined : sent.id;
    const { run } = this.#stream;
    if (run === undefined) return event;
    if (!isOf(run, event)) return undefined;
    const data = endOf(event);
    if (data !== undefined) this.end = 'now';
    if (data?.event === 'failed') this.runError = data.error === undefined ? {} : runErrorOf({ message: data.error });
    return event;
  }

  nameOf({ name }: ThreadEvent<Values>): string {
    return name;
  }

  recorded({ method, name, params: { namespace, data } }: ThreadEvent<Values>): ReceivedEvent {
    const isState = method === 'values' && namespace.length === 0;
    return { name: [name, ...namespace].join('|'), data, state: isState ? () => JSON.stringify(data) : undefined };
  }

  heartbeat(): boolean {
    this.#heartbeats++;
    if (this.#state === 'resuming' && this.#heartbeats > CONFIRMATION_HEARTBEATS) this.#restart();
    if (this.#heartbeats < WORKING_HEARTBEATS) return false;
    // A restarted server does not know the run and would never send its end.
    if (this.#state === 'restarted' && this.#stream.run !== undefined)
      throw new UnrecoverableError('the server no longer has the events');
    return true;
  }

  resume(): StreamRequest {
    const { since, lastEventId } = this.#stream;
    const { lastSeq } = this;
    if (lastSeq === undefined) return this.#request(since, this.#lastId ?? lastEventId);
    if (this.#state === 'restarted') return this.#request(undefined, lastEventId);
    this.#state = 'resuming';
    return this.#request(lastSeq - 1, this.#idBefore);
  }

  /**
   * Checks whether the server resumes the stream after the last received event. Events without a `seq` are ignored,
   * because their position is unknown.
   */
  #confirm(event: ThreadEvent<Values>): void {
    const isReport = missedEvents(event) !== undefined;
    if (event.seq === undefined && !isReport) return;
    if (!isReport && !this.#seen.isLatest(event)) this.#restart();
    this.#state = 'live';
  }

  #restart(): never {
    this.#state = 'restarted';
    throw new NoAnswerError('the new connection did not continue after the last event');
  }

  #request(since: number | undefined, lastEventId: string | undefined): StreamRequest {
    const { call } = this.#stream;
    const body = since === undefined || since < 0 ? call.body : { ...(call.body as object), since };
    return { call: { ...call, body, isIdempotent: true }, lastEventId };
  }
}

/** Returns whether an event belongs to a run. Compares run ids or, if an id is missing, sequence numbers. */
function isOf({ run_id, applied_through_seq }: CommandedRun, event: ThreadEvent<unknown>): boolean {
  const { params, seq } = event;
  const eventRunId: unknown = params.run_id ?? (event.method === 'lifecycle' ? event.params.data.run_id : undefined);
  if (run_id !== undefined && typeof eventRunId === 'string') return eventRunId === run_id;
  return applied_through_seq === undefined || seq === undefined || seq > applied_through_seq;
}

/** Returns the event's data if the event ends a run, otherwise undefined. */
function endOf(event: ThreadEvent<unknown>): LifecycleData | undefined {
  if (event.method !== 'lifecycle' || event.params.namespace.length > 0) return undefined;
  return ['completed', 'failed', 'interrupted'].includes(event.params.data.event) ? event.params.data : undefined;
}

interface SeenEvent {
  readonly event_id?: string | undefined;
  readonly seq?: number | undefined;
  readonly params: { readonly timestamp?: number | undefined };
}

/**
 * Detects repeated events in bounded memory. The latest 1000 events are compared by id, and earlier events by `seq`. An
 * event with a later timestamp counts as new, because a restarted server may reuse ids and numbers.
 */
class SeenEvents {
  /** Maps the id of each recent event to its `seq`, oldest first. */
  readonly #window = new Map<string, number | undefined>();
  #floor: number;
  #latestMs: number | undefined;
  latest: SeenEvent | undefined;

  /** Treats events up to `since` as already added. */
  constructor(since = -1) {
    this.#floor = since;
  }

  isLatest({ event_id, seq, params: { timestamp } }: SeenEvent): boolean {
    const { latest } = this;
    return latest?.seq === seq && latest?.event_id === event_id && latest?.params.timestamp === timestamp;
  }

  /**
   * Adds an event. Returns false if the event was already added. An event without an id and a `seq` always counts as
   * new.
   */
  add({ event_id, seq, params: { timestamp } }: SeenEvent): boolean {
    const key = event_id ?? (seq === undefined ? undefined : `#${seq}`);
    if (key === undefined) return true;
    const isKnown = this.#window.has(key) || (seq !== undefined && seq <= this.#floor);
    // Timestamps are compared only for events with a `seq`. The server creates other events again for each connection.
    const isLater = seq !== undefined && timestamp !== undefined && timestamp > (this.#latestMs ?? timestamp);
    if (isKnown && !isLater) return false;
    if (isKnown) {
      this.#window.clear();
      this.#floor = -1;
      this.latest = undefined;
    }
    if (timestamp !== undefined) this.#latestMs = Math.max(timestamp, this.#latestMs ?? timestamp);
    if (seq !== undefined && seq > (this.latest?.seq ?? -1)) this.latest = { event_id, seq, params: { timestamp } };
    this.#window.set(key, seq);
    if (this.#window.size > WINDOW_EVENTS) this.#forgetOldest();
    return true;
  }

  #forgetOldest(): void {
    const [[key, seq] = ['', undefined]] = this.#window;
    this.#window.delete(key);
    if (seq !== undefined) this.#floor = Math.max(this.#floor, seq);
  }
}
