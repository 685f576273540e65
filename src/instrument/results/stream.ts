import type { Readable } from 'node:stream';
import { guard } from '../../base/guard.ts';
import { nodeModule } from '../../platform/node.ts';
import { followIterator } from './iterator.ts';
import { observedStream } from './observed-stream.ts';
import {
  type Interceptor,
  interceptOwn,
  isObjectOrFunction,
  type Method,
  type Settlement,
  type StreamObserver,
} from './observer.ts';
import { followIfThenable } from './promise.ts';

/**
 * Whether a value is a web stream. Checks the value's methods instead of its class, because libraries may have their
 * own stream classes.
 */
export function isReadableStream(value: object): value is ReadableStream {
  const { getReader, tee, cancel } = value as Partial<ReadableStream>;
  return typeof getReader === 'function' && typeof tee === 'function' && typeof cancel === 'function';
}

export function isNodeReadable(value: object): boolean {
  const { emit, on, pipe, read } = value as Partial<Readable>;
  return [emit, on, pipe, read].every((method) => typeof method === 'function');
}

/**
 * Whether a value is a stream from an OpenAI or Anthropic SDK helper, for example `messages.stream`. An SDK helper
 * reads the response and emits its chunks as events.
 */
export function isHelperStream(value: object): boolean {
  const { _emit, done, ended } = value as Record<string, unknown>;
  return typeof _emit === 'function' && typeof done === 'function' && typeof ended === 'boolean';
}

/**
 * Observes a Node stream by replacing `emit`, which Node calls with `data` for each chunk. A `data` listener would make
 * the stream flow and change its listener count.
 */
export function followNodeReadable(stream: object, observer: StreamObserver): boolean {
  const { readableEnded, destroyed } = stream as Readable;
  if (readableEnded || destroyed) return false;
  return followEmit(stream, 'emit', (event, value) => {
    if (event === 'data') observer.chunk(value);
    else if (event === 'end') observer.end();
    else if (event === 'error' && !isEarlyExit(value)) observer.fail(value);
    else if (event === 'error' || event === 'close') observer.cancel();
  });
}

/**
 * Whether an error only means that the consumer left a `for await` loop early. Node then emits an `AbortError` without
 * a `cause`.
 */
function isEarlyExit(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return code === 'ABORT_ERR' && cause === undefined;
}

/** Names of the events that SDK helpers emit for response chunks. */
const HELPER_CHUNKS: readonly unknown[] = ['chunk', 'event', 'streamEvent'];

/**
 * Observes an SDK helper's stream by replacing `_emit`. An `error` listener would keep the SDK from reporting unhandled
 * errors.
 */
export function followHelperStream(stream: object, observer: StreamObserver): boolean {
  if ((stream as { ended: boolean }).ended) return false;
  return followEmit(stream, '_emit', (event, value) => {
    if (HELPER_CHUNKS.includes(event)) observer.chunk(value);
    else if (event === 'end') observer.end();
    else if (event === 'error') observer.fail(value);
    else if (event === 'abort') observer.cancel();
  });
}

function followEmit(stream: object, method: string, observe: (event: unknown, value: unknown) => void): boolean {
  return interceptOwn(stream, method, (emit, self, args) => {
    guard('traceable', () => observe(args[0], args[1]));
    return Reflect.apply(emit, self, args);
  });
}

/**
 * Observes a web stream by replacing the methods that read it. The observer never locks or reads the stream, so the
 * consumer controls back-pressure. Runtimes bypass the replaced methods in `pipeTo` and when a stream is transferred to
 * another thread. Node 26 also bypasses the methods in `Response.clone`, and Node 24.22.3 and 26 in
 * `Readable.fromWeb`. If the methods are bypassed, the observer receives only the stream's end, without chunks.
 */
