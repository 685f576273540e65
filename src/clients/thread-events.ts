import { RunspanError } from '../base/errors.ts';
import { type Check, type Checks, wholeFrom } from '../base/options.ts';
import { runErrorOf } from './agent-event.ts';
import { type AgentService, splitOptions } from './agent-service.ts';
import { OBJECT, TEXTS } from './body-rules.ts';
import type { CallOptions } from './client-options.ts';
import { RunFailedError, type RunPlace } from './run-failed-error.ts';
import { STREAM_CHECKS, type StreamOptions } from './run-stream.ts';
import { toldBreak } from './stream-break.ts';
import type { LastEvent } from './stream-error.ts';
import type { StreamTrace } from './stream-trace.ts';
import type { CommandedRun } from './thread-command.ts';
import type { LifecycleEvent, ThreadChannel, ThreadEvent } from './thread-event.ts';
import { type SentEvent, ThreadFeed, type ThreadFeedOptions } from './thread-feed.ts';

/** Which events of a thread are wanted, and how they are read. */
export interface ThreadEventsOptions extends StreamOptions {
  /** @default all that the protocol names */
  channels?: readonly ThreadChannel[] | undefined;
  /** Only what is below one of these places of the agent: `[[]]` with `depth: 1` is the agent itself and its subagents. */
  namespaces?: readonly (readonly string[])[] | undefined;
  /** How far below. @default any */
  depth?: number | undefined;
  /** Only events behind the one with this `seq`. */
  since?: number | undefined;
  /**
   * Only events of this run, as `start` and `respond` resolve with it. They end with the run, for which `lifecycle` is added to the
   * channels.
   */
  run?: CommandedRun | undefined;
}

export const ALL_CHANNELS: readonly ThreadChannel[] = [
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

const NAMESPACES: Check = [
  'a list of lists of texts that are not empty',
  (value) => Array.isArray(value) && value.every((one) => TEXTS[1](one)),
];

const PLACE = wholeFrom(0, Number.MAX_SAFE_INTEGER);

export const EVENTS_CHECKS: Checks<Omit<ThreadEventsOptions, keyof CallOptions>> = {
  ...STREAM_CHECKS,
  channels: [
    'a list of channels that is not empty',
    (value) => TEXTS[1](value) && (value as readonly string[]).length > 0,
  ],
  namespaces: NAMESPACES,
  depth: PLACE,
  since: PLACE,
  run: OBJECT,
};

/** What a stream of events is for. */
export interface ThreadEventsRequest {
  readonly call: ThreadFeedOptions['call'];
  readonly threadId: string;
  readonly run: CommandedRun | undefined;
  /** Follows it for the run of the call, where there is one. */
  readonly trace?: StreamTrace | undefined;
}

/**
 * The events of a thread, to be read once: `for await (const event of events)`. They are read as far as they are asked for, no
 * further. To leave the loop ends the connection. Until they are read to their end, left or closed, which `await using` does, they
 * hold their connection, and with it the process. Runs go on whoever reads.
 *
 * A connection that breaks or ends is made again, up to five times in a row without an event, and every event is given once. In the
 * end a StreamError tells what arrived last. Of a run the events end with it; one that fails is thrown as a RunFailedError behind
 * its last event.
 */
export class ThreadEvents<Values = Record<string, unknown>> implements AsyncIterable<ThreadEvent<Values>> {
  readonly #service: AgentService;
  readonly #request: ThreadEventsRequest;
  readonly #feed: ThreadFeed<Values>;
  #isRead = false;
  #last: SentEvent<Values> | undefined;

  /** @internal */
  constructor(service: AgentService, request: ThreadEventsRequest, feed: ThreadFeed<Values>) {
    this.#service = service;
    this.#request = request;
    this.#feed = feed;
    request.trace?.watch(this, this.#place);
    leftLying.register(this, feed);
  }

  get threadId(): string {
    return this.#request.threadId;
  }

  /** The run that they are of; undefined where they are of no one run, or the server has not told. */
  get runId(): string | undefined {
    return this.#request.run?.run_id;
  }

  /** The highest `seq` that was read: `since` of a reader who goes on. */
  get lastSeq(): number | undefined {
    return this.#feed.lastSeq;
  }

  /** The id of the last event that was given, for a server that counts by them. */
  get lastEventId(): string | undefined {
    return this.#last?.id;
  }

  /** Ends the connection; an iteration ends with it. */
  async close(): Promise<void> {
    this.#feed.close();
    this.#request.trace?.cancel();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  [Symbol.asyncIterator](): AsyncIterator<ThreadEvent<Values>, void, undefined> {
    if (this.#isRead)
      throw new RunspanError('RUNSPAN_INVALID_REQUEST', 'These events are read already; they are given once.');
    this.#isRead = true;
    const events = this.#events();
    return {
      next: () => events.next(),
      return: async () => {
        // A step that waits for an event would hold the end up.
        await this.close();
        return events.return();
      },
    };
  }

  get #place(): RunPlace {
    return { runId: this.runId, threadId: this.threadId };
  }

  async *#events(): AsyncGenerator<ThreadEvent<Values>, void, undefined> {
    const { trace, run } = this.#request;
    const source = this.#feed.events();
    try {
      for (;;) {
        trace?.touch();
        const step = await source.next();
        if (step.done === true) break;
        const { event } = step.value;
        if (run !== undefined && !isOf(run, event)) continue;
        this.#last = step.value;
        this.#trace(event);
        const end = run === undefined ? undefined : endOf(event);
        if (end === undefined) {
          yield event;
          continue;
        }
        const failure = end.params.data.event === 'failed' ? this.#failure(end) : undefined;
        this.#finish(failure);
        yield event;
        if (failure !== undefined) throw failure;
        return;
      }
      trace?.cancel();
    } catch (thrown) {
      const { call } = this.#request;
      const lastEvent = this.#lastEvent();
      const told = toldBreak(thrown, { api: this.#service.api, call, place: this.#place, lastEvent });
      trace?.fail(told);
      throw told;
    } finally {
      await source.return();
    }
  }

  /** The connection is of no more use when the run has ended, whether or not its last event is read. */
  #finish(failure: Error | undefined): void {
    this.#feed.close();
    if (failure === undefined) this.#request.trace?.end();
    else this.#request.trace?.fail(failure);
  }

  #failure({ params: { data } }: LifecycleEvent): RunFailedError {
    const { call } = this.#request;
    const told = data.error === undefined ? {} : runErrorOf({ message: data.error });
    return new RunFailedError(this.#place, told, (text) => this.#service.api.masked(text, call));
  }

  #lastEvent(): LastEvent | undefined {
    return this.#last && { name: this.#last.event.name, id: this.#last.id };
  }

  #trace(event: ThreadEvent<Values>): void {
    const { trace } = this.#request;
    if (trace === undefined) return;
    const { method, params } = event;
    const { namespace, data } = params;
    const isState = method === 'values' && namespace.length === 0;
    const told = { event: isState ? 'values' : 'other', data, name: [event.name, ...namespace].join('|') } as const;
    trace.took({ ...told, namespace, id: undefined }, isState ? JSON.stringify(data) : '');
  }
}

