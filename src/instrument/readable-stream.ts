import { finished, isErrored, Readable } from 'node:stream';
import { guard } from '../base/guard.ts';
import { followIterator } from './iterator.ts';
import { type Method, replaceOwn } from './own-method.ts';
import { followAnswer } from './promise.ts';
import { PartialReading, type Reading } from './reading.ts';

/** A web stream, of Node or of a library that brings its own. */
export function isReadableStream(value: object): value is ReadableStream {
  const { getReader, tee, cancel } = value as Partial<ReadableStream>;
  return typeof getReader === 'function' && typeof tee === 'function' && typeof cancel === 'function';
}

/**
 * Observes a web stream by replacing the methods of this instance that consume it. The stream is never locked or read
 * by the library, so its reader controls back-pressure. The engine bypasses these methods for `pipeTo`, a transfer to
 * another thread and, since Node 26, `Response.clone` and `Readable.fromWeb`. In these cases only the end of the stream
 * is observed.
 */
export function followReadableStream(stream: object, reading: Reading): boolean {
  let isHandedOn = false;
  const following = (follow: Follow, handsOn = false): ((method: Method) => Method) => {
    return (method) =>
      function (this: unknown, ...args: unknown[]): unknown {
        // A library's stream may do one by means of another.
        if (reading.isStepping) return Reflect.apply(method, this, args);
        isHandedOn ||= handsOn;
        return follow(method, this as ReadableStream, args, reading);
      };
  };
  if (!replaceOwn(stream, 'getReader', following(followGetReader))) return false;
  replaceOwn(stream, 'tee', following(followTee, true));
  replaceOwn(stream, 'pipeTo', following(followPipeTo, true));
  replaceOwn(stream, 'pipeThrough', following(followPipeThrough, true));
  replaceOwn(stream, 'cancel', following(followCancel));
  const { values, [Symbol.asyncIterator]: iterate } = stream as { values?: Method; [Symbol.asyncIterator]?: Method };
  const followed = replaceOwn(stream, 'values', following(followValues));
  // The two are one function, as long as nobody has changed either.
  if (followed && values === iterate) {
    const one = (stream as { values: Method }).values;
    replaceOwn(stream, Symbol.asyncIterator, () => one);
  } else {
    replaceOwn(stream, Symbol.asyncIterator, following(followValues));
  }
  // LangChain's streams are their own iterators.
  if (typeof (stream as { next?: unknown }).next === 'function') followIterator(stream, reading);
  followEnd(stream, reading, () => isHandedOn);
  return true;
}

/**
 * Observes the end of a stream that the engine reads internally. Reads through the replaced methods report the end
 * earlier.
 */
function followEnd(stream: object, reading: Reading, isHandedOn: () => boolean): void {
  // Streams implemented by a library are always read through their methods.
  if (!(stream instanceof ReadableStream)) return;
  const readable = stream as unknown as NodeJS.ReadableStream;
  guard('traceable', () => {
    finished(readable, (error) => {
      if (isHandedOn() || !Readable.isDisturbed(readable)) return;
      reading.leaveUnseen();
      if (error) reading.fail(error);
      else reading.end();
    });
  });
}

type Follow = (method: Method, stream: ReadableStream, args: unknown[], reading: Reading) => unknown;

function followGetReader(method: Method, stream: ReadableStream, args: unknown[], reading: Reading): unknown {
  const reader = reading.step(method, stream, args);
  guard('traceable', () => followReader(reader as ReadableStreamDefaultReader, stream, reading));
  return reader;
}

