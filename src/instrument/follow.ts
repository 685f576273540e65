import { guard } from '../base/guard.ts';
import { defaultLimits } from '../base/limits.ts';
import { types } from '../base/node.ts';
import type { ChunkList } from '../payload/serialize.ts';
import { applyIn } from '../run/context.ts';
import type { Run } from '../run/run.ts';
import { followAsyncIterable, followIterator } from './iterator.ts';
import {
  abandonment,
  isFollowed,
  isObjectOrFunction,
  type Method,
  type Settlement,
  type StreamObserver,
  type Watched,
} from './observer.ts';
import { type ChunkOptions, endWith, type Plan, userValue } from './plan.ts';
import { deriveOne, followThenable, thenOf } from './promise.ts';
import {
  followHelperStream,
  followNodeReadable,
  followReadableStream,
  isHelperStream,
  isNodeReadable,
  isReadableStream,
} from './stream.ts';

/** Ends the run when the result is complete. Returns the value that the caller receives instead of the result. */
export function followResult(result: unknown, run: Run, plan: Plan): unknown {
  if (!isObjectOrFunction(result)) {
    endWith(run, plan, result);
    return result;
  }
  if (plan.follow?.(result, run, plan) === true) return result;
  const then = thenOf(result);
  if (then === undefined && adapterFor(result) === undefined) {
    endWith(run, plan, result);
    return result;
  }
  const observer = new RunObserver(run, plan);
  const followed = then && followThenable(result, then, observer, true);
  if (followed === undefined) observer.fulfilled(result);
  else if (followed === result) observer.watch(result);
  return followed ?? result;
}

/** Like `followResult`, but for the promise of an `async` function. No code has cached or changed such a promise. */
export function followPromise(promise: Promise<unknown>, run: Run, plan: Plan): unknown {
  if (plan.follow?.(promise, run, plan) === true) return promise;
  return deriveOne(promise, new RunObserver(run, plan));
}

/** Ends a run when the promise, iterator or stream that the function returned is complete. */
export class RunObserver implements StreamObserver, Settlement, Watched {
  wasTouched = true;
  isStepping = false;
  readonly #run: Run;
  readonly #plan: Plan;
  #chunks: Chunks | undefined;
  #isDetached = false;

  constructor(run: Run, plan: Plan) {
    this.#run = run;
    this.#plan = plan;
  }

  get idleMaxMs(): number {
    return this.#run.sink?.capture.streamIdleMs ?? defaultLimits.streamIdleMs;
  }

  asked(): void {
    abandonment.unwatch(this);
  }

