import { Readable } from 'node:stream';

/**
 * Whether `Readable.fromWeb` of this runtime reads a web stream without calling the `read` method of its reader. Node
 * 24.22.3 and 26 do so.
 */
export async function readsInside(): Promise<boolean> {
  const stream = new ReadableStream({ start: (controller) => controller.close() });
  let isCalled = false;
  const { getReader } = stream;
  stream.getReader = (() => {
    const reader = Reflect.apply(getReader, stream, []) as ReadableStreamDefaultReader;
    const { read } = reader;
    reader.read = () => {
      isCalled = true;
      return Reflect.apply(read, reader, []);
    };
    return reader;
  }) as typeof getReader;
  for await (const _ of Readable.fromWeb(stream as never));
  return !isCalled;
}
