import type { Readable } from 'node:stream';
import { guard } from '../base/guard.ts';
import { nodeModule } from '../base/node.ts';
import { followIterator } from './iterator.ts';
import { isObject, type Method, replaceOwn, type Settlement, type StreamObserver } from './observer.ts';
import { followIfThenable } from './promise.ts';

/** Whether the value is a web stream, of Node or of a library that implements its own. */
export function isReadableStream(value: object): value is ReadableStream {
  const { getReader, tee, cancel } = value as Partial<ReadableStream>;
  return typeof getReader === 'function' && typeof tee === 'function' && typeof cancel === 'function';
}

/** Whether the value is a readable Node stream, of `node:stream` or of a library that implements its own. */
export function isNodeReadable(value: object): boolean {
  const { emit, on, pipe, read } = value as Partial<Readable>;
  return [emit, on, pipe, read].every((method) => typeof method === 'function');
}

/**
 * Whether the value is the stream of an SDK helper of OpenAI or Anthropic (`messages.stream`, `chat.completions.stream`).
 * These read the response themselves and emit it, to `on` and `finalMessage` as well as to an iteration.
 */
export function isHelperStream(value: object): boolean {
  const { _emit, done, ended } = value as Record<string, unknown>;
  return typeof _emit === 'function' && typeof done === 'function' && typeof ended === 'boolean';
}

/**
 * Observes a Node stream through `emit`. Whatever is read from the stream is emitted as `data`. A listener would make the
 * stream flow, and every listener is counted.
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

/** Whether Node destroyed the stream because an iteration was left by `break`: with an abort that has no cause. */
function isEarlyExit(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return code === 'ABORT_ERR' && cause === undefined;
}

/** Events of SDK helpers that carry each chunk, for messages, chat completions and responses. */
const HELPER_CHUNKS: readonly unknown[] = ['chunk', 'event', 'streamEvent'];

/** Observes the stream of an SDK helper. With a listener of ours it would swallow errors that nobody handles. */
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
  return replaceOwn(stream, method, (emit) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      guard('traceable', () => observe(args[0], args[1]));
      return Reflect.apply(emit, this, args);
    };
  });
}

/**
 * Observes a web stream through the methods of the instance that consume it. We never lock or read the stream, so its
 * reader controls back-pressure. The engine bypasses these methods for `pipeTo`, for a transfer to another thread and, on
 * Node 26, for `Response.clone` and `Readable.fromWeb`. In these cases only the end is observed.
 */
export function followReadableStream(stream: object, observer: StreamObserver): boolean {
  let isHandedOn = false;
  const following = (follow: Follow, handsOn = false): ((method: Method) => Method) => {
    return (method) =>
      function (this: unknown, ...args: unknown[]): unknown {
        // A stream of a library may implement one method by means of another.
        if (observer.isStepping) return Reflect.apply(method, this, args);
        isHandedOn ||= handsOn;
        return follow(method, this as ReadableStream, args, observer);
      };
  };
  if (!replaceOwn(stream, 'getReader', following(followGetReader))) return false;
  replaceOwn(stream, 'tee', following(followTee, true));
  replaceOwn(stream, 'pipeTo', following(followPipeTo, true));
  replaceOwn(stream, 'pipeThrough', following(followPipeThrough, true));
  replaceOwn(stream, 'cancel', following(followCancel));
  replaceOwn(stream, 'values', following(followValues));
  replaceOwn(stream, Symbol.asyncIterator, following(followValues));
  // LangChain's streams are their own iterators.
  if (typeof (stream as { next?: unknown }).next === 'function') followIterator(stream, observer);
  followEnd(stream, observer, () => isHandedOn);
  return true;
}

