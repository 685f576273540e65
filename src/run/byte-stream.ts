import { ignoreRejection } from '../base/guard.ts';
import { setSoon } from '../base/timers.ts';
import { isBinary, viewOf } from './attachment.ts';

/** Chunks read in one go; a stream that has them all at hand would otherwise keep the event loop for itself. */
const CHUNKS_PER_TURN = 64;

const FIRST_BYTES = 16 * 1024;

/** What can be read: a `ReadableStream`, a Node stream, or any async iterable. */
export function isByteStream(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const { getReader, [Symbol.asyncIterator]: iterate } = value as Readable;
  return typeof getReader === 'function' || typeof iterate === 'function';
}

/**
 * Reads a stream of bytes to its end, from this moment on; text is UTF-8. `reserve` is asked before bytes are kept, and one
 * that it refuses ends the reading, as `signal` does. Rejects when the stream cannot be read to its end, and has then
 * closed it, without waiting for that.
 */
export async function readStream(
  stream: object,
  reserve: (bytes: number) => boolean,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const source = openedSource(stream);
  try {
    return await new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      readAll(source, reserve, signal).then(resolve, reject);
    });
  } catch (thrown) {
    closeSource(source);
    throw thrown;
  }
}

/** Closes a stream that is not going to be read, so that nothing waits for it to be. Anything else is left alone. */
export function closeStream(value: unknown): void {
  try {
    if (isByteStream(value)) closeSource(openedSource(value));
  } catch {
    // It is locked, hence somebody else's.
  }
}

interface Readable {
  getReader?: () => { read(): Promise<ReadResult>; cancel(): unknown };
  destroy?: () => void;
  write?: unknown;
  on?: (event: 'error', listener: () => void) => void;
  [Symbol.asyncIterator]?: () => ReadIterator;
}

interface ReadIterator {
  next(): Promise<ReadResult>;
  return?(): unknown;
}

type ReadResult = { readonly done?: boolean; readonly value?: unknown };

interface Source {
  next(): Promise<ReadResult>;
  close(): unknown;
}

function openedSource(stream: Readable): Source {
  if (typeof stream.getReader === 'function') {
    const reader = stream.getReader();
    // The iterator of such a stream would let a read that is under way come to its end before it is closed.
    return { next: () => reader.read(), close: () => reader.cancel() };
  }
  const iterator = stream[Symbol.asyncIterator]?.() as ReadIterator;
  const next = (): Promise<ReadResult> => iterator.next();
  if (typeof stream.destroy !== 'function' || typeof stream.on !== 'function') {
    return { next, close: () => iterator.return?.() };
  }
  // An error that comes when nobody reads any more would end the process.
  stream.on('error', () => {});
  // What is piped into a stream that was destroyed may wait for it without end (Node, `awaitDrainWriters`).
  const isPipeTarget = typeof stream.write === 'function';
  return { next, close: () => (isPipeTarget ? drain(next) : stream.destroy?.()) };
}

async function drain(next: Source['next']): Promise<void> {
  for (let chunks = 1; (await next()).done !== true; chunks++) if (chunks % CHUNKS_PER_TURN === 0) await turn();
}

function turn(): Promise<void> {
  return new Promise((resolve) => setSoon(resolve));
}

function closeSource(source: Source): void {
  try {
    ignoreRejection(source.close());
  } catch {
    // It is given up in any case.
  }
}

async function readAll(source: Source, reserve: (bytes: number) => boolean, signal: AbortSignal): Promise<Uint8Array> {
  let kept = new Uint8Array();
  let length = 0;
  for (let chunks = 1; ; chunks++) {
    const { done, value } = await source.next();
    if (done === true) return kept.slice(0, length);
    signal.throwIfAborted();
    const chunk = chunkOf(value);
    // An empty one counts too, so that a stream of nothing comes to an end.
    if (!reserve(Math.max(1, chunk.byteLength))) throw new Error('it went beyond limits.attachmentBytes');
    if (length + chunk.byteLength > kept.length) kept = grown(kept, length, length + chunk.byteLength);
    kept.set(chunk, length);
    length += chunk.byteLength;
    if (chunks % CHUNKS_PER_TURN === 0) await turn();
  }
}

function chunkOf(value: unknown): Uint8Array {
  if (typeof value === 'string') return Buffer.from(value);
  if (isBinary(value)) return viewOf(value);
  throw new TypeError('it gave a chunk that is neither bytes nor text');
}

function grown(kept: Uint8Array, length: number, needed: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(Math.max(FIRST_BYTES, kept.length * 2, needed));
  larger.set(kept.subarray(0, length));
  return larger;
}