export function followReadableStream(stream: object, observer: StreamObserver): boolean {
  let isHandedOn = false;
  const intercepting = (follow: Follow, handsOn = false): Interceptor => {
    return (method, self, args) => {
      // If one stream method calls another, the inner call must not be observed again.
      if (observer.isStepping) return Reflect.apply(method, self, args);
      isHandedOn ||= handsOn;
      return follow(method, self as ReadableStream, args, observer);
    };
  };
  if (!interceptOwn(stream, 'getReader', intercepting(followGetReader))) return false;
  interceptOwn(stream, 'tee', intercepting(followTee, true));
  interceptOwn(stream, 'pipeTo', intercepting(followPipeTo, true));
  interceptOwn(stream, 'pipeThrough', intercepting(followPipeThrough, true));
  interceptOwn(stream, 'cancel', intercepting(followCancel));
  interceptOwn(stream, 'values', intercepting(followValues));
  interceptOwn(stream, Symbol.asyncIterator, intercepting(followValues));
  // A LangChain stream is its own iterator.
  if (typeof (stream as { next?: unknown }).next === 'function') followIterator(stream, observer);
  followEnd(stream, observer, () => isHandedOn);
  return true;
}

/** Observes the end of a stream that Node reads internally, without calling the replaced methods. */
function followEnd(stream: object, observer: StreamObserver, isHandedOn: () => boolean): void {
  // If a library has its own stream class, the runtime calls the replaced methods.
  if (!(stream instanceof ReadableStream)) return;
  const readable = stream as unknown as NodeJS.ReadableStream;
  guard('traceable', () => {
    const { finished, Readable } = nodeModule('node:stream');
    finished(readable, (error) => {
      if (isHandedOn() || !Readable.isDisturbed(readable)) return;
      observer.detach();
      if (error) observer.fail(error);
      else observer.end();
    });
  });
}

type Follow = (method: Method, stream: ReadableStream, args: unknown[], observer: StreamObserver) => unknown;

function followGetReader(method: Method, stream: ReadableStream, args: unknown[], observer: StreamObserver): unknown {
  const reader = observer.step(method, stream, args);
  guard('traceable', () => followReader(reader as ReadableStreamDefaultReader, stream, observer));
  return reader;
}

function followReader(reader: ReadableStreamDefaultReader, stream: ReadableStream, observer: StreamObserver): void {
  let isReleased = false;
  const settlement: Settlement = {
    fulfilled: (result) => {
      guard('traceable', () => {
        const { done, value } = result as { done: boolean; value?: unknown };
        if (done) observer.end();
        else observer.chunk(value);
      });
    },
    // Ignores rejections of `read`, because `read` also rejects if its arguments are invalid. The `closed` promise
    // below reports stream failures.
    fail() {},
  };
  interceptOwn(reader, 'read', (read, self, args) => {
    if (observer.isStepping) return Reflect.apply(read, self, args);
    return followIfThenable(observer.step(read, self, args), settlement);
  });
  interceptOwn(reader, 'cancel', (cancel, self, args) => {
    const result = Reflect.apply(cancel, self, args);
    guard('traceable', () => {
      // `Readable.fromWeb` also cancels streams that have already failed. The `closed` promise reports the error of a
      // failed stream.
      const { isErrored } = nodeModule('node:stream');
      if (!isReleased && !isErrored(stream as unknown as NodeJS.ReadableStream)) observer.cancel();
    });
    return result;
  });
  interceptOwn(reader, 'releaseLock', (release, self, args) => {
    isReleased = true;
    return Reflect.apply(release, self, args);
  });
  // The runtime marks every rejection of `closed` as handled, so this handler hides no unhandled rejection
  // (https://streams.spec.whatwg.org/#readable-stream-reader-generic-initialize).
  void reader.closed?.then(undefined, (error) => {
    if (!isReleased) observer.fail(error);
  });
}

function followTee(method: Method, stream: ReadableStream, args: unknown[], observer: StreamObserver): unknown {
  const branches = Reflect.apply(method, stream, args) as ReadableStream[];
  guard('traceable', () => followBranches(branches, observer));
  return branches;
}

/** Observes a stream's branches as one result. The result ends when the first branch ends. */
export function followBranches(branches: readonly ReadableStream[], observer: StreamObserver): void {
  const progress = { chunks: 0, uncancelled: branches.length };
  for (const branch of branches) followReadableStream(branch, partialObserver(observer, progress));
}

