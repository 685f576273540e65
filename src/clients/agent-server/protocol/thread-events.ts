import { RunspanError } from '../../../base/errors.ts';
import { wholeFrom } from '../../../base/options.ts';
import { type CallOptions, FUNCTION, OBJECT_OPTION } from '../../client-options.ts';
import { callOf, type Endpoint, type PreparedCall } from '../../endpoint.ts';
import type { AgentService } from '../agent-service.ts';
import { RunFailedError, type RunPlace } from '../errors.ts';
import { runErrorOf } from '../streams/agent-event.ts';
import { EventSource, type StreamStatus } from '../streams/event-source.ts';
import { STREAM_OPTIONS, type StreamOptions } from '../streams/run-policy.ts';
import type { StreamTrace } from '../streams/stream-trace.ts';
import type { CommandedRun } from './thread-command.ts';
import type { LifecycleEvent, ThreadChannel, ThreadEvent } from './thread-event.ts';
import { ThreadPolicy } from './thread-policy.ts';

/** Which events of a thread to read. */
export interface ThreadEventsOptions extends StreamOptions {
  /** @default all channels of the protocol */
  channels?: readonly ThreadChannel[] | undefined;
  /** Only events below one of these namespaces. `[[]]` with `depth: 1` is the agent itself and its subagents. */
  namespaces?: readonly (readonly string[])[] | undefined;
  /** Maximum depth below the namespaces. @default unlimited */
  depth?: number | undefined;
  /** Only events after the event with this `seq`. */
  since?: number | undefined;
  /**
   * Only events of this run, which `start` and `respond` return. The events end with the run. The channel `lifecycle` is
   * added.
   */
  run?: CommandedRun | undefined;
  /**
   * Called with `reconnecting` when the connection is lost, and with `live` after the stored events, if the server sends
   * the comment `live` there, like the reference chat application. An error of the function is logged.
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
  channels: ['a list of channels that is not empty', (value) => areTexts(value) && (value as unknown[]).length > 0],
  namespaces: ['a list of lists of texts', (value) => Array.isArray(value) && value.every(areTexts)],
  depth: WHOLE,
  since: WHOLE,
  run: OBJECT_OPTION,
  onStatus: FUNCTION,
};

/** The request of a stream of events, and what the events are for. */
export interface ThreadEventsRequest {
  readonly call: PreparedCall;
  readonly options: ThreadEventsOptions;
  /** Records the stream within a run of the application. */
  readonly trace?: StreamTrace | undefined;
}

/**
 * The events of a thread. `for await (const event of events)` reads them once, and no further than needed. Leaving the
 * loop closes the connection. Until the events are read to their end, left or closed, for example by `await using`, the
 * connection keeps the process alive. Runs continue without a reader.
 *
 * If a connection breaks or ends, the stream reconnects, up to five times in a row without an event. Each event is
 * returned once. If the stream cannot continue, it throws a StreamError with the last event. The events of a run end with
 * the run. If the run fails, the stream throws a RunFailedError after the last event.
 */
export class ThreadEvents<Values = Record<string, unknown>> implements AsyncIterable<ThreadEvent<Values>> {
  readonly #service: AgentService;
  readonly #request: ThreadEventsRequest;
  readonly #source: EventSource<ThreadEvent<Values>>;
  readonly #policy: ThreadPolicy<Values>;
  readonly #place: RunPlace;
  #isRead = false;

  /** @internal */
  constructor(
    service: AgentService,
    request: ThreadEventsRequest,
    source: EventSource<ThreadEvent<Values>>,
    policy: ThreadPolicy<Values>,
  ) {
    this.#service = service;
    this.#request = request;
    this.#source = source;
    this.#policy = policy;
    this.#place = placeOfEvents(request);
    request.trace?.watch(this, this.#place);
    unreachable.register(this, source);
  }

  get threadId(): string {
    return this.#place.threadId ?? '';
  }

  /** Id of the run whose events these are. Undefined for the events of a thread, or if the server sends no id. */
  get runId(): string | undefined {
    return this.#place.runId;
  }

  /** The highest `seq` that was read. A later reader can continue with it as `since`. */
  get lastSeq(): number | undefined {
    return this.#policy.lastSeq;
  }

  /** Id of the last event, for a server that continues after an id. */
  get lastEventId(): string | undefined {
    return this.#source.lastEvent?.id;
  }

  /** Closes the connection and ends the iteration. */
  async close(): Promise<void> {
    this.#source.close();
    this.#request.trace?.cancel();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  [Symbol.asyncIterator](): AsyncIterator<ThreadEvent<Values>, void, undefined> {
    if (this.#isRead) {
      const message = 'These events are already being read. They can be read once.';
      throw new RunspanError('RUNSPAN_INVALID_REQUEST', message);
    }
    this.#isRead = true;
    const events = this.#events();
    return {
      next: () => events.next(),
      return: async () => {
        // A pending read would otherwise delay the end.
        await this.close();
        return events.return();
      },
    };
  }

  async *#events(): AsyncGenerator<ThreadEvent<Values>, void, undefined> {
    const { trace, options } = this.#request;
    const { run } = options;
    const source = this.#source.events();
    try {
      for (;;) {
        trace?.touch();
        const step = await source.next();
        if (step.done === true) break;
        const event = step.value;
        if (run !== undefined && !isOf(run, event)) continue;
        this.#record(event);
        const end = run === undefined ? undefined : endOf(event);
        if (end === undefined) {
          yield event;
          continue;
        }
        // The connection is not needed after the run, even if the last event is never read.
        this.#source.close();
        const failure = end.params.data.event === 'failed' ? this.#failure(end) : undefined;
        if (failure === undefined) trace?.end();
        else trace?.fail(failure);
        yield event;
        if (failure !== undefined) throw failure;
        return;
      }
      trace?.cancel();
    } catch (thrown) {
      trace?.fail(thrown);
      throw thrown;
    } finally {
      await source.return();
    }
  }