function followReader(reader: ReadableStreamDefaultReader, stream: ReadableStream, reading: Reading): void {
  let isReleased = false;
  const took = (result: unknown): void => {
    guard('traceable', () => {
      const { done, value } = result as { done: boolean; value?: unknown };
      if (done) reading.end();
      else reading.took(value);
    });
  };
  replaceOwn(reader, 'read', (read) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      if (reading.isStepping) return Reflect.apply(read, this, args);
      return followAnswer(reading.step(read, this, args), { fulfilled: took, rejected: () => {}, abandoned: () => {} });
    };
  });
  replaceOwn(reader, 'cancel', (cancel) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      const result = Reflect.apply(cancel, this, args);
      // `Readable.fromWeb` cancels a stream after it has failed. The error is reported through `closed`.
      if (!isReleased && !isErrored(stream as unknown as NodeJS.ReadableStream)) reading.cancel();
      return result;
    };
  });
  replaceOwn(reader, 'releaseLock', (release) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      isReleased = true;
      return Reflect.apply(release, this, args);
    };
  });
  // A `read` may also be refused for the caller's own mistake. This promise fails with the stream alone, and the engine
  // has marked its rejection as handled (https://streams.spec.whatwg.org/#readable-stream-reader-generic-initialize).
  void reader.closed?.then(undefined, (error) => {
    if (!isReleased) reading.fail(error);
  });
}

/** Both branches together are one consumption: what the faster one has read is what came. */
function followTee(method: Method, stream: ReadableStream, args: unknown[], reading: Reading): unknown {
  const branches = Reflect.apply(method, stream, args) as ReadableStream[];
  guard('traceable', () => {
    const shared = { taken: 0, open: branches.length };
    for (const branch of branches) followReadableStream(branch, new Branch(reading, shared));
  });
  return branches;
}

class Branch extends PartialReading {
  readonly #shared: { taken: number; open: number };
  #taken = 0;
  #isCancelled = false;

  constructor(whole: Reading, shared: { taken: number; open: number }) {
    super(whole);
    this.#shared = shared;
  }

  override took(chunk: unknown): void {
    if (++this.#taken <= this.#shared.taken) return;
    this.#shared.taken = this.#taken;
    super.took(chunk);
  }

  override cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    if (--this.#shared.open === 0) super.cancel();
  }

  /** What a branch leads to is one of several ends; the stream that all of them hold on to is watched already. */
  override watch(): void {}
}

function followPipeTo(method: Method, stream: ReadableStream, args: unknown[], reading: Reading): unknown {
  const wasLocked = isLocked(stream);
  const piped: unknown = Reflect.apply(method, stream, args);
  // Otherwise it was refused, and nothing of the stream has been consumed.
  if (wasLocked || !isLocked(stream)) return piped;
  reading.leaveUnseen();
  const settlement = {
    fulfilled: () => reading.end(),
    rejected: (error: unknown) => reading.fail(error),
    abandoned: () => {},
  };
  return followAnswer(piped, settlement);
}

/** What comes out at the other end is what the consumer reads; ends, errors and cancellation pass through. */
function followPipeThrough(method: Method, stream: ReadableStream, args: unknown[], reading: Reading): unknown {
  const readable = Reflect.apply(method, stream, args) as object;
  guard('traceable', () => {
    if (readable === stream || !isReadableStream(readable)) return;
    if (followReadableStream(readable, reading)) reading.watch(readable);
    else reading.end();
  });
  return readable;
}

function followCancel(method: Method, stream: ReadableStream, args: unknown[], reading: Reading): unknown {
  const isRefused = isLocked(stream);
  const result = Reflect.apply(method, stream, args);
  if (!isRefused) reading.cancel();
  return result;
}

/** A method may have been called on anything, and answers to that itself. */
function isLocked(stream: ReadableStream | undefined): boolean {
  return guard('traceable', () => stream?.locked) === true;
}

function followValues(method: Method, stream: ReadableStream, args: unknown[], reading: Reading): unknown {
  const [options] = args;
  if (typeof options !== 'object' || options === null) {
    return followedIterator(Reflect.apply(method, stream, args), reading, stream);
  }
  // Read once, as without us.
  const preventCancel = Boolean((options as { preventCancel?: unknown }).preventCancel);
  const iterator = Reflect.apply(method, stream, [{ preventCancel }]);
  return followedIterator(iterator, preventCancel ? new Uncancelled(reading) : reading, stream);
}

/** An iterator that leaves its stream as it is when it is left, so that somebody else may read on. */
class Uncancelled extends PartialReading {
  override cancel(): void {}
}

function followedIterator(iterator: unknown, reading: Reading, stream: object): unknown {
  if (typeof iterator === 'object' && iterator !== null && iterator !== stream) followIterator(iterator, reading);
  return iterator;
}
