import { guard } from '../base/guard.ts';
import type { Run } from '../run/run.ts';
import type { AnswerReader } from './answer.ts';
import { AnswerReading } from './answer-reading.ts';

/**
 * The stream of the SDKs that Stainless generates: iteration, `tee` and `toReadableStream` all take what `iterator` gives.
 * Its controller aborts the request, and is aborted by leaving the iteration early.
 */
interface ModelStream {
  iterator: (...args: unknown[]) => object;
  readonly controller: AbortController;
}

/**
 * Follows such a stream without reading it: the same object, its `iterator` replaced on the instance. The run ends as
 * `AnswerReading` says. False when it is no such stream.
 */
export function followModelStream(stream: unknown, run: Run, reader: AnswerReader): boolean {
  const { fold } = reader;
  if (fold === undefined) return false;
  const isFollowed = guard('following a stream', () => {
    if (!isModelStream(stream) || !Object.isExtensible(stream)) return false;
    return new AnswerReading(run, fold(), stream.controller.signal).follow(stream, 'iterator');
  });
  return isFollowed ?? false;
}

/**
 * The same for what an instrumentation hands out in the place of the promise of a stream: an iteration of its own over the
 * chunks (Traceloop does so). False when it is none.
 */
export function followChunks(chunks: object, run: Run, reader: AnswerReader): boolean {
  const { fold } = reader;
  if (fold === undefined) return false;
  const isFollowed = guard('following a stream', () => {
    const { then, [Symbol.asyncIterator]: open } = chunks as { then?: unknown; [Symbol.asyncIterator]?: unknown };
    if (typeof then === 'function' || typeof open !== 'function') return false;
    return new AnswerReading(run, fold()).follow(chunks, Symbol.asyncIterator);
  });
  return isFollowed ?? false;
}

function isModelStream(value: unknown): value is ModelStream {
  if (typeof value !== 'object' || value === null) return false;
  const { iterator, controller } = value as Partial<ModelStream>;
  return typeof iterator === 'function' && typeof controller?.signal?.addEventListener === 'function';
}