/** Nobody can close events that nobody has: their connection would stay for as long as the server keeps it. */
const leftLying = new FinalizationRegistry<ThreadFeed<unknown>>((feed) => feed.close());

/** Opens the events of a thread; they are there when the head of the answer is. */
export async function openThreadEvents<Values>(
  service: AgentService,
  request: ThreadEventsRequest,
  { since, lastEventId, idleTimeoutMs = service.idleTimeoutMs }: ThreadEventsOptions,
): Promise<ThreadEvents<Values>> {
  const { call, run } = request;
  const isOfRun = run !== undefined;
  const feed = await ThreadFeed.open<Values>(service.api, { call, isOfRun, since, lastEventId, idleTimeoutMs });
  return new ThreadEvents<Values>(service, request, feed);
}

/** Options of events, checked, and the body that asks for them. */
export function eventsOptions(
  name: string,
  options: ThreadEventsOptions | undefined,
): { readonly options: CallOptions; readonly own: ThreadEventsOptions; readonly body: Record<string, unknown> } {
  const { own, options: common } = splitOptions<ThreadEventsOptions>(name, options, EVENTS_CHECKS);
  const { channels = ALL_CHANNELS, namespaces, depth, run } = own;
  if (run !== undefined && namespaces?.every((place) => place.length > 0) === true)
    throw new RunspanError('RUNSPAN_INVALID_OPTION', 'Expected `namespaces` to have [], where a run ends, with `run`');
  const wanted = run === undefined || channels.includes('lifecycle') ? channels : [...channels, 'lifecycle'];
  const places = { ...(namespaces !== undefined && { namespaces }), ...(depth !== undefined && { depth }) };
  return { options: common, own, body: { channels: wanted, ...places } };
}

/** Whether an event is of a run: by its id, or where the server does not tell that by its place. */
function isOf({ run_id, applied_through_seq }: CommandedRun, event: ThreadEvent<unknown>): boolean {
  const { params, seq } = event;
  const told: unknown = params.run_id ?? (event.method === 'lifecycle' ? event.params.data.run_id : undefined);
  if (run_id !== undefined && typeof told === 'string') return told === run_id;
  return applied_through_seq === undefined || seq === undefined || seq > applied_through_seq;
}

/** The event by which a run ends. */
function endOf<Values>(event: ThreadEvent<Values>): LifecycleEvent | undefined {
  if (event.method !== 'lifecycle' || event.params.namespace.length > 0) return undefined;
  return ['completed', 'failed', 'interrupted'].includes(event.params.data.event) ? event : undefined;
}
