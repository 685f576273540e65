import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import * as zlib from 'node:zlib';
import { request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type BodyLimits, type BodyReader, RequestBodies, WholeBody } from '../../src/receiver/ingest/request-body.ts';
import { Refusal } from '../../src/receiver/refusal.ts';
import { BOUNDARY, makeRun, multipart, part, ROOT, raw, sendMultipart, start } from './wire.ts';

const { deflateSync, gzipSync } = zlib;
/** Where this Node has it. */
const { zstdCompressSync } = zlib as { zstdCompressSync?: (bytes: Buffer) => Buffer };

/** A server that answers with the size of a body, or with the refusal. */
async function listen(limits?: BodyLimits): Promise<string> {
  const bodies = new RequestBodies(limits);
  const server = createServer((incoming, response) => {
    bodies
      .read(incoming, new WholeBody(), ({ length }) => length)
      .then(
        (length) => response.end(`${length} bytes`),
        (error) => response.end(error instanceof Refusal ? `${error.status}: ${error.detail}` : `thrown: ${error}`),
      );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise((resolve) => server.close(() => resolve())));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function send(url: string, body: Buffer | AsyncIterable<Buffer>, encoding?: string): Promise<string> {
  const headers = encoding === undefined ? {} : { 'content-encoding': encoding };
  return (await request(url, { method: 'POST', body: body as Buffer, headers, reset: true })).body.text();
}

async function post(body: Buffer | AsyncIterable<Buffer>, encoding?: string, limits?: BodyLimits): Promise<string> {
  return send(await listen(limits), body, encoding);
}

async function* inChunks(bytes: Buffer, size = 10): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const limits = { wireBytesMax: 100, decodedBytesMax: 1_000, inFlightBytesMax: 2_000 };
const zeros = (size: number) => Buffer.alloc(size);

/** Counts the bytes that it is given, and has enough at some time. */
class CountingBody implements BodyReader<number> {
  bytes = 0;
  readonly #bytesMax: number;

  constructor(bytesMax = Number.POSITIVE_INFINITY) {
    this.#bytesMax = bytesMax;
  }

  write({ length }: Buffer): void {
    this.bytes += length;
    if (this.bytes > this.#bytesMax) throw new Error('enough');
  }

  end(): number {
    return this.bytes;
  }
}

/** The stream as a request without headers. */
const incomingOf = <Stream extends Readable>(stream: Stream) =>
  Object.assign(stream, { headers: {} }) as unknown as Stream & IncomingMessage;
const sizeOf = ({ length }: Buffer) => length;

describe('read', () => {
  test('takes as many bytes as the limit says and no more, whether they are announced or not', async () => {
    for (const body of [zeros, (size: number) => inChunks(zeros(size))]) {
      expect(await post(body(99), undefined, limits)).toBe('99 bytes');
      expect(await post(body(100), undefined, limits)).toBe('100 bytes');
      expect(await post(body(101), undefined, limits)).toBe('413: The body is larger than 100 bytes');
    }
  });

  test('takes as many decompressed bytes as the limit says and no more', async () => {
    expect(await post(gzipSync(zeros(999)), 'gzip', limits)).toBe('999 bytes');
    expect(await post(gzipSync(zeros(1_000)), 'GZIP', limits)).toBe('1000 bytes');
    expect(await post(gzipSync(zeros(1_001)), 'gzip', limits)).toBe(
      '413: The body is larger than 1000 bytes when decompressed',
    );
  });

  test('takes so many bytes of all requests together, and again when one of them has been answered', async () => {
    const bodies = new RequestBodies({ wireBytesMax: 100, decodedBytesMax: 1_000, inFlightBytesMax: 100 });
    const first = incomingOf(new PassThrough());
    const firstRead = bodies.read(first, new WholeBody(), sizeOf);
    await new Promise((resolve) => first.once('data', resolve).write(zeros(60)));
    const read = (size: number) => bodies.read(incomingOf(Readable.from([zeros(size)])), new WholeBody(), sizeOf);
    expect(await read(39)).toBe(39);
    expect(await read(40)).toBe(40);
    await expect(read(41)).rejects.toMatchObject({ status: 429, headers: { 'retry-after': '1' } });
    first.end();
    expect(await firstRead).toBe(60);
    expect(await read(100)).toBe(100);
  });

  test('counts decompressed bytes among those in flight', async () => {
    const small = { wireBytesMax: 100, decodedBytesMax: 1_000, inFlightBytesMax: 500 };
    const body = gzipSync(zeros(500));
    expect(await post(body, 'gzip', { ...small, inFlightBytesMax: 500 + body.length })).toBe('500 bytes');
    expect(await post(body, 'gzip', { ...small, inFlightBytesMax: 499 + body.length })).toMatch(/^429: /);
  });

  test('frees the bytes of a body that was refused or cut short', async () => {
    const url = await listen({ wireBytesMax: 100, decodedBytesMax: 1_000, inFlightBytesMax: 100 });
    for (let round = 0; round < 5; round += 1) {
      expect(await send(url, zeros(60), 'gzip')).toMatch(/^400: /);
      expect(await send(url, inChunks(zeros(101)))).toMatch(/^413: /);
      expect(await send(url, gzipSync(zeros(200)), 'gzip')).toMatch(/^429: /);
    }
    expect(await send(url, zeros(100))).toBe('100 bytes');
  });

  test('writes nothing more to a reader that has refused', async () => {
    for (const encoding of ['identity', 'gzip']) {
      const bytes = randomBytes(300_000);
      const body = encoding === 'gzip' ? gzipSync(bytes) : bytes;
      const stream = Object.assign(Readable.from(inChunks(body, 1_000)), { headers: { 'content-encoding': encoding } });
      const reader = new CountingBody(100_000);
      const reading = new RequestBodies().read(stream as unknown as IncomingMessage, reader, (all) => all);
      await expect(reading).rejects.toThrow('enough');
      const { bytes: read } = reader;
      await finished(stream);
      expect([encoding, reader.bytes]).toEqual([encoding, read]);
    }
  });

  test('refuses other encodings with 415, and names those that are taken', async () => {
    for (const encoding of ['deflate', 'br', 'gzip, gzip', 'gzip, identity', 'zstd, gzip', '']) {
      expect(await post(deflateSync(zeros(9)), encoding)).toMatch(/^415: Expected content-encoding to be gzip/);
    }
    expect(await post(zeros(9), 'identity')).toBe('9 bytes');
    const receiver = await start();
    const { status, headers } = await sendMultipart(receiver, zeros(9), { 'content-encoding': 'br' });
    expect([status, headers['accept-encoding']]).toEqual([415, zstdCompressSync ? 'gzip, zstd' : 'gzip']);
  });

  test.skipIf(zstdCompressSync !== undefined)('says of zstd which Node has it, where this one does not', async () => {
    expect(await post(zeros(9), 'zstd')).toMatch(/^415: .* or absent, got "zstd"; zstd needs Node 22\.15$/);
  });

  describe.skipIf(zstdCompressSync === undefined)('of zstd', () => {
    const zstd = (bytes: Buffer): Buffer => zstdCompressSync?.(bytes) ?? bytes;

    test('takes as many decompressed bytes as the limit says and no more', async () => {
      expect(await post(zstd(zeros(999)), 'zstd', limits)).toBe('999 bytes');
      expect(await post(zstd(zeros(1_000)), 'Zstd', limits)).toBe('1000 bytes');
      expect(await post(zstd(zeros(1_001)), 'zstd', limits)).toMatch(/^413: .* 1000 bytes when decompressed/);
    });

    test('takes no bomb, and nothing that is none', async () => {
      expect(await post(zstd(zeros(129 * 1024 * 1024)), 'zstd')).toMatch(/^413: .* when decompressed/);
      expect(await post(Buffer.from('hello'), 'zstd')).toMatch(/^400: The body is not valid zstd/);
    });

    test('takes a window of 8 MiB and no larger one', async () => {
      // RFC 8878, 3.1.1: magic number, descriptor, window descriptor (exponent, from 10, in the upper five bits), and one
      // block, the last, that is two zeros.
      const frame = (windowLog: number) =>
        Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, (windowLog - 10) << 3, (2 << 3) | 1, 0, 0, 0, 0]);
      expect(await post(frame(23), 'zstd')).toBe('2 bytes');
      expect(await post(frame(24), 'zstd')).toMatch(/^400: The body is not valid zstd/);
    });
  });

  test('refuses gzip that is cut short or none at all', async () => {
    const body = gzipSync(Buffer.from('hello'));
    expect(await post(body.subarray(0, -4), 'gzip')).toMatch(/^400: The body is not valid gzip/);
    expect(await post(Buffer.from('hello'), 'gzip')).toMatch(/^400: The body is not valid gzip/);
  });
});

test('a receiver stores what a gzip body holds, and nothing of one that unfolds without end', async () => {
  const receiver = await start();
  const bomb = gzipSync(multipart(part(`attachment.${ROOT}.a`, zeros(129 * 1024 * 1024))));
  expect(await sendMultipart(receiver, bomb, { 'content-encoding': 'gzip' })).toMatchObject({ status: 413 });
  const body = gzipSync(multipart(part(`post.${ROOT}`, makeRun())));
  expect(await sendMultipart(receiver, body, { 'content-encoding': 'gzip' })).toMatchObject({ status: 202 });
  expect(await receiver.runs()).toHaveLength(1);
});

test('a receiver answers 413 to a body that announces more than it takes, before it comes', async () => {
  const receiver = await start();
  const head = (length: number) =>
    [
      'POST /runs/multipart HTTP/1.1',
      `Host: ${new URL(receiver.url).host}`,
      `Content-Type: multipart/form-data; boundary=${BOUNDARY}`,
      `Content-Length: ${length}`,
      'Connection: close',
    ].join('\r\n');
  expect(await raw(receiver.url, `${head(64 * 1024 * 1024 + 1)}\r\n\r\n`)).toMatch(/^HTTP\/1.1 413 /);
});

test('a receiver answers a body that is wrong before the rest of it has come', async () => {
  const receiver = await start();
  const head = [
    'POST /runs/multipart HTTP/1.1',
    `Host: ${new URL(receiver.url).host}`,
    `Content-Type: multipart/form-data; boundary=${BOUNDARY}`,
    'Content-Length: 1000000',
    'Connection: close',
  ].join('\r\n');
  const first = `--${BOUNDARY}\r\nContent-Type: application/json\r\n\r\n`;
  expect(await raw(receiver.url, `${head}\r\n\r\n${first}`)).toMatch(/^HTTP\/1.1 400 .*Part 1 has no Content-Disp/s);
});
