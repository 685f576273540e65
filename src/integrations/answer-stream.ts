import { guard } from '../base/guard.ts';
import { defaultLimits } from '../base/limits.ts';
import { followLazyGenerator } from '../instrument/iterator.ts';
import { abandonment, type Method, replaceOwn, type StreamObserver, type Watched } from '../instrument/observer.ts';
import type { Run } from '../run/run.ts';
import type { Answer, AnswerReader, Fold } from './call-reader.ts';

const PLACE = 'following a stream';

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
  const isFollowed = guard(PLACE, () => {
    if (reader.fold === undefined || typeof stream !== 'object' || stream === null) return false;
    if (!Object.isExtensible(stream)) return false;
    const { iterator, controller, then, [Symbol.asyncIterator]: iterate } = stream as Record<PropertyKey, unknown>;
    const own = (controller as Partial<AbortController> | undefined)?.signal;
    if (typeof iterator === 'function' && typeof own?.addEventListener === 'function') {
      return new AnswerStream(run, reader, own).follow(stream, 'iterator');
    }
    if (typeof then === 'function' || typeof iterate !== 'function') return false;
    return new AnswerStream(run, reader, signal).follow(stream, Symbol.asyncIterator);
  });
  return isFollowed ?? false;
}

/**
 * Observes a streamed answer and ends its run: normally at the end of the stream, as cancelled if the consumer leaves
 * the stream or aborts the request, and as interrupted if the stream is abandoned. In each case, the chunks that the
 * consumer has received are recorded.
 */
export class AnswerStream implements StreamObserver, Watched {
  readonly isStepping = false;
  readonly #run: Run;
  readonly #reader: AnswerReader;
  readonly #fold: Fold | undefined;
  /** A listener of the application may reference the watched stream, so the signal is not referenced from here. */
  readonly #signal: WeakRef<AbortSignal> | undefined;
  readonly #charactersMax: number;
  readonly #onAbort = (): void => {
    // A pending step reports the end itself.
    if (this.#pendingSteps === 0) this.cancel();
  };
  #hasReader = false;
  #wasTouched = true;
  #pendingSteps = 0;
  #characters = 0;
  #droppedChunks = 0;

  constructor(run: Run, reader: AnswerReader, signal?: AbortSignal) {
    this.#run = run;
    this.#reader = reader;
    this.#fold = reader.fold?.();
    this.#signal = signal && new WeakRef(signal);
    this.#charactersMax = run.sink?.capture.payload.bytes ?? 0;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** A stream is in use while a step is pending. */
  get wasTouched(): boolean {
    return this.#wasTouched || this.#pendingSteps > 0;
  }

  set wasTouched(was: boolean) {
    this.#wasTouched = was;
  }

  get idleMaxMs(): number {
    return this.#run.sink?.capture.streamIdleMs ?? defaultLimits.streamIdleMs;
  }

  /**
   * Follows the iterators that the method `key` returns. Only the first iterator that is read is recorded, because the
   * SDK refuses to read a stream twice. Returns false if the method cannot be replaced.
   */
  follow(stream: object, key: PropertyKey): boolean {
    const isFollowed = replaceOwn(stream, key, (open) => {
      const observe = (iterator: unknown): void => void guard(PLACE, () => this.#followIterator(iterator));
      return function (this: unknown, ...args: unknown[]): unknown {
        const iterator = Reflect.apply(open, this, args);
        observe(iterator);
        return iterator;
      };
    });
    if (isFollowed) this.watch(stream);
    return isFollowed;
  }

  #followIterator(iterator: unknown): void {
    if (this.#hasReader || typeof iterator !== 'object' || iterator === null) return;
    // The consumer may hold only the iterator, so the stream is no longer watched.
    this.watch(iterator);
    followLazyGenerator(iterator, () => {
      if (this.#hasReader) return undefined;
      this.#hasReader = true;
      return this;
    });
  }

  step(method: Method, self: unknown, args: unknown[]): unknown {
    this.#wasTouched = true;
    this.#pendingSteps++;
    return Reflect.apply(method, self, args);
  }

  chunk(chunk: unknown): void {
    this.#pendingSteps--;
    guard(PLACE, () => this.#add(chunk));
  }

  end(): void {
    this.#pendingSteps--;
    if (this.#signal?.deref()?.aborted === true) this.#endWith(() => this.#run.cancel());
    else this.#endWith(() => this.#run.end());
  }

  fail(thrown: unknown): void {
    this.#record();
    this.#run.fail(thrown);
  }

  cancel(): void {
    this.#endWith(() => this.#run.cancel());
  }

  abandon(reason: string): void {
    this.#endWith(() => this.#run.interrupt(reason));
  }

  watch(object: object): void {
    if (this.#run.isOpen) abandonment.watch(object, this);
  }

  detach(): void {
    abandonment.unwatch(this);
  }

  #add(chunk: unknown): void {
    if (!this.#run.isOpen) return;
    const isFull = this.#characters >= this.#charactersMax;
    const characters = this.#fold?.add(chunk, isFull) ?? 0;
    if (characters === 0) return;
    if (this.#characters === 0) this.#run.event('new_token');
    if (isFull) this.#droppedChunks++;
    this.#characters += characters;
  }

  /** An error that the answer contains takes precedence over any other end. */
  #endWith(end: () => void): void {
    const error = this.#record();
    if (error === undefined) end();
    else this.#run.fail(error);
  }

  #record(): unknown {
    abandonment.unwatch(this);
    this.#signal?.deref()?.removeEventListener('abort', this.#onAbort);
    if (this.#droppedChunks > 0) this.#run.set({ metadata: { dropped_chunks: this.#droppedChunks } });
    return recordAnswer(this.#run, () => {
      const answer = this.#reader.read(this.#fold?.result());
      const error = this.#fold?.error;
      return error === undefined ? answer : { ...answer, error };
    });
  }
}