/** Observes the end of a stream that the engine reads. Reads through the replaced methods report the end earlier. */
function followEnd(stream: object, observer: StreamObserver, isHandedOn: () => boolean): void {
  // The engine can read only native streams without calling their replaced methods.
  if (!(stream instanceof ReadableStream)) return;
  const { finished, Readable } = nodeModule('node:stream');
  const readable = stream as unknown as NodeJS.ReadableStream;
  guard('traceable', () => {
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
  const settlement = settlementOf((result) => {
    const { done, value } = result as { done: boolean; value?: unknown };
    if (done) observer.end();
    else observer.chunk(value);
  });
  replaceOwn(reader, 'read', (read) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      if (observer.isStepping) return Reflect.apply(read, this, args);
      return followIfThenable(observer.step(read, this, args), settlement);
    };
  });
  replaceOwn(reader, 'cancel', (cancel) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      const result = Reflect.apply(cancel, this, args);
      // `Readable.fromWeb` cancels a stream after it has failed. The error is reported through `closed`.
      const { isErrored } = nodeModule('node:stream');
      if (!isReleased && !isErrored(stream as unknown as NodeJS.ReadableStream)) observer.cancel();
      return result;
    };
  });
  replaceOwn(reader, 'releaseLock', (release) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      isReleased = true;
      return Reflect.apply(release, this, args);
    };
  });
  // A `read` is also rejected for a mistake of its caller. `closed` is rejected only if the stream fails, and the engine
  // marks its rejection as handled (https://streams.spec.whatwg.org/#readable-stream-reader-generic-initialize).
  void reader.closed?.then(undefined, (error) => {
    if (!isReleased) observer.fail(error);
  });
}

function settlementOf(fulfilled: (value: unknown) => void, fail: (error: unknown) => void = () => {}): Settlement {
  const guarded = (value: unknown): void => void guard('traceable', () => fulfilled(value));
  return { fulfilled: guarded, fail };
}

/** Both branches are one reading. It ends with the first branch that ends. */
function followTee(method: Method, stream: ReadableStream, args: unknown[], observer: StreamObserver): unknown {
  const branches = Reflect.apply(method, stream, args) as ReadableStream[];
  guard('traceable', () => {
    const progress = { chunks: 0, uncancelled: branches.length };
    for (const branch of branches) followReadableStream(branch, partialObserver(observer, progress));
  });
  return branches;
}

function followPipeTo(method: Method, stream: ReadableStream, args: unknown[], observer: StreamObserver): unknown {
  const wasLocked = isLocked(stream);
  const piped: unknown = Reflect.apply(method, stream, args);
  // A pipe that was refused has consumed nothing.
  if (wasLocked || !isLocked(stream)) return piped;
  observer.detach();
  const settlement = settlementOf(
    () => observer.end(),
    (error) => observer.fail(error),
  );
  return followIfThenable(piped, settlement);
}

/** The consumer reads the output of the transform. End, errors and cancellation pass through the pipe. */
function followPipeThrough(method: Method, stream: ReadableStream, args: unknown[], observer: StreamObserver): unknown {
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

/** The method may have been called on any value, which then reports the mistake itself. */
function isLocked(stream: ReadableStream | undefined): boolean {
  return guard('traceable', () => stream?.locked) === true;
}

function followValues(method: Method, stream: ReadableStream, args: unknown[], observer: StreamObserver): unknown {
  const [options] = args;
  // The option is read once, as without tracing.
  const isOptions = typeof options === 'object' && options !== null;
  const preventCancel = isOptions && Boolean((options as { preventCancel?: unknown }).preventCancel);
  const iterator = Reflect.apply(method, stream, isOptions ? [{ preventCancel }] : args);
  if (!isObject(iterator) || iterator === stream) return iterator;
  // With `preventCancel`, somebody else may read on.
  const progress = { chunks: 0, uncancelled: Number.POSITIVE_INFINITY };
  followIterator(iterator, preventCancel ? partialObserver(observer, progress) : observer);
  return iterator;
}

/** Progress of all partial readings of one stream: the chunks of the fastest one, and how many may still be cancelled. */
interface Progress {
  chunks: number;
  uncancelled: number;
}

/** Makes the observer of one of several readings. It reports the chunks that no other reading has reported. */
function partialObserver(whole: StreamObserver, progress: Progress): StreamObserver {
  let chunks = 0;
  let isCancelled = false;
  return {
    get isStepping() {
      return whole.isStepping;
    },
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
    // The stream itself is watched, and every reading references it.
    watch() {},
    detach: () => whole.detach(),
  };
}