  #failure({ params: { data } }: LifecycleEvent): RunFailedError {
    const { call } = this.#request;
    const error = data.error === undefined ? {} : runErrorOf({ message: data.error });
    return new RunFailedError(this.#place, error, (text) => this.#service.api.masked(text, call));
  }

  #record({ method, name, params }: ThreadEvent<Values>): void {
    const { namespace, data } = params;
    const isState = method === 'values' && namespace.length === 0;
    const recorded = { event: isState ? 'values' : 'other', data, name: [name, ...namespace].join('|') } as const;
    this.#request.trace?.received({ ...recorded, namespace }, isState ? JSON.stringify(data) : '');
  }
}

/** Closes streams that nobody can close any more. Their connections would stay open. */
const unreachable = new FinalizationRegistry<EventSource<unknown>>((source) => source.close());

/** Creates the request of a stream of events. Throws if an option is invalid. */
export function eventsRequest(
  endpoint: Endpoint,
  threadId: string,
  given: ThreadEventsOptions | undefined,
): ThreadEventsRequest {
  const args = { ids: { thread_id: threadId }, options: given as CallOptions };
  const call = callOf(endpoint, args);
  const options: ThreadEventsOptions = call.own;
  const { channels = ALL_CHANNELS, namespaces, depth, run } = options;
  if (run !== undefined && namespaces?.every((names) => names.length > 0) === true) {
    const message = 'Expected `namespaces` to contain [] if `run` is set, because the run ends there';
    throw new RunspanError('RUNSPAN_INVALID_OPTION', message);
  }
  const wanted = run === undefined || channels.includes('lifecycle') ? channels : [...channels, 'lifecycle'];
  return { call: { ...call, body: { channels: wanted, namespaces, depth } }, options };
}

/** Opens the events of a thread. Resolves when the response headers arrive. */
export async function openThreadEvents<Values>(
  service: AgentService,
  request: ThreadEventsRequest,
): Promise<ThreadEvents<Values>> {
  const { call, options } = request;
  const { since, lastEventId, run, idleTimeoutMs = service.idleTimeoutMs, onStatus } = options;
  const policy = new ThreadPolicy<Values>({ call, since, lastEventId, isOfRun: run !== undefined });
  const place = placeOfEvents(request);
  const source = await EventSource.open(service.api, { request: policy.first, policy, idleTimeoutMs, place, onStatus });
  return new ThreadEvents<Values>(service, request, source, policy);
}

function placeOfEvents({ call, options }: ThreadEventsRequest): RunPlace {
  return { runId: options.run?.run_id, threadId: call.ids.thread_id };
}

/** Whether an event belongs to a run: by its run id, or else by its `seq`. */
function isOf({ run_id, applied_through_seq }: CommandedRun, event: ThreadEvent<unknown>): boolean {
  const { params, seq } = event;
  const eventRunId: unknown = params.run_id ?? (event.method === 'lifecycle' ? event.params.data.run_id : undefined);
  if (run_id !== undefined && typeof eventRunId === 'string') return eventRunId === run_id;
  return applied_through_seq === undefined || seq === undefined || seq > applied_through_seq;
}

/** Returns the event if it ends a run. */
function endOf<Values>(event: ThreadEvent<Values>): LifecycleEvent | undefined {
  if (event.method !== 'lifecycle' || event.params.namespace.length > 0) return undefined;
  return ['completed', 'failed', 'interrupted'].includes(event.params.data.event) ? event : undefined;
}
