import { RunspanError } from '../../../base/errors.ts';
import { FUNCTION, wholeFrom } from '../../../config/checker.ts';
import { OBJECT_OPTION } from '../../client-options.ts';
import { callOf, type Endpoint, type PreparedCall } from '../../endpoint.ts';
import type { AgentService } from '../agent-service.ts';
import { EventSource, leavable, type StreamStatus } from '../streams/event-source.ts';
import { STREAM_OPTIONS, type StreamOptions } from '../streams/run-policy.ts';
import type { StreamTrace } from '../streams/stream-trace.ts';
import type { CommandedRun } from './thread-command.ts';
import type { ThreadChannel, ThreadEvent } from './thread-event.ts';
import { ThreadPolicy } from './thread-policy.ts';

/** Options for reading a thread's events. */
export interface ThreadEventsOptions extends StreamOptions {
  /** @default all channels of the protocol */
  channels?: readonly ThreadChannel[] | undefined;
  /**
   * Namespaces whose events are returned, including nested namespaces. To select the agent and its direct subagents,
   * set `namespaces` to `[[]]` and `depth` to 1.
   */
  namespaces?: readonly (readonly string[])[] | undefined;
  /**
   * Maximum depth of the returned events, in levels below the selected namespaces.
   * @default unlimited
   */
  depth?: number | undefined;
  /** Sequence number (`seq`) of the event after which the stream starts. */
  since?: number | undefined;
  /**
   * Run whose events are read, as returned by `start` or `respond`. The stream ends when the run ends. The channel
   * `lifecycle` is added automatically.
   */
  run?: CommandedRun | undefined;
  /**
   * Called with `reconnecting` when the connection is lost, and with `live` after the last stored event. The status
   * `live` requires a server that sends a `live` comment after the stored events. The reference chat application sends
   * this comment. Errors thrown by `onStatus` are logged.
   */
  onStatus?: ((status: StreamStatus) => void) | undefined;
}

const ALL_CHANNELS: readonly ThreadChannel[] = [
  'values',
  'updates',
  'messages',
  'tools',
  'lifecycle',
  'input',
  'checkpoints',
  'tasks',
  'custom',
];

const areTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((text) => typeof text === 'string' && text !== '');
const WHOLE = wholeFrom(0, Number.MAX_SAFE_INTEGER);

export const EVENTS_OPTIONS: NonNullable<Endpoint['options']> = {
  ...STREAM_OPTIONS,
  channels: ['a non-empty list of channels', (value) => areTexts(value) && (value as unknown[]).length > 0],
  namespaces: ['a list of lists of strings', (value) => Array.isArray(value) && value.every(areTexts)],
  depth: WHOLE,
  since: WHOLE,
  run: OBJECT_OPTION,
  onStatus: FUNCTION,
};

/**
 * A stream of a thread's events. Read the events with `for await (const event of events)`. Each event is read on
 * demand, and only once. Leaving the loop closes the connection. An open stream keeps the process alive. To close the
 * stream automatically, use `await using`. Closing the stream does not stop the run.
 *
 * If the connection breaks or ends, the stream reconnects and skips repeated events. The stream throws a StreamError if
 * it cannot reconnect, or after five consecutive reconnects without an event. The error contains the last event's name
 * and id. A stream for one run ends when the run ends. If the run fails, the stream throws a RunFailedError after the
 * last event.
 */
export class ThreadEvents<Values = Record<string, unknown>> implements AsyncIterable<ThreadEvent<Values>> {
  readonly #source: EventSource<ThreadEvent<Values>>;
  readonly #policy: ThreadPolicy<Values>;
  #isRead = false;

  /** @internal */
  constructor(source: EventSource<ThreadEvent<Values>>, policy: ThreadPolicy<Values>) {
    this.#source = source;
    this.#policy = policy;
    source.attach(this);
  }

  get threadId(): string {
    return this.#policy.place.threadId ?? '';
  }

  /**
   * Id of the run whose events are read. `runId` is undefined if the stream reads all of the thread's events or the
   * server omits the id.
   */
  get runId(): string | undefined {
    return this.#policy.place.runId;
  }

  /** Highest sequence number read so far. To continue reading later, pass `lastSeq` as `since`. */
  get lastSeq(): number | undefined {
    return this.#policy.lastSeq;
  }

  /** Id of the last event read. Some servers can resume a stream after this event. */
  get lastEventId(): string | undefined {
    return this.#source.lastEvent?.id;
  }

  /** Closes the connection and ends the iteration. */
  async close(): Promise<void> {
    this.#source.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  [Symbol.asyncIterator](): AsyncIterator<ThreadEvent<Values>, void, undefined> {
    if (this.#isRead) {
      const message = 'These events are already being read. Events can be read only once.';
      throw new RunspanError('RUNSPAN_INVALID_REQUEST', message);
    }
    this.#isRead = true;
    return leavable(this.#source.events(), () => this.close());
  }
}

/** Creates the request for an event stream. Throws an error if an option is invalid. */
export function eventsRequest(endpoint: Endpoint, threadId: string, options: ThreadEventsOptions = {}): PreparedCall {
  const call = callOf(endpoint, { ids: { thread_id: threadId }, options });
  const { channels = ALL_CHANNELS, namespaces, depth, run }: ThreadEventsOptions = call.own;
  if (run !== undefined && namespaces?.every((names) => names.length > 0) === true) {
    const message = 'Expected `namespaces` to contain [] if `run` is set, because the end of the run is reported there';
    throw new RunspanError('RUNSPAN_INVALID_OPTION', message);
  }
  const wanted = run === undefined || channels.includes('lifecycle') ? channels : [...channels, 'lifecycle'];
  return { ...call, body: { channels: wanted, namespaces, depth } };
}

/** Opens a stream of a thread's events. Resolves when the response headers arrive. */
export async function openThreadEvents<Values>(
  service: AgentService,
  call: PreparedCall,
  trace?: StreamTrace,
): Promise<ThreadEvents<Values>> {
  const { since, lastEventId, run, idleTimeoutMs = service.idleTimeoutMs, onStatus }: ThreadEventsOptions = call.own;
  const policy = new ThreadPolicy<Values>({ call, since, lastEventId, run });
  const source = await EventSource.open(service.api, { policy, idleTimeoutMs, trace, onStatus });
  return new ThreadEvents<Values>(source, policy);
}
