import type { Readable } from 'node:stream';
import { guard } from '../base/guard.ts';
import { nodeModule } from '../base/node.ts';
import { followIterator } from './iterator.ts';
import { isObjectOrFunction, type Method, replaceOwn, type Settlement, type StreamObserver } from './observer.ts';
import { followIfThenable } from './promise.ts';

/** Whether the value is a web stream, either native or implemented by a library. */
export function isReadableStream(value: object): value is ReadableStream {
  const { getReader, tee, cancel } = value as Partial<ReadableStream>;
  return typeof getReader === 'function' && typeof tee === 'function' && typeof cancel === 'function';
}

/** Whether the value is a readable Node stream, either from `node:stream` or implemented by a library. */
export function isNodeReadable(value: object): boolean {
  const { emit, on, pipe, read } = value as Partial<Readable>;
  return [emit, on, pipe, read].every((method) => typeof method === 'function');
}

/**
 * Whether the value is a stream of an OpenAI or Anthropic SDK helper (`messages.stream`, `chat.completions.stream`).
 * The stream reads the response itself and emits events to `on`, `finalMessage` and iterations.
 */
export function isHelperStream(value: object): boolean {
  const { _emit, done, ended } = value as Record<string, unknown>;
  return typeof _emit === 'function' && typeof done === 'function' && typeof ended === 'boolean';
}

/**
 * Observes a Node stream by replacing `emit`, because the stream emits all consumed data as `data` events. A listener
 * would start the flow of the stream and change the number of listeners.
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

/** Whether an error is an abort without a cause, which Node emits if `break` leaves an iteration. */
function isEarlyExit(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return code === 'ABORT_ERR' && cause === undefined;
}

/** Events with which SDK helpers emit a chunk of a message, a chat completion or a response. */
const HELPER_CHUNKS: readonly unknown[] = ['chunk', 'event', 'streamEvent'];

/** Observes the stream of an SDK helper. A listener would hide errors that the application does not handle. */
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
 * Observes a web stream by replacing the methods that consume the stream. Never locks or reads the stream, so the
 * consumer controls back-pressure. The engine bypasses the methods for `pipeTo`, for a transfer to another thread and,
 * on Node 26, for `Response.clone` and `Readable.fromWeb`. In these cases only the end of the stream is observed.
 */
export function followReadableStream(stream: object, observer: StreamObserver): boolean {
  let isHandedOn = false;
  const following = (follow: Follow, handsOn = false): ((method: Method) => Method) => {
    return (method) =>
      function (this: unknown, ...args: unknown[]): unknown {
        // A library may implement one method of a stream by calling another.
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
  // A LangChain stream is its own iterator.
  if (typeof (stream as { next?: unknown }).next === 'function') followIterator(stream, observer);
  followEnd(stream, observer, () => isHandedOn);
  return true;
}

/** Observes the end of a stream that the engine reads. For other reads, the replaced methods report the end earlier. */
function followEnd(stream: object, observer: StreamObserver, isHandedOn: () => boolean): void {
  // Only native streams can be read by the engine without calls of the replaced methods.
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
      // `Readable.fromWeb` cancels a stream after the stream has failed. `closed` reports the error in this case.
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
  // `read` also rejects if its caller makes a mistake. `closed` rejects only if the stream fails, and the engine marks
  // the rejection as handled (https://streams.spec.whatwg.org/#readable-stream-reader-generic-initialize).
  void reader.closed?.then(undefined, (error) => {
    if (!isReleased) observer.fail(error);
  });
}

function settlementOf(fulfilled: (value: unknown) => void, fail: (error: unknown) => void = () => {}): Settlement {
  const guarded = (value: unknown): void => void guard('traceable', () => fulfilled(value));
  return { fulfilled: guarded, fail };
}

/** Observes both branches as one result, which ends when the first branch ends. */
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
  // A rejected `pipeTo` has consumed nothing.
  if (wasLocked || !isLocked(stream)) return piped;
  observer.detach();
  const settlement = settlementOf(
    () => observer.end(),
    (error) => observer.fail(error),
  );
  return followIfThenable(piped, settlement);
}

/** Observes the output of a transform. The end, errors and cancellation of the output pass through the pipe. */
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

/** Whether a stream is locked. False for other values, for which the called method itself throws. */
function isLocked(stream: ReadableStream | undefined): boolean {
  return guard('traceable', () => stream?.locked) === true;
}

function followValues(method: Method, stream: ReadableStream, args: unknown[], observer: StreamObserver): unknown {
  const [options] = args;
  // The option may be a getter, so the option is read only once.
  const isOptions = typeof options === 'object' && options !== null;
  const preventCancel = isOptions && Boolean((options as { preventCancel?: unknown }).preventCancel);
  const iterator = Reflect.apply(method, stream, isOptions ? [{ preventCancel }] : args);
  if (!isObjectOrFunction(iterator) || iterator === stream) return iterator;
  // With `preventCancel`, another consumer may continue to read the stream.
  const progress = { chunks: 0, uncancelled: Number.POSITIVE_INFINITY };
  followIterator(iterator, preventCancel ? partialObserver(observer, progress) : observer);
  return iterator;
}

/** Progress of all consumers of one stream: chunks that the fastest has read, and consumers that have not cancelled. */
interface Progress {
  chunks: number;
  uncancelled: number;
}

/** Returns an observer for one of several consumers. Reports only chunks that no other consumer has reported. */
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
    // The original stream is watched, and every consumer references the original stream.
    watch() {},
    detach: () => whole.detach(),
  };
}
