import { RunspanError } from '../../../base/errors.ts';
import { ignoreRejection } from '../../../base/guard.ts';
import { type CallOptions, TEXT_OPTION, TIMEOUT } from '../../client-options.ts';
import { type Arguments, type Endpoint, preparedCall } from '../../endpoint.ts';
import { tracedStream } from '../../tracing.ts';
import { type AgentService, recordedInputs } from '../agent-service.ts';
import { RunFailedError } from '../errors.ts';
import type { AgentEvent, FeedbackEvent } from './agent-event.ts';
import { EventSource, type SentEvent } from './event-source.ts';
import type { StreamTrace } from './stream-trace.ts';

const WAITING_CHARACTERS_MAX = 1024 * 1024;

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

/**
 * A stream of a run's events. Read the events with `for await (const event of stream)`. Each event is read on demand,
 * and only once. A slow reader slows down the server. Leaving the loop closes the connection. Close a stream that you
 * do not read, for example with `await using`. The run's `on_disconnect` decides whether the run continues after the
 * stream is closed.
 *
 * If the run fails, the stream returns an `error` event and throws a RunFailedError at the end. If the connection breaks
 * or ends before the run, the stream reconnects, provided that the server stores events (`stream_resumable`). If a broken
 * stream cannot resume, it throws a StreamError with the last event's name and id.
 */
export class RunStream<Values = Record<string, unknown>> implements AsyncIterable<AgentEvent<Values>> {
  readonly #source: EventSource<Values>;
  readonly #events: AsyncGenerator<SentEvent<Values>, void, undefined>;
  /**
   * Events that `feedback` has read but the iterator has not returned yet. Undefined if `feedback` has dropped events.
   */
  #waiting: SentEvent<Values>[] | undefined = [];
  #waitingCharacters = 0;
  #hasRoom: (() => void) | undefined;
  #isIterated = false;
  #reading: Promise<void> | undefined;
  #end: StreamEnd | undefined;
  #urls: FeedbackEvent['data'] | undefined;
  #feedback: Promise<FeedbackEvent['data']> | undefined;

  /** @internal */
  constructor(source: EventSource<Values>) {
    this.#source = source;
    this.#events = source.events();
    source.attach(this);
  }

  /**
   * Id of the run. `runId` is undefined until the id arrives in the response headers or the first event. For a thread's
   * stream, the id is always undefined.
   */
  get runId(): string | undefined {
    return this.#source.place.runId;
  }

  get threadId(): string | undefined {
    return this.#source.place.threadId;
  }

  /** Id of the last event read. To resume after this event, pass the id to `joinStream`. */
  get lastEventId(): string | undefined {
    return this.#source.lastEvent?.id;
  }

  /** Closes the connection and ends the iteration. */
  async close(): Promise<void> {
    this.#source.close();
    this.#finish({ isLeft: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentEvent<Values>, void, undefined> {
    if (this.#isIterated) throw readError('This stream is already being read. A stream can be read only once.');
    if (this.#waiting === undefined)
      throw readError('feedback() has read this stream. Iterate over the stream first, or at the same time.');
    this.#isIterated = true;
    const events = this.#iterate();
    return {
      next: () => events.next(),
      // The stream is closed first, because a generator returns only after the pending read.
      return: async () => {
        this.#waiting = undefined;
        await this.close();
        return events.return();
      },
    };
  }

  /**
   * Returns the feedback URLs, keyed by feedback key. The URLs arrive in the last event, so `feedback` may take as long
   * as the run. `feedback` reads the stream even if no loop does, and buffers up to 1 MiB of events for a loop. If the
   * buffer is full, `feedback` waits for the loop. If no loop has started, `feedback` drops the events. Rejects if the
   * stream ends without feedback URLs.
   */
  feedback(): Promise<Readonly<Record<string, string>>> {
    if (this.#feedback === undefined) {
      this.#feedback = this.#readFeedback();
      // Avoid an unhandled rejection if the loop throws the error and nobody awaits this promise.
      ignoreRejection(this.#feedback);
    }
    return this.#feedback;
  }

  async *#iterate(): AsyncGenerator<AgentEvent<Values>, void, undefined> {
    for (;;) {
      const sent = this.#waiting?.shift();
      if (sent === undefined && this.#end !== undefined) break;
      if (sent === undefined) await this.#readOne();
      else {
        this.#waitingCharacters -= sent.characters;
        if (this.#waitingCharacters < WAITING_CHARACTERS_MAX) this.#hasRoom?.();
        yield sent.event;
      }
    }
    if ('error' in this.#end) throw this.#end.error;
  }

  async #readFeedback(): Promise<FeedbackEvent['data']> {
    while (this.#urls === undefined && this.#end === undefined) {
      const isFull = this.#waitingCharacters >= WAITING_CHARACTERS_MAX;
      if (isFull && this.#isIterated) {
        await new Promise<void>((resolve) => {
          this.#hasRoom = resolve;
        });
      } else {
        if (isFull) {
          this.#waiting = undefined;
          this.#waitingCharacters = 0;
        }
        await this.#readOne();
      }
    }
    if (this.#urls !== undefined) return this.#urls;
    const cause = this.#end?.error;
    if (cause instanceof Error && !(cause instanceof RunFailedError)) throw cause;
    const run = this.runId === undefined ? 'the run' : `the run ${this.runId}`;
    const message = this.#end?.isLeft
      ? `The stream was closed before ${run} returned feedback URLs`
      : cause instanceof RunFailedError
        ? `${cause.message}; it returned no feedback URLs`
        : `T${run.slice(1)} returned no feedback URLs; request them with \`feedback_keys\``;
    throw new RunspanError('RUNSPAN_NO_FEEDBACK_ADDRESS', message, cause === undefined ? {} : { cause });
  }

  /** Reads one event. Concurrent calls share the same read. */
  #readOne(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #read(): Promise<void> {
    try {
      const step = await this.#events.next();
      if (step.done === true) this.#finish({});
      else if (this.#end === undefined) this.#add(step.value);
    } catch (thrown) {
      this.#finish({ error: thrown });
    }
  }

  #add(sent: SentEvent<Values>): void {
    if (sent.event.event === 'feedback') this.#urls = sent.event.data;
    if (this.#waiting === undefined) return;
    this.#waiting.push(sent);
    this.#waitingCharacters += sent.characters;
  }

  #finish(end: StreamEnd): void {
    this.#end ??= end;
    this.#hasRoom?.();
  }
}

interface StreamEnd {
  readonly error?: unknown;
  /** Whether the application closed the stream. */
  readonly isLeft?: boolean;
}

/** Opens a run stream. Resolves when the response headers arrive. */
export async function openRunStream<Values>(
  service: AgentService,
  endpoint: Endpoint,
  args: Arguments,
): Promise<RunStream<Values>> {
  const call = preparedCall(endpoint, args);
  const { lastEventId, idleTimeoutMs = service.idleTimeoutMs } = call.own as StreamOptions;
  const open = async (headers: Record<string, string>, trace?: StreamTrace): Promise<RunStream<Values>> => {
    const options = { lastEventId, idleTimeoutMs, trace };
    return new RunStream<Values>(await EventSource.open(service.api, { ...call, headers }, options));
  };
  if (!endpoint.makesRun) return open({});
  const inputs = recordedInputs(call.ids, call.body);
  return tracedStream(call.name, inputs, (trace) => open(service.traceHeaders(), trace));
}

function readError(message: string): RunspanError {
  return new RunspanError('RUNSPAN_INVALID_REQUEST', message);
}
