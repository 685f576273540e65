import { RunspanError } from '../base/errors.ts';
import { ignoreRejection } from '../base/guard.ts';
import { DELAY_MAX_MS } from '../base/limits.ts';
import { type Checks, wholeFrom } from '../base/options.ts';
import type { ServerSentEvent } from '../http/event-stream.ts';
import { type AgentEvent, agentEventOf, type FeedbackEvent, type RunError } from './agent-event.ts';
import type { AgentService } from './agent-service.ts';
import { TEXT } from './body-rules.ts';
import { type Call, pathOf } from './call.ts';
import type { CallOptions } from './client-options.ts';
import { EventFeed, type Resumption } from './event-feed.ts';
import { EventQueue } from './event-queue.ts';
import { resumptionAt } from './resumption.ts';
import { RunFailedError, type RunPlace } from './run-failed-error.ts';
import { toldBreak } from './stream-break.ts';
import type { LastEvent } from './stream-error.ts';
import type { StreamTrace } from './stream-trace.ts';

/** What a call takes whose answer is a stream; `timeoutMs` is for its head alone. */
export interface StreamOptions extends CallOptions {
  /** Goes on after the event of this id, where the server keeps events; `-1` begins with the first. */
  lastEventId?: string;
  /** As for the client. */
  idleTimeoutMs?: number;
}

/** What the options of a stream have to be, those of every call aside. */
export const STREAM_CHECKS: Checks<Omit<StreamOptions, keyof CallOptions>> = {
  lastEventId: TEXT,
  idleTimeoutMs: wholeFrom(1, DELAY_MAX_MS),
};

/** A stream as a group asks for it. */
export interface StreamRequest {
  readonly call: Call;
  readonly threadId?: string | undefined;
  readonly runId?: string | undefined;
  /** Whether it is of one run, whose error is the stream's; one of a thread tells of many. */
  readonly isOfRun: boolean;
  /** Whether the server was asked to keep its events. */
  readonly isKept?: boolean;
  readonly lastEventId?: string | undefined;
  readonly idleTimeoutMs?: number | undefined;
  /** Follows it for the run of the call, where there is one. */
  readonly trace?: StreamTrace | undefined;
}

/** A place of which the run may become known later. */
interface KnownPlace extends RunPlace {
  runId: string | undefined;
}

/**
 * The events of a run, to be read once: `for await (const event of stream)`. It is read as far as it is asked for, no further, so
 * a slow reader slows the server down. To leave the loop ends the connection; a stream that is not read has to be closed, which
 * `await using` does. Whether the run goes on then is up to its `on_disconnect`.
 *
 * An error of the run is given as an event, and thrown as a RunFailedError when the stream has ended. A connection that breaks
 * is made again where the server keeps the events (`stream_resumable`); else the stream throws a StreamError that tells what
 * arrived last.
 */
export class RunStream<Values = Record<string, unknown>> implements AsyncIterable<AgentEvent<Values>> {
  readonly #service: AgentService;
  readonly #request: StreamRequest;
  readonly #feed: EventFeed;
  readonly #source: AsyncGenerator<ServerSentEvent, void, undefined>;
  /** Events that were read for `feedback` and not for the iteration. */
  readonly #queue: EventQueue<AgentEvent<Values>> = new EventQueue();
  /** The feed goes on by it, as far as it is known by then. */
  readonly #place: KnownPlace;
  #reader: 'none' | 'iterating' | 'left' = 'none';
  #pulling: Promise<void> | undefined;
  #end: { readonly error: unknown } | 'clean' | undefined;
  #isLeft = false;
  #lastEvent: LastEvent | undefined;
  #runError: RunError | undefined;
  #addresses: FeedbackEvent['data'] | undefined;
  #feedback: Promise<FeedbackEvent['data']> | undefined;

  /** @internal */
  constructor(service: AgentService, request: StreamRequest, feed: EventFeed, place: KnownPlace) {
    this.#service = service;
    this.#request = request;
    this.#feed = feed;
    this.#place = place;
    this.#source = feed.events();
    request.trace?.watch(this, place);
    leftLying.register(this, feed);
  }

  /** The run, from the head of the answer or the first event; undefined until then, and for the stream of a thread. */
  get runId(): string | undefined {
    return this.#place.runId;
  }

  get threadId(): string | undefined {
    return this.#place.threadId;
  }

  /** By which `joinStream` goes on after what has been read so far. */
  get lastEventId(): string | undefined {
    return this.#lastEvent?.id;
  }

