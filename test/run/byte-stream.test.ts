import { setMaxListeners } from 'node:events';
import { createReadStream } from 'node:fs';
import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { closeStream, isByteStream, readStream } from '../../src/run/byte-stream.ts';

const never = new AbortController().signal;
setMaxListeners(0, never);
const all = (): boolean => true;
const text = async (stream: object, reserve = all, signal = never): Promise<string> =>
  Buffer.from(await readStream(stream, reserve, signal)).toString();

/** A stream that says whether it was cancelled. */
function watchedStream(pull: (controller: ReadableStreamDefaultController) => void | Promise<void>) {
  const seen = { cancelled: 0 };
  const stream = new ReadableStream({ pull, cancel: () => void seen.cancelled++ }, { highWaterMark: 0 });
  return { stream, seen };
}

async function* chunks(...values: unknown[]): AsyncGenerator<unknown> {
  yield* values;
}

describe('readStream', () => {
  it.each<[string, () => object]>([
    ['a ReadableStream', () => new Blob(['ab', 'c']).stream()],
    ['a stream of bytes', () => new Response('abc').body as ReadableStream],
    ['a Node stream', () => Readable.from([Buffer.from('ab'), Buffer.from('c')])],
    ['an async iterable', () => chunks(new Uint8Array([97]), 'b', new Uint16Array([99]).buffer.slice(0, 1))],
    ['chunks of views, and empty ones', () => chunks(new DataView(Buffer.from('xabcx').buffer.slice(0)), '')],
  ])('reads %s to its end', async (name, make) => {
    const expected = name.startsWith('chunks') ? /abc/ : /^abc$/;
    expect(await text(make())).toMatch(expected);
  });

  it('takes text as UTF-8, and copies chunks whose buffer is used again', async () => {
    const buffer = Buffer.alloc(2);
    async function* reusing(): AsyncGenerator<unknown> {
      for (const word of ['ab', 'cd']) {
        buffer.write(word);
        yield buffer;
      }
      yield '€😀';
    }
    expect(await text(reusing())).toBe('abcd€😀');
  });

  it('reads a million bytes in chunks of any size', async () => {
    const whole = Buffer.alloc(1_000_000, 'abcdefghijk');
    async function* cut(): AsyncGenerator<unknown> {
      for (let at = 0, size = 1; at < whole.length; at += size++) yield whole.subarray(at, at + size);
    }
    expect(whole.equals(await readStream(cut(), all, never))).toBe(true);
  });

  it('lets other work go on while all chunks are at hand', async () => {
    let turns = 0;
    const tick = (): void => {
      turns++;
      if (turns < 3) setImmediate(tick);
    };
    setImmediate(tick);
    await readStream(chunks(...Array.from({ length: 400 }, () => 'x')), all, never);
    expect(turns).toBe(3);
  });

  it('asks for room for each chunk, for a byte where it is empty, and closes a stream that gets none', async () => {
    const asked: number[] = [];
    const { stream, seen } = watchedStream((controller) =>
      controller.enqueue(new Uint8Array(asked.length === 0 ? 0 : 10)),
    );
    const reading = readStream(
      stream,
      (bytes) => {
        asked.push(bytes);
        return asked.length < 3;
      },
      never,
    );
    await expect(reading).rejects.toThrow('beyond limits.attachmentBytes');
    expect(asked).toEqual([1, 10, 10]);
    expect(seen.cancelled).toBe(1);
  });

  it('ends an endless stream of nothing', async () => {
    let left = 1_000;
    async function* nothing(): AsyncGenerator<unknown> {
      for (;;) yield '';
    }
    await expect(readStream(nothing(), () => left-- > 0, never)).rejects.toThrow('beyond');
  });

  it.each<[string, () => object, RegExp]>([
    ['that throws at once', () => chunksThatThrow(), /no bytes today/],
    ['of objects', () => chunks({ a: 1 }), /neither bytes nor text/],
    ['of numbers', () => Readable.from([1, 2]), /neither bytes nor text/],
    ['that fails later', () => failing(), /wire cut/],
    ['that is locked', () => locked(), /lock/i],
    ['that was destroyed', () => new PassThrough().destroy(), /premature|prematurely|destroyed/i],
    [
      'that was destroyed with an error',
      () => new PassThrough().on('error', () => {}).destroy(new Error('gone')),
      /gone/,
    ],
    ['of a file that is not there', () => createReadStream('/no/such/file'), /ENOENT/],
    [
      'whose iterator throws',
      () => ({
        [Symbol.asyncIterator]: () => {
          throw new Error('none for you');
        },
      }),
      /none for you/,
    ],
    ['whose iterator is nothing', () => ({ [Symbol.asyncIterator]: () => undefined }), /undefined/],
    [
      'whose results are nothing',
      () => ({ [Symbol.asyncIterator]: () => ({ next: async () => undefined }) }),
      /undefined/,
    ],
  ])('rejects for one %s', async (_, make, message) => {
    await expect(readStream(make(), all, never)).rejects.toThrow(message);
  });

  it('gives up a stream that stays silent when it is told to, and cancels it', async () => {
    const stop = new AbortController();
    const { stream, seen } = watchedStream(() => new Promise(() => {}));
    const reading = readStream(stream, all, stop.signal);
    stop.abort(new Error('too late'));
    await expect(reading).rejects.toThrow('too late');
    expect(seen.cancelled).toBe(1);
  });

  it('does not wait for a stream that never closes', async () => {
    const stream = {
      [Symbol.asyncIterator]: () => ({ next: async () => ({ value: 7 }), return: () => new Promise(() => {}) }),
    };
    await expect(readStream(stream, all, never)).rejects.toThrow('neither bytes nor text');
  });

  it('handles the rejection of a stream that fails to close', async () => {
    const stream = {
      [Symbol.asyncIterator]: () => ({
        next: async () => ({ value: 7 }),
        return: () => Promise.reject(new Error('unhandled')),
      }),
    };
    await expect(readStream(stream, all, never)).rejects.toThrow('neither bytes nor text');
    await new Promise((resolve) => setImmediate(resolve));
  });
});

