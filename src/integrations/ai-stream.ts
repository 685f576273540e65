import type { StreamObserver } from '../instrument/observer.ts';

/**
 * A stream that gives what another gives and tells of it. It asks for a chunk only when one is asked of it and holds none
 * back, so that the other works no earlier and no later than without it.
 */
export function watchedStream(stream: ReadableStream<unknown>, reading: StreamObserver): ReadableStream<unknown> {
  let reader: ReadableStreamDefaultReader<unknown> | undefined;
  let isOver = false;
  const pull = (controller: ReadableStreamDefaultController<unknown>): Promise<void> => {
    reader ??= stream.getReader();
    const next = reading.step(reader.read, reader, []) as ReturnType<typeof reader.read>;
    return next.then(
      ({ done, value }) => {
        // It has been cancelled meanwhile.
        if (isOver) return;
        if (done) {
          reading.end();
          controller.close();
        } else {
          reading.chunk(value);
          controller.enqueue(value);
        }
      },
      (error) => {
        reading.fail(error);
        throw error;
      },
    );
  };
  const cancel = (reason: unknown): Promise<void> => {
    isOver = true;
    const source = reader ?? stream;
    const cancelled = reading.step(source.cancel, source, [reason]) as Promise<void>;
    reading.cancel();
    return cancelled;
  };
  const watched = new ReadableStream<unknown>({ pull, cancel }, { highWaterMark: 0 });
  // One that is left half way without a word is collected some day.
  reading.watch(watched);
  return watched;
}