  fulfilled(value: unknown): void {
    const follow = isObjectOrFunction(value) ? adapterFor(value) : undefined;
    if (follow === undefined) endWith(this.#run, this.#plan, value);
    else if (isFollowed(value as object, () => follow(value as object, this))) this.watch(value as object);
    else this.#run.end();
  }

  step(method: Method, self: unknown, args: unknown[]): unknown {
    this.wasTouched = true;
    this.isStepping = true;
    try {
      return applyIn(this.#run.context, method, self, args);
    } finally {
      this.isStepping = false;
    }
  }

  chunk(value: unknown): void {
    if (!this.#run.isOpen) return;
    this.wasTouched = true;
    if (this.#chunks === undefined) {
      this.#chunks = new Chunks(this.#plan, this.#run);
      this.#run.event('new_token');
    }
    this.#chunks.push(value);
  }

  end(): void {
    if (!this.#isDetached) this.#chunks ??= new Chunks(this.#plan, this.#run);
    this.#recordChunks();
    this.#run.end();
  }

  fail(error: unknown): void {
    this.#recordChunks();
    this.#run.fail(error);
  }

  cancel(): void {
    this.#recordChunks();
    this.#run.cancel();
  }

  abandon(reason: string): void {
    this.#recordChunks();
    this.#run.interrupt(reason);
  }

  watch(object: object): void {
    if (this.#run.isOpen) abandonment.watch(object, this);
  }

  detach(): void {
    this.#isDetached = true;
    abandonment.unwatch(this);
  }

  #recordChunks(): void {
    abandonment.unwatch(this);
    const chunks = this.#chunks;
    if (chunks === undefined) return;
    if (this.#run.isOpen) guard('traceable', () => chunks.record());
    chunks.release();
  }
}

type Follow = (value: object, observer: StreamObserver) => boolean;

function adapterFor(value: object): Follow | undefined {
  try {
    // Arrays are recorded as values, although an array is iterable. Most results are arrays or plain objects.
    if (Array.isArray(value)) return undefined;
    const { next, [Symbol.asyncIterator]: iterate } = value as Partial<AsyncIterableIterator<unknown>>;
    if (typeof iterate === 'function') {
      if (types.isGeneratorObject(value)) return followIterator;
      if (isReadableStream(value)) return followReadableStream;
      if (isNodeReadable(value)) return followNodeReadable;
      return isHelperStream(value) ? followHelperStream : followAsyncIterable;
    }
    if (typeof next !== 'function') return undefined;
    return typeof (value as Partial<Iterable<unknown>>)[Symbol.iterator] === 'function' ? followIterator : undefined;
  } catch {
    return undefined;
  }
}

/** Maximum number of recorded chunks per result. Further chunks are counted. */
const CHUNKS_MAX = 10_000;

/** Maximum number of bytes of one binary chunk that `aggregate` and `outputs` receive. */
const BINARY_BYTES_MAX = 65_536;

/**
 * The chunks of one result. Each chunk is encoded when the consumer reads the chunk. If `aggregate` or `outputs` is
 * set, the chunk itself is kept instead. The total size of all chunks is limited to the maximum size of one payload.
 */
export class Chunks {
  readonly #options: ChunkOptions;
  readonly #run: Run;
  /** The chunks that `aggregate` or `outputs` receives. Undefined if neither option is set. */
  #values: unknown[] | undefined;
  /** The encoded chunks. Undefined if `#values` is set, or if outputs are not recorded. */
  #list: ChunkList | undefined;
  #charactersLeft: number;
  #kept = 0;
  #dropped = 0;

  constructor(options: ChunkOptions, run: Run) {
    this.#options = options;
    this.#run = run;
    if (options.aggregate === undefined && options.outputs === undefined) this.#list = run.chunkList();
    else this.#values = [];
    this.#charactersLeft = run.sink?.capture.payload.bytes ?? 0;
  }

  push(chunk: unknown): void {
    if (this.#kept >= CHUNKS_MAX || this.#charactersLeft <= 0) {
      this.#dropped++;
      return;
    }
    this.#kept++;
    if (this.#values !== undefined) this.#keepValue(this.#values, chunk);
    else if (this.#list !== undefined) this.#charactersLeft -= this.#list.add(chunk);
  }

  /** The run must be open. */
  record(): void {
    if (this.#dropped > 0) this.#run.set({ metadata: { dropped_chunks: this.#dropped } });
    if (this.#values === undefined) {
      if (this.#list !== undefined) this.#run.keepOutputs(`{"outputs":${this.#list.json()}}`);
      return;
    }
    const { name, aggregate, outputs } = this.#options;
    const value = aggregate === undefined ? this.#values : userValue('aggregate', name, aggregate, this.#values);
    this.#run.keepResult(outputs === undefined ? value : userValue('outputs', name, outputs, value));
  }

  /** Releases the memory of the chunks, because the application may keep the result for a long time. */
  release(): void {
    this.#values = undefined;
    this.#list = undefined;
  }

  #keepValue(values: unknown[], chunk: unknown): void {
    if (typeof chunk === 'string') this.#charactersLeft -= chunk.length;
    if (!ArrayBuffer.isView(chunk)) {
      values.push(chunk);
      return;
    }
    // The chunk is copied, because the application may reuse the buffer of a byte stream for the next chunk.
    const copy = new Uint8Array(chunk.buffer, chunk.byteOffset, Math.min(chunk.byteLength, BINARY_BYTES_MAX)).slice();
    values.push(copy);
    this.#charactersLeft -= copy.byteLength;
  }
}