function followPipeTo(method: Method, stream: ReadableStream, args: unknown[], observer: StreamObserver): unknown {
  const wasLocked = isLocked(stream);
  if (observer.observesSource && !wasLocked) return Reflect.apply(method, observedStream(stream, observer), args);
  const piped: unknown = Reflect.apply(method, stream, args);
  // If the arguments are invalid, `pipeTo` rejects without reading the stream.
  if (wasLocked || !isLocked(stream)) return piped;
  observer.detach();
  return followIfThenable(piped, { fulfilled: () => observer.end(), fail: (error) => observer.fail(error) });
}

/** Observes a transform stream's output instead of its input. The output also ends or fails when the input does. */
function followPipeThrough(method: Method, stream: ReadableStream, args: unknown[], observer: StreamObserver): unknown {
  if (observer.observesSource && !isLocked(stream)) {
    return Reflect.apply(method, observedStream(stream, observer), args);
  }
  const readable = Reflect.apply(method, stream, args) as object;
  guard('traceable', () => {
    if (readable === stream || !isReadableStream(readable)) return;
    if (followReadableStream(readable, observer)) observer.watch(readable);
    else observer.end();
  });
  return readable;
}

function followCancel(method: Method, stream: ReadableStream, args: unknown[], observer: StreamObserver): unknown {
  const isRefused = isLocked(stream);
  const result = Reflect.apply(method, stream, args);
  if (!isRefused) observer.cancel();
  return result;
}

function isLocked(stream: ReadableStream | undefined): boolean {
  return guard('traceable', () => stream?.locked) === true;
}

/** Whether the consumer of a result waits for chunks without a call that is observed. */
export function isAwaited(result: object | undefined, hasChunks: boolean): boolean | undefined {
  return guard('traceable', () => {
    const { readableFlowing, unsubscribe, closed, locked } = (result ?? {}) as Record<string, unknown>;
    if (typeof unsubscribe === 'function') return closed === false;
    // If the runtime reads a stream without its replaced methods, no chunk arrives.
    return readableFlowing === true || (locked === true && !hasChunks && Object.hasOwn(result as object, 'getReader'));
  });
}

function followValues(method: Method, stream: ReadableStream, args: unknown[], observer: StreamObserver): unknown {
  const [options] = args;
  // Reads `preventCancel` only once, because it may be a getter.
  const isOptions = typeof options === 'object' && options !== null;
  const preventCancel = isOptions && Boolean((options as { preventCancel?: unknown }).preventCancel);
  const iterator = Reflect.apply(method, stream, isOptions ? [{ preventCancel }] : args);
  if (!isObjectOrFunction(iterator) || iterator === stream) return iterator;
  // If `preventCancel` is set, another consumer may continue to read the stream.
  const progress = { chunks: 0, uncancelled: Number.POSITIVE_INFINITY };
  followIterator(iterator, preventCancel ? partialObserver(observer, progress) : observer);
  return iterator;
}

interface Progress {
  /** Number of chunks read by the consumer that is furthest ahead. */
  chunks: number;
  uncancelled: number;
}

/**
 * Returns an observer for one of a stream's consumers. Reports each chunk only once, when the first consumer reads it.
 */
function partialObserver(whole: StreamObserver, progress: Progress): StreamObserver {
  let chunks = 0;
  let isCancelled = false;
  return {
    get isStepping() {
      return whole.isStepping;
    },
    observesSource: whole.observesSource === true,
    step: (method, self, args) => whole.step(method, self, args),
    chunk(value) {
      if (++chunks <= progress.chunks) return;
      progress.chunks = chunks;
      whole.chunk(value);
    },
    end: () => whole.end(),
    fail: (error) => whole.fail(error),
    cancel() {
      if (isCancelled) return;
      isCancelled = true;
      if (--progress.uncancelled === 0) whole.cancel();
    },
    // Does nothing, because the original stream is already watched.
    watch() {},
    detach: () => whole.detach(),
  };
}