describe('closeStream', () => {
  it('cancels a ReadableStream, destroys a Node stream, and returns from an iterator', () => {
    const { stream, seen } = watchedStream(() => {});
    const node = new Readable({ read() {} });
    let returned = 0;
    closeStream(stream);
    closeStream(node);
    closeStream({ [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true }), return: () => returned++ }) });
    expect([seen.cancelled, node.destroyed, returned]).toEqual([1, true, 1]);
  });

  it('survives the error of a file that is not there', async () => {
    const stream = createReadStream('/no/such/file');
    const closed = new Promise<void>((resolve) => stream.once('close', () => resolve()));
    closeStream(stream);
    await closed;
    expect(stream.destroyed).toBe(true);
  });

  it.each<[string, (aside: PassThrough) => void]>([
    ['closed', (aside) => closeStream(aside)],
    ['given up', (aside) => void readStream(aside, (bytes) => bytes < 10, never).catch(() => {})],
  ])('lets what is piped into a stream go on when that is %s', async (_, leave) => {
    const source = Readable.from(Array.from({ length: 200 }, () => Buffer.alloc(10_000)));
    const aside = source.pipe(new PassThrough());
    const read = source.pipe(new PassThrough());
    leave(aside);
    let bytes = 0;
    for await (const chunk of read) bytes += (chunk as Buffer).length;
    expect(bytes).toBe(2_000_000);
  });

  it('leaves anything else alone', () => {
    for (const value of [undefined, null, 'text', new Uint8Array(1), locked(), { [Symbol.asyncIterator]: 1 }]) {
      expect(() => closeStream(value)).not.toThrow();
    }
  });
});

describe('isByteStream', () => {
  it.each([
    ['a ReadableStream', new ReadableStream(), true],
    ['a Node stream', new PassThrough(), true],
    ['an async generator', chunks(), true],
    ['bytes', new Uint8Array(1), false],
    ['a list', ['a'], false],
    ['text', 'text', false],
    ['null', null, false],
  ])('says of %s whether it is one', (_, value, is) => {
    expect(isByteStream(value)).toBe(is);
  });
});

function locked(): ReadableStream {
  const stream = new ReadableStream();
  stream.getReader();
  return stream;
}

// biome-ignore lint/correctness/useYield: it never comes to that.
async function* chunksThatThrow(): AsyncGenerator<unknown> {
  throw new Error('no bytes today');
}

async function* failing(): AsyncGenerator<unknown> {
  yield 'a';
  throw new Error('wire cut');
}