  /** Ends the connection; an iteration ends with it. */
  async close(): Promise<void> {
    this.#feed.close();
    this.#finish('clean', true);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentEvent<Values>, void, undefined> {
    if (this.#reader !== 'none') throw unreadable('This stream is read already; its events are given once.');
    if (this.#queue.isOverrun) throw unreadable('This stream was read by feedback(); iterate it before, or at once.');
    this.#reader = 'iterating';
    return {
      next: async () => {
        const value = await this.#next();
        return value === undefined ? { done: true, value } : { done: false, value };
      },
      return: async () => {
        this.#reader = 'left';
        this.#queue.clear();
        await this.close();
        return { done: true, value: undefined };
      },
    };
  }

  /**
   * The addresses for feedback by the keys of the request, when their event has come; it is the last, so it may take as long as the
   * run. The stream is read on for it, whether or not somebody iterates: what comes meanwhile is kept for the iteration, as far as
   * 1 MiB of it, beyond which the iteration has to go on. Without an iteration what is beyond is passed over, and there can be none
   * later. It rejects when the stream ends without the event.
   */
  feedback(): Promise<Readonly<Record<string, string>>> {
    if (this.#feedback === undefined) {
      this.#feedback = this.#readFeedback();
      // Where a loop throws the same, nobody comes to await it any more, which would end the process.
      ignoreRejection(this.#feedback);
    }
    return this.#feedback;
  }

  async #next(): Promise<AgentEvent<Values> | undefined> {
    for (;;) {
      const event = this.#queue.take();
      if (event !== undefined) return event;
      if (this.#end === 'clean' || this.#reader === 'left') return undefined;
      if (this.#end !== undefined) {
        // Told once; a further step is past the end.
        const { error } = this.#end;
        this.#end = 'clean';
        throw error;
      }
      await this.#pull();
    }
  }

  async #readFeedback(): Promise<FeedbackEvent['data']> {
    while (this.#addresses === undefined && this.#end === undefined) {
      // A reader that is slow takes what is here first.
      if (this.#queue.isFull && this.#reader === 'iterating') await this.#queue.room();
      else {
        if (this.#queue.isFull) this.#queue.overrun();
        await this.#pull();
      }
    }
    if (this.#addresses !== undefined) return this.#addresses;
    throw this.#endsWithout();
  }

  #endsWithout(): Error {
    const cause = this.#end === 'clean' ? undefined : this.#end?.error;
    if (cause instanceof Error && this.#runError === undefined) return cause;
    const run = this.runId === undefined ? 'the run' : `the run ${this.runId}`;
    const message = this.#isLeft
      ? `The stream was left before ${run} gave addresses for feedback`
      : `T${run.slice(1)} gave no addresses for feedback; ask for them by \`feedback_keys\` of its request`;
    return new RunspanError('RUNSPAN_NO_FEEDBACK_ADDRESS', message, cause === undefined ? {} : { cause });
  }

  /** Reads one event, for all who wait for one. */
  #pull(): Promise<void> {
    this.#pulling ??= this.#read().finally(() => {
      this.#pulling = undefined;
    });
    return this.#pulling;
  }

  async #read(): Promise<void> {
    this.#request.trace?.touch();
    try {
      const step = await this.#source.next();
      if (this.#end !== undefined) return;
      if (step.done === true) this.#finish(this.#runError === undefined ? 'clean' : { error: this.#failure() });
      else this.#took(step.value);
    } catch (thrown) {
      const { call } = this.#request;
      const read = { api: this.#service.api, call, place: this.#place, lastEvent: this.#lastEvent };
      this.#finish({ error: toldBreak(thrown, read) });
    }
  }

  #took(sent: ServerSentEvent): void {
    const event = agentEventOf<Values>(sent);
    this.#lastEvent = { name: event.name, id: event.id };
    if (event.event === 'metadata' && this.#request.isOfRun) this.#placed(event.data.run_id);
    if (event.event === 'feedback') this.#addresses = event.data;
    if (this.#request.isOfRun && event.event === 'error') this.#runError = event.data;
    if (this.#request.isOfRun && (event.event === 'error' || event.event === 'end')) this.#feed.isOver = true;
    this.#request.trace?.took(event, sent.data);
    this.#queue.put(event, sent.data.length);
  }

  /** Of an answer whose head has not told it. */
  #placed(runId: unknown): void {
    if (this.#place.runId !== undefined || typeof runId !== 'string') return;
    this.#place.runId = runId;
    this.#request.trace?.placed(this.#place);
  }

  #finish(end: { readonly error: unknown } | 'clean', isCancelled = false): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#isLeft = isCancelled;
    this.#queue.release();
    const { trace } = this.#request;
    if (end !== 'clean') trace?.fail(end.error);
    else if (isCancelled) trace?.cancel();
    else trace?.end();
  }

  #failure(): RunFailedError {
    const { call } = this.#request;
    return new RunFailedError(this.#place, this.#runError ?? {}, (text) => this.#service.api.masked(text, call));
  }
}

/** Nobody can close a stream that nobody has: its connection would stay for as long as the server keeps it. */
const leftLying = new FinalizationRegistry<EventFeed>((feed) => feed.close());

/** Sends the call of a stream; the stream is there when the head of its answer is. */
export async function openRunStream<Values>(service: AgentService, request: StreamRequest): Promise<RunStream<Values>> {
  const place = { runId: request.runId, threadId: request.threadId };
  let located: Resumption | undefined;
  const feed = await EventFeed.open(service.api, {
    call: request.call,
    idleTimeoutMs: request.idleTimeoutMs ?? service.idleTimeoutMs,
    lastEventId: request.lastEventId,
    resumption: () => located ?? keptAt(request, place),
  });
  if (request.isOfRun) Object.assign(place, placeOf(feed.headers['content-location'], place));
  located = resumptionAt(feed.headers.location, service.api);
  return new RunStream<Values>(service, request, feed, place);
}

/** Where the events of a stream are kept that the server was asked to keep. */
function keptAt(request: StreamRequest, { runId, threadId }: RunPlace): Resumption | undefined {
  if (request.isKept !== true && request.lastEventId === undefined) return undefined;
  if (request.call.method === 'GET') return request.call;
  if (runId === undefined) return undefined;
  const below = threadId === undefined ? [] : ['threads', threadId];
  return { path: pathOf(...below, 'runs', runId, 'stream') };
}

/** The run and its thread by `Content-Location: /threads/{thread_id}/runs/{run_id}`, over what is known. */
export function placeOf(header: unknown, known: RunPlace): RunPlace {
  const [, threadId, runId] = /(?:\/threads\/([^/?#]+))?\/runs\/([^/?#]+)/.exec(String(header ?? '')) ?? [];
  return { runId: runId ?? known.runId, threadId: known.threadId ?? threadId };
}

function unreadable(message: string): RunspanError {
  return new RunspanError('RUNSPAN_INVALID_REQUEST', message);
}
