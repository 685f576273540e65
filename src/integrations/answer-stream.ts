import { guard } from '../base/guard.ts';
import { followAsyncIterable } from '../instrument/iterator.ts';
import { isFollowed } from '../instrument/observer.ts';
import { type Collector, StreamRecorder } from '../instrument/stream-recorder.ts';
import type { Run } from '../run/run.ts';
import type { Answer, AnswerReader, Fold } from './call-reader.ts';

const UNREADABLE: Answer = { outputs: { error: 'the answer could not be read' } };

/** Records an answer and ends the run. */
export function endWithAnswer(run: Run, read: () => Answer): void {
  const error = recordAnswer(run, read);
  if (error === undefined) run.end();
  else run.fail(error);
}

/** Records an answer without ending the run. Returns the error that the answer contains. */
function recordAnswer(run: Run, read: () => Answer): unknown {
  if (!run.isOpen) return undefined;
  const { outputs, usage, model, error } = guard('reading the answer of a model', read) ?? UNREADABLE;
  run.set({ metadata: { response_model: model, usage_metadata: usage } });
  run.keepResult(usage === undefined ? outputs : { ...outputs, usage_metadata: usage });
  return error;
}

/**
 * Follows a streamed answer in place, so that the application keeps the same object. Supports the stream class of SDKs
 * that Stainless generates, whose `iterator` method also serves `tee` and `toReadableStream`, and any async iterable.
 * The signal aborts the request of the stream. Returns false if `stream` is not a stream or cannot be changed.
 */
export function followStream(stream: unknown, run: Run, reader: AnswerReader, signal?: AbortSignal): boolean {
  const isDone = guard('following a stream', () => {
    if (reader.fold === undefined || typeof stream !== 'object' || stream === null) return false;
    const { iterator, controller, then, [Symbol.asyncIterator]: iterate } = stream as Record<PropertyKey, unknown>;
    const own = (controller as Partial<AbortController> | undefined)?.signal;
    const isOfSdk = typeof iterator === 'function' && typeof own?.addEventListener === 'function';
    if (!isOfSdk && (typeof then === 'function' || typeof iterate !== 'function')) return false;
    const observer = new AnswerStream(run, reader, isOfSdk ? own : signal);
    const key = isOfSdk ? 'iterator' : Symbol.asyncIterator;
    if (!isFollowed(stream, () => followAsyncIterable(stream, observer, key))) return false;
    observer.watch(stream);
    return true;
  });
  return isDone ?? false;
}

/**
 * Records a streamed answer. If the application aborts the request, the run ends as cancelled. The observer has no
 * reference to the signal, because a listener of the signal may reference the stream, which could then not be collected.
 */
export class AnswerStream extends StreamRecorder {
  readonly #reader: AnswerReader;
  #isAborted = false;

  constructor(run: Run, reader: AnswerReader, signal?: AbortSignal) {
    super(run);
    this.#reader = reader;
    const onAbort = (): void => {
      this.#isAborted = true;
      // A pending step reports the end itself. The SDK also aborts the request if the step fails.
      if (!this.isPending) this.cancel();
    };
    signal?.addEventListener('abort', onAbort, { once: true });
  }

  override end(): void {
    if (this.#isAborted) this.cancel();
    else super.end();
  }

  protected override collect(): Collector {
    return new AnswerCollector(this.run, this.#reader);
  }
}

/** Combines the chunks of an answer. Keeps at most one payload of text. */
class AnswerCollector implements Collector {
  readonly #run: Run;
  readonly #reader: AnswerReader;
  readonly #fold: Fold | undefined;
  #charactersLeft: number;
  #dropped = 0;

  constructor(run: Run, reader: AnswerReader) {
    this.#run = run;
    this.#reader = reader;
    this.#fold = reader.fold?.();
    this.#charactersLeft = run.capture.payload.bytes;
  }

  push(chunk: unknown): boolean {
    const isFull = this.#charactersLeft <= 0;
    const characters = guard('following a stream', () => this.#fold?.add(chunk, isFull)) ?? 0;
    if (characters > 0 && isFull) this.#dropped++;
    this.#charactersLeft -= characters;
    return characters > 0;
  }

  record(): unknown {
    if (this.#dropped > 0) this.#run.set({ metadata: { dropped_chunks: this.#dropped } });
    return recordAnswer(this.#run, () => {
      const answer = this.#reader.read(this.#fold?.result());
      const error = this.#fold?.error;
      return error === undefined ? answer : { ...answer, error };
    });
  }
}
