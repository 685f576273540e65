import { describe } from '../../payload/describe.ts';
import { fieldsOf, listOf } from '../../payload/fields.ts';
import { LateValue } from '../../run/late-content.ts';
import type { Run } from '../../run/run.ts';
import { adapterFor, followSteps } from './follow.ts';
import type { Method, Settlement, StreamObserver } from './observer.ts';
import { followThenable, isPlainPromise, thenOf, whenFulfilled } from './promise.ts';
import { Chunks } from './recorder.ts';

/** Returns the streams, iterators and promises among the arguments of a call, or among the properties of the only one. */
export function unreadIn(inputs: unknown): Map<unknown, UnreadInput> {
  const fields = fieldsOf(inputs);
  const unread = new Map<unknown, UnreadInput>();
  for (const value of [...Object.values(fields), ...listOf(fields.args)]) {
    if (typeof value !== 'object' || value === null) continue;
    if ((thenOf(value) ?? adapterFor(value)) !== undefined) unread.set(value, new UnreadInput(value));
  }
  return unread;
}

/**
 * Observes what the application reads of the inputs until the run ends. Then calls `shown` with what was read of each
 * input, and records the result.
 */
export function followInputs(
  run: Run,
  inputs: ReadonlyMap<unknown, UnreadInput>,
  shown: (read: Map<unknown, unknown>) => unknown,
): void {
  if (!run.isOpen || run.capture.hideInputs) return;
  for (const [value, input] of inputs) input.follow(value as object, run);
  // The hook does not reference the streams. It would keep a stream in memory that is also the result of the call.
  const unread = [...inputs.values()];
  const read = (): unknown => shown(new Map(unread.map((input) => [input, input.take()])));
  const onEnd = (): void => {
    const settling = unread.flatMap((input) => input.settle() ?? []);
    const late = async (): Promise<unknown> => {
      await Promise.all(settling);
      const value = read();
      return LateValue.is(value) ? value.promise : value;
    };
    run.keepInputs(settling.length === 0 ? read() : new LateValue('processInputs', late()));
  };
  run.addHooks({ onEnd }, true);
}

class UnreadInput implements StreamObserver, Settlement {
  readonly observesSource = true;
  isStepping = false;
  /** What is recorded if nothing was read. */
  #value: unknown;
  #run: Run | undefined;
  #chunks: Chunks | undefined;
  #promise: Promise<unknown> | undefined;
  #isDetached = false;

  constructor(value: object) {
    this.#value = describe(value, 0) ?? value;
  }

  follow(value: object, run: Run): void {
    this.#run = run;
    const then = thenOf(value);
    if (then === undefined) followSteps(value, this);
    else if (isPlainPromise(value)) this.#promise = value;
    else followThenable(value, then, this);
  }

  settle(): Promise<unknown> | undefined {
    return this.#promise && whenFulfilled(this.#promise, (value) => this.fulfilled(value));
  }

  /** Returns what was read, and frees the chunks, because the application may keep the stream. */
  take(): unknown {
    const chunks = this.#chunks;
    this.#chunks = undefined;
    return chunks?.all ?? this.#value;
  }

  step(method: Method, self: unknown, args: unknown[]): unknown {
    this.isStepping = true;
    try {
      return Reflect.apply(method, self, args);
    } finally {
      this.isStepping = false;
    }
  }

  chunk(...read: unknown[]): void {
    if (this.#run?.isOpen !== true) return;
    this.#chunks ??= new Chunks({ name: 'inputs', aggregate: (chunks) => chunks }, this.#run);
    for (const value of read) this.#chunks.push(value);
  }

  end(): void {
    // After `detach`, the chunks are unknown, so the list must not be empty.
    if (!this.#isDetached) this.chunk();
  }

  fulfilled(value: unknown): void {
    this.#value = value;
  }

  fail(): void {}
  cancel(): void {}
  watch(): void {}

  detach(): void {
    this.#isDetached = true;
  }
}
