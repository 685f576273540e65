import { guard } from '../../base/guard.ts';
import type { ChunkList } from '../../payload/serialize.ts';
import { types } from '../../platform/node.ts';
import { applyIn } from '../../run/context/current.ts';
import type { Run } from '../../run/run.ts';
import { type ChunkOptions, userValue } from '../plan.ts';
import { ChunkValues } from './chunk-values.ts';
import { abandonment, type Method, type StreamObserver, type Watched } from './observer.ts';
import { isAwaited } from './stream.ts';

/** Combines the chunks of one streamed result. */
export interface Collector {
  /**
   * Adds a chunk. Returns false if the chunk has no content. The first chunk with content is recorded as the event
   * `new_token`.
   */
  push(chunk: unknown): boolean;
  /** Whether the last chunk completed the result. If true, the run ends even if the stream has not ended. */
  readonly isComplete?: boolean;
  /** Records the chunks in the run, which must be open. Returns the error in the chunks, if any. */
  record(): unknown;
}

/** Records a result's chunks in a run, and ends the run when the result ends. */
export abstract class StreamRecorder implements StreamObserver, Watched {
  isStepping = false;
  readonly run: Run;
  #collector: Collector | undefined;
  #hasToken = false;
  #isDetached = false;
  #isPending = false;
  #wasUsed = true;

  constructor(run: Run) {
    this.run = run;
  }

  /** Creates the collector for the first chunk, or when a stream ends without chunks. */
  protected abstract collect(): Collector;

  /** Whether the consumer is waiting for the next chunk. */
  protected get isPending(): boolean {
    return this.#isPending;
  }

  wasUsed(result: object | undefined): boolean {
    const wasUsed = this.#wasUsed || this.#isPending || isAwaited(result, this.#collector !== undefined) === true;
    this.#wasUsed = false;
    return wasUsed;
  }

  step(method: Method, self: unknown, args: unknown[]): unknown {
    this.#wasUsed = true;
    this.isStepping = true;
    try {
      const result = applyIn(this.run.context, method, self, args);
      this.#isPending = types.isPromise(result);
      return result;
    } finally {
      this.isStepping = false;
    }
  }

  chunk(value: unknown): void {
    this.#isPending = false;
    if (!this.run.isOpen) return;
    this.#wasUsed = true;
    this.#collector ??= this.collect();
    const isToken = this.#collector.push(value);
    if (isToken && !this.#hasToken) {
      this.#hasToken = true;
      this.run.event('new_token');
    }
    if (this.#collector.isComplete === true) this.end();
  }

  end(): void {
    if (!this.#isDetached && this.run.isOpen) this.#collector ??= this.collect();
    this.#endWith(() => this.run.end());
  }

  fail(error: unknown): void {
    this.#record();
    this.run.fail(error);
  }

  cancel(): void {
    this.#endWith(() => this.run.cancel());
  }

  abandon(reason: string | undefined): void {
    if (reason === undefined) this.cancel();
    else this.#endWith(() => this.run.interrupt(reason));
  }

  watch(object: object): void {
    if (this.run.isOpen) abandonment.watch(object, this);
  }

  detach(): void {
    this.#isDetached = true;
    abandonment.unwatch(this);
  }

  /** Fails the run if the chunks contain an error. Otherwise, calls `end`. */
  #endWith(end: () => void): void {
    const error = this.#record();
    if (error === undefined) end();
    else this.run.fail(error);
  }

  #record(): unknown {
    abandonment.unwatch(this);
    const collector = this.#collector;
    // Frees the chunks, because the application may keep a reference to the result.
    this.#collector = undefined;
    return collector && this.run.isOpen ? guard('traceable', () => collector.record()) : undefined;
  }
}

/** Maximum number of recorded chunks per result. Further chunks are only counted. */
const CHUNKS_MAX = 10_000;

/**
 * The chunks of one result. Each chunk is encoded when the consumer reads it. With `aggregate` or `outputs`, the
 * original chunks are kept instead. No more chunks are kept after their total size has reached the maximum payload
 * size.
 */
export class Chunks implements Collector {
  readonly #options: ChunkOptions;
  readonly #run: Run;
  /** The chunks to pass to `aggregate` or `outputs`, or undefined if neither option is set. */
  #values: ChunkValues | undefined;
  /** The encoded chunks, or undefined if `#values` is set or outputs are not recorded. */
  #list: ChunkList | undefined;
  #charactersLeft: number;
  #kept = 0;
  #dropped = 0;

  constructor(options: ChunkOptions, run: Run) {
    this.#options = options;
    this.#run = run;
    if (options.aggregate === undefined && options.outputs === undefined) this.#list = run.chunkList();
    else this.#values = new ChunkValues();
    this.#charactersLeft = run.capture.payload.bytes;
  }

  /** The original chunks, followed by a text if some are missing. */
  get all(): readonly unknown[] {
    const { all = [] } = this.#values ?? {};
    return this.#dropped === 0 ? all : [...all, `[Truncated: ${this.#dropped} more items]`];
  }

  push(chunk: unknown): true {
    if (this.#kept >= CHUNKS_MAX || this.#charactersLeft <= 0) {
      this.#dropped++;
      return true;
    }
    this.#kept++;
    this.#charactersLeft -= (this.#values ?? this.#list)?.add(chunk) ?? 0;
    return true;
  }

  record(): void {
    if (this.#dropped > 0) this.#run.set({ metadata: { dropped_chunks: this.#dropped } });
    if (this.#values === undefined) {
      const json = this.#list && `{"outputs":${this.#list.json()}}`;
      this.#run.keepPayload('outputs', json === undefined ? undefined : { json, attachments: undefined });
      return;
    }
    const { name, aggregate, outputs } = this.#options;
    const { all } = this.#values;
    const value = aggregate === undefined ? all : userValue('aggregate', name, aggregate, all);
    this.#run.keepResult(outputs === undefined ? value : userValue('outputs', name, outputs, value));
  }

  release(): void {
    this.#values = undefined;
    this.#list = undefined;
  }
}
