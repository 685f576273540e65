import { types } from 'node:util';
import { guard } from '../base/guard.ts';
import type { Run } from '../run/run.ts';
import { type Abandonable, whenAbandoned } from './abandonment.ts';
import { fieldsOf } from './fields.ts';

/** Makes one answer of the events of a stream, as they come: they are the application's, and it may change them. */
export interface StreamFold {
  /** True when the event brought a part of the answer itself. The first that did is the run's `new_token` event. */
  push(event: unknown): boolean;
  /** Tells the run what has come so far. */
  record(run: Run): void;
}

type Method = (...args: unknown[]) => unknown;

/** Of the class of streams of the generated clients of OpenAI and Anthropic. */
interface ModelStream {
  iterator: () => AsyncIterator<unknown>;
  readonly controller: { readonly signal: { readonly aborted: boolean } };
}

const PLACE = 'following a stream';

/**
 * Ends the run when the stream of a model has been read to its end, left, or has failed, with what had come by then; as
 * interrupted when it is dropped. The stream stays the same object, and nothing is read of it that the application does
 * not read: `iterator`, on which iteration, `tee()` and `toReadableStream()` all rest, is replaced on it. False when it
 * is no such stream.
 */
export function followModelStream(stream: unknown, run: Run, fold: StreamFold): boolean {
  if (!isModelStream(stream)) return false;
  const { iterator, controller } = stream;
  const read = new Reading(run, fold, controller.signal).watch(stream);
  stream.iterator = function (this: unknown) {
    const source = Reflect.apply(iterator, this, []);
    read(source);
    return source;
  };
  return true;
}

/** Ends a run that has not come to its end. */
export function endEarly(run: Run, reason: 'cancelled' | 'interrupted'): void {
  run.set({ metadata: { end_reason: reason } });
  run.end();
}

function isModelStream(stream: unknown): stream is ModelStream {
  const { iterator, controller } = fieldsOf(stream);
  return typeof iterator === 'function' && typeof fieldsOf(fieldsOf(controller).signal).aborted === 'boolean';
}

/** The one reading of a stream, from which its run learns what came. */
export class Reading implements Abandonable {
  readonly #run: Run;
  readonly #fold: StreamFold;
  readonly #signal: { readonly aborted: boolean } | undefined;
  #hasBegun = false;

  constructor(run: Run, fold: StreamFold, signal?: { readonly aborted: boolean }) {
    this.#run = run;
    this.#fold = fold;
    this.#signal = signal;
  }

  /** Waits for the stream to be read: the answer takes its iterator, and follows the first. */
  watch(stream: object): (source: object) => void {
    const keep = whenAbandoned(stream, this);
    let isRead = false;
    return (source) => {
      // Who asks again gets the error that a stream is read once.
      if (isRead) return;
      isRead = true;
      // From here on the stream may be dropped while its iterator is in use.
      keep();
      guard(PLACE, () => this.#follow(source));
    };
  }

  abandoned(): void {
    this.#leave('interrupted');
  }

  /** Replaces the methods of the iterator on itself. */
  #follow(source: object): void {
    whenAbandoned(source, this);
    replace(source, 'next', (step) => this.#followStep(step()));
    replace(source, 'throw', (step) => this.#followStep(step()));
    replace(source, 'return', (step) => {
      this.#leave('cancelled');
      return step();
    });
  }

  #followStep(result: unknown): unknown {
    if (!types.isPromise(result)) return result;
    return result.then(
      (step) => {
        guard(PLACE, () => this.#took(step as IteratorResult<unknown>));
        return step;
      },
      (error) => {
        this.#failed(error);
        throw error;
      },
    );
  }

  #took({ done, value }: IteratorResult<unknown>): void {
    if (!this.#run.isOpen) return;
    if (done !== true) {
      if (!this.#fold.push(value) || this.#hasBegun) return;
      this.#hasBegun = true;
      this.#run.event('new_token');
    } else if (this.#signal?.aborted === true) {
      // An aborted request ends its stream without an error.
      this.#leave('cancelled');
    } else {
      this.#record();
      this.#run.end();
    }
  }

  #failed(error: unknown): void {
    this.#record();
    if (guard(PLACE, () => fieldsOf(error).name) === 'AbortError') endEarly(this.#run, 'cancelled');
    else this.#run.fail(error);
  }

  #leave(reason: 'cancelled' | 'interrupted'): void {
    this.#record();
    endEarly(this.#run, reason);
  }

  #record(): void {
    if (this.#run.isOpen) guard(PLACE, () => this.#fold.record(this.#run));
  }
}

/** Puts a method on the iterator itself that does `follow` with a step of the one it had. */
function replace(source: object, name: string, follow: (step: () => unknown) => unknown): void {
  const method = (source as Record<string, unknown>)[name];
  if (typeof method !== 'function') return;
  Reflect.defineProperty(source, name, {
    configurable: true,
    writable: true,
    value: function (this: unknown, ...args: unknown[]): unknown {
      return follow(() => Reflect.apply(method as Method, this, args));
    },
  });
}
