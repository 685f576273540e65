import { types } from 'node:util';
import { guard } from '../base/guard.ts';
import type { Run } from '../run/run.ts';
import { Abandonment } from './abandonment.ts';
import { type AnswerReader, type Ending, endWithAnswer, type Fold, markEnding, recordAnswer } from './answer.ts';

type Step = (...args: unknown[]) => unknown;
type StepName = 'next' | 'return' | 'throw';

/**
 * The stream of the SDKs that Stainless generates: iteration, `tee` and `toReadableStream` all take what `iterator` gives.
 * Its controller aborts the request, and is aborted by leaving the iteration early.
 */
interface ModelStream {
  iterator: (...args: unknown[]) => object;
  readonly controller: AbortController;
}

/**
 * Follows such a stream without reading it: the same object, its `iterator` replaced on the instance. The run ends when
 * the iteration does; left early or aborted it is marked `cancelled`, never finished and collected `interrupted`. What
 * came until then is recorded in each case. False when it is no such stream.
 */
export function followModelStream(stream: unknown, run: Run, reader: AnswerReader): boolean {
  const { fold } = reader;
  if (fold === undefined) return false;
  return guard('following a stream', () => isModelStream(stream) && follow(stream, run, fold())) ?? false;
}

function isModelStream(value: unknown): value is ModelStream {
  if (typeof value !== 'object' || value === null) return false;
  const { iterator, controller } = value as Partial<ModelStream>;
  return typeof iterator === 'function' && typeof controller?.signal?.addEventListener === 'function';
}

function follow(stream: ModelStream, run: Run, fold: Fold): boolean {
  const { iterator, controller } = stream;
  const followed = new FollowedStream(run, fold, controller.signal);
  const open = function (this: unknown, ...args: unknown[]): object {
    const opened = Reflect.apply(iterator, this, args);
    guard('following a stream', () => followed.follow(opened));
    return opened;
  };
  if (!Reflect.set(stream, 'iterator', open)) return false;
  followed.begin(stream);
  return true;
}

class FollowedStream {
  readonly #run: Run;
  readonly #fold: Fold;
  readonly #signal: AbortSignal;
  readonly #abandonment = new Abandonment();
  readonly #abandoned = (): void => this.#end('interrupted');
  readonly #charactersMax: number;
  readonly #aborted = (): void => {
    // A step that is under way tells how it came to this: by leaving the iteration, or by an error.
    if (this.#stepsUnderWay === 0) this.#end('cancelled');
  };
  #isTaken = false;
  #stepsUnderWay = 0;
  #dropped = 0;

  constructor(run: Run, fold: Fold, signal: AbortSignal) {
    this.#run = run;
    this.#fold = fold;
    this.#signal = signal;
    this.#charactersMax = run.sink?.capture.payload.bytes ?? 0;
  }

  begin(stream: object): void {
    this.#signal.addEventListener('abort', this.#aborted, { once: true });
    this.#abandonment.watch(stream, this.#abandoned);
  }

  /**
   * The iteration that takes the first step reads the stream; the SDK refuses any other, which is nothing to the run.
   * Nothing here may hold the iterator: it is collected when it is left.
   */
  follow(iterator: object): void {
    if (this.#isTaken) return;
    this.#abandonment.watch(iterator, this.#abandoned);
    const followed = this;
    let isOurs = false;
    for (const name of ['next', 'return', 'throw'] as const) {
      const step: unknown = (iterator as Record<StepName, unknown>)[name];
      if (typeof step !== 'function') continue;
      const value = function (this: unknown, ...args: unknown[]): unknown {
        if (name === 'next' && !followed.#isTaken) {
          isOurs = followed.#isTaken = true;
          followed.#abandonment.watch(iterator, followed.#abandoned);
        }
        return isOurs ? followed.#step(name, step as Step, this, args) : Reflect.apply(step, this, args);
      };
      Reflect.defineProperty(iterator, name, { configurable: true, writable: true, value });
    }
  }

  #step(name: StepName, step: Step, iterator: unknown, args: unknown[]): unknown {
    this.#stepsUnderWay++;
    let result: unknown;
    try {
      result = Reflect.apply(step, iterator, args);
    } catch (thrown) {
      this.#failed(thrown);
      throw thrown;
    }
    if (!types.isPromise(result)) {
      this.#took(name, result);
      return result;
    }
    return result.then(
      (settled) => {
        this.#took(name, settled);
        return settled;
      },
      (error) => {
        this.#failed(error);
        throw error;
      },
    );
  }

  #took(name: StepName, result: unknown): void {
    this.#stepsUnderWay--;
    guard('following a stream', () => {
      const { done, value } = result as IteratorResult<unknown>;
      if (done !== true) this.#push(value);
      else this.#end(name === 'return' || this.#signal.aborted ? 'cancelled' : undefined);
    });
  }

  #push(chunk: unknown): void {
    if (!this.#run.isOpen) return;
    if (this.#fold.characters >= this.#charactersMax) {
      this.#dropped++;
      return;
    }
    const isFirst = this.#fold.characters === 0;
    this.#fold.add(chunk);
    if (isFirst && this.#fold.characters > 0) this.#run.event('new_token');
  }

  #end(ending: Ending | undefined): void {
    this.#settle();
    if (ending !== undefined) markEnding(this.#run, ending);
    endWithAnswer(this.#run, () => this.#fold.answer());
  }

  #failed(thrown: unknown): void {
    this.#stepsUnderWay--;
    this.#settle();
    recordAnswer(this.#run, () => this.#fold.answer());
    this.#run.fail(thrown);
  }

  #settle(): void {
    this.#abandonment.stop();
    this.#signal.removeEventListener('abort', this.#aborted);
    if (this.#dropped > 0) this.#run.set({ metadata: { dropped_chunks: this.#dropped } });
  }
}
