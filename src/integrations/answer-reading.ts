import { guard } from '../base/guard.ts';
import { defaultLimits } from '../base/limits.ts';
import { followLazyGenerator } from '../instrument/iterator.ts';
import { abandonment, type Method, replaceOwn, type StreamObserver, type Watched } from '../instrument/observer.ts';
import type { Run } from '../run/run.ts';
import { type Fold, recordAnswer } from './answer.ts';

const PLACE = 'following a stream';

/**
 * The reading of an answer that comes in chunks, which ends its run: to the end, left early or aborted as cancelled, or
 * interrupted when nobody can read any more. What came until then is recorded in each case.
 */
export class AnswerReading implements StreamObserver, Watched {
  readonly isStepping = false;
  readonly #run: Run;
  readonly #fold: Fold;
  /** Whoever is watched must not be held here, and listeners of the application may lead to it. */
  readonly #signal: WeakRef<AbortSignal> | undefined;
  readonly #charactersMax: number;
  readonly #aborted = (): void => {
    // A step that is under way tells how it came to this: by leaving the iteration, or by an error.
    if (this.#stepsUnderWay === 0) this.#cancel();
  };
  #isTaken = false;
  #wasTouched = true;
  #stepsUnderWay = 0;
  #dropped = 0;

  /** The signal, if there is one, aborts the request that the chunks come from. */
  constructor(run: Run, fold: Fold, signal?: AbortSignal) {
    this.#run = run;
    this.#fold = fold;
    this.#signal = signal && new WeakRef(signal);
    this.#charactersMax = run.sink?.capture.payload.bytes ?? 0;
    signal?.addEventListener('abort', this.#aborted, { once: true });
  }

  /** A step that takes long is waited for. */
  get wasTouched(): boolean {
    return this.#wasTouched || this.#stepsUnderWay > 0;
  }

  set wasTouched(was: boolean) {
    this.#wasTouched = was;
  }

  get idleMaxMs(): number {
    return this.#run.sink?.capture.streamIdleMs ?? defaultLimits.streamIdleMs;
  }

  /**
   * Reads along where the iterators that this method opens are stepped through. The one that takes the first step reads
   * the answer; any other is refused by its SDK, which is nothing to the run. False when the method cannot be replaced.
   */
  follow(object: object, key: PropertyKey): boolean {
    const opened = (iterator: unknown): void => void guard(PLACE, () => this.#opened(iterator));
    const isFollowed = replaceOwn(object, key, (open) => {
      return function (this: unknown, ...args: unknown[]): unknown {
        const iterator = Reflect.apply(open, this, args);
        opened(iterator);
        return iterator;
      };
    });
    if (isFollowed) this.watch(object);
    return isFollowed;
  }

  #opened(iterator: unknown): void {
    if (this.#isTaken || typeof iterator !== 'object' || iterator === null) return;
    // The object that it came from may be dropped while it is in use.
    this.watch(iterator);
    followLazyGenerator(iterator, () => {
      if (this.#isTaken) return undefined;
      this.#isTaken = true;
      return this;
    });
  }

  step(method: Method, self: unknown, args: unknown[]): unknown {
    this.wasTouched = true;
    this.#stepsUnderWay++;
    return Reflect.apply(method, self, args);
  }

  chunk(chunk: unknown): void {
    this.#stepsUnderWay--;
    guard(PLACE, () => this.#add(chunk));
  }

  end(): void {
    this.#stepsUnderWay--;
    if (this.#signal?.deref()?.aborted === true) this.#cancel();
    else this.#close(() => this.#run.end());
  }

  fail(thrown: unknown): void {
    this.#stepsUnderWay--;
    this.#record();
    this.#run.fail(thrown);
  }

  cancel(): void {
    this.#stepsUnderWay--;
    this.#cancel();
  }

  abandon(reason: string): void {
    this.#close(() => this.#run.interrupt(reason));
  }

  watch(object: object): void {
    if (this.#run.isOpen) abandonment.watch(object, this);
  }

  detach(): void {
    abandonment.unwatch(this);
  }

  #add(chunk: unknown): void {
    if (!this.#run.isOpen) return;
    const before = this.#fold.characters;
    const isFull = before >= this.#charactersMax;
    this.#fold.add(chunk, isFull);
    if (this.#fold.characters === before) return;
    if (before === 0) this.#run.event('new_token');
    if (isFull) this.#dropped++;
  }

  #cancel(): void {
    this.#close(() => this.#run.cancel());
  }

  #close(end: () => void): void {
    const error = this.#record();
    if (error === undefined) end();
    else this.#run.fail(error);
  }

  #record(): unknown {
    abandonment.unwatch(this);
    this.#signal?.deref()?.removeEventListener('abort', this.#aborted);
    if (this.#dropped > 0) this.#run.set({ metadata: { dropped_chunks: this.#dropped } });
    return recordAnswer(this.#run, () => this.#fold.answer());
  }
}
