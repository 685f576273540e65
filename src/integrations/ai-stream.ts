import { guard } from '../base/guard.ts';

/** What is told of a stream. Exactly one of `end`, `fail` and `leave` is called, once. */
export interface StreamWatcher {
  chunk(value: unknown): void;
  end(): void;
  fail(error: unknown): void;
  /** It was cancelled, or nothing can read it any more; `chunk` has been told what was read of it. */
  leave(how: 'cancelled' | 'interrupted'): void;
}

/**
 * A stream that gives what another gives and tells of it. It asks for a chunk only when one is asked of it and holds none
 * back, so that the other works no earlier and no later than without it.
 */
export function watchedStream(stream: ReadableStream<unknown>, watcher: StreamWatcher): ReadableStream<unknown> {
  let reader: ReadableStreamDefaultReader<unknown> | undefined;
  let isOver = false;
  const finish = (tell: () => void): void => {
    isOver = true;
    unread.unregister(watcher);
    guard(PLACE, tell);
  };
  const pull = (controller: ReadableStreamDefaultController<unknown>): Promise<void> => {
    reader ??= stream.getReader();
    return reader.read().then(
      ({ done, value }) => {
        // It has been cancelled meanwhile.
        if (isOver) return;
        if (done) {
          finish(() => watcher.end());
          controller.close();
        } else {
          guard(PLACE, () => watcher.chunk(value));
          controller.enqueue(value);
        }
      },
      (error) => {
        finish(() => watcher.fail(error));
        throw error;
      },
    );
  };
  const cancel = (reason: unknown): Promise<void> => {
    finish(() => watcher.leave('cancelled'));
    return (reader ?? stream).cancel(reason);
  };
  const watched = new ReadableStream<unknown>({ pull, cancel }, { highWaterMark: 0 });
  unread.register(watched, watcher, watcher);
  return watched;
}

const PLACE = 'reading a stream';

/** A stream that is left half way without a word is collected some day. */
const unread = new FinalizationRegistry<StreamWatcher>(
  (watcher) => void guard(PLACE, () => watcher.leave('interrupted')),
);
