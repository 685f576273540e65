import type { StreamObserver } from './observer.ts';

/**
 * Returns a stream with the same chunks that reports each chunk and the end to the observer. The returned stream
 * buffers nothing: it reads a chunk only when its consumer asks for one.
 */
export function observedStream<Chunk>(stream: ReadableStream<Chunk>, observer: StreamObserver): ReadableStream<Chunk> {
  let reader: ReadableStreamDefaultReader<Chunk> | undefined;
  let isCancelled = false;
  const pull = (controller: ReadableStreamDefaultController<Chunk>): Promise<void> => {
    reader ??= stream.getReader();
    const next = observer.step(reader.read, reader, []) as ReturnType<typeof reader.read>;
    return next.then(
      ({ done, value }) => {
        if (isCancelled) return;
        if (done) {
          observer.end();
          controller.close();
        } else {
          observer.chunk(value);
          controller.enqueue(value);
        }
      },
      (error) => {
        observer.fail(error);
        throw error;
      },
    );
  };
  const cancel = (reason: unknown): Promise<void> => {
    isCancelled = true;
    const source = reader ?? stream;
    const cancelled = observer.step(source.cancel, source, [reason]) as Promise<void>;
    observer.cancel();
    return cancelled;
  };
  const observed = new ReadableStream<Chunk>({ pull, cancel }, { highWaterMark: 0 });
  observer.watch(observed);
  return observed;
}
