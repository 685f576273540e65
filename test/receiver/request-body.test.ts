import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { deflateSync, gzipSync } from 'node:zlib';
import { request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Refusal } from '../../src/receiver/refusal.ts';
import { type BodyLimits, RequestBodies } from '../../src/receiver/request-body.ts';
import { BOUNDARY, makeRun, multipart, part, ROOT, raw, sendMultipart, start } from './wire.ts';

/** A server that answers with the size of a body, or with the refusal. */
async function listen(limits?: BodyLimits): Promise<string> {
  const bodies = new RequestBodies(limits);
  const server = createServer((incoming, response) => {
    bodies
      .read(incoming, ({ length }) => length)
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

async function* inChunks(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 10) yield bytes.subarray(at, at + 10);
}

const limits = { wireBytesMax: 100, decodedBytesMax: 1_000, inFlightBytesMax: 2_000 };
const zeros = (size: number) => Buffer.alloc(size);

/** The stream as a request without headers. */
const incomingOf = <Stream extends Readable>(stream: Stream) =>
  Object.assign(stream, { headers: {} }) as unknown as Stream & IncomingMessage;
const sizeOf = ({ length }: Buffer) => length;

/** The bytes in gzip of exactly that length, by a file name of any length in its header. */
function gzipTo(wireBytes: number, bytes: Buffer): Buffer {
  const gzip = gzipSync(bytes);
  const name = Buffer.alloc(wireBytes - gzip.length, 'n');
  name[name.length - 1] = 0;
  gzip[3] = 8;
  return Buffer.concat([gzip.subarray(0, 10), name, gzip.subarray(10)]);
}

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

  test('takes a mebibyte however small it was on the wire, and beyond it 100 times what came', async () => {
    const mebibyte = 1024 * 1024;
    for (const size of [mebibyte - 1, mebibyte])
      expect(await post(gzipSync(zeros(size)), 'gzip')).toBe(`${size} bytes`);
    const refused = '413: The body is more than 100 times larger when decompressed';
    expect(await post(gzipSync(zeros(mebibyte + 1)), 'gzip')).toBe(refused);
    for (const size of [1_999_999, 2_000_000]) {
      expect(await post(gzipTo(20_000, zeros(size)), 'gzip')).toBe(`${size} bytes`);
    }
    expect(await post(gzipTo(20_000, zeros(2_000_001)), 'gzip')).toBe(refused);
  });

  test('takes so many bytes of all requests together, and again when one of them has been answered', async () => {
    const bodies = new RequestBodies({ wireBytesMax: 100, decodedBytesMax: 1_000, inFlightBytesMax: 100 });
    const first = incomingOf(new PassThrough());
    const firstRead = bodies.read(first, sizeOf);
    await new Promise((resolve) => first.once('data', resolve).write(zeros(60)));
    const read = (size: number) => bodies.read(incomingOf(Readable.from([zeros(size)])), sizeOf);
    expect(await read(39)).toBe(39);
    expect(await read(40)).toBe(40);
    await expect(read(41)).rejects.toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    first.end();
    expect(await firstRead).toBe(60);
    expect(await read(100)).toBe(100);
  });

  test('counts decompressed bytes among those in flight', async () => {
    const small = { wireBytesMax: 100, decodedBytesMax: 1_000, inFlightBytesMax: 500 };
    const body = gzipSync(zeros(500));
    expect(await post(body, 'gzip', { ...small, inFlightBytesMax: 500 + body.length })).toBe('500 bytes');
    expect(await post(body, 'gzip', { ...small, inFlightBytesMax: 499 + body.length })).toMatch(/^503: /);
  });

  test('frees the bytes of a body that was refused or cut short', async () => {
    const url = await listen({ wireBytesMax: 100, decodedBytesMax: 1_000, inFlightBytesMax: 100 });
    for (let round = 0; round < 5; round += 1) {
      expect(await send(url, zeros(60), 'gzip')).toMatch(/^400: /);
      expect(await send(url, inChunks(zeros(101)))).toMatch(/^413: /);
      expect(await send(url, gzipSync(zeros(200)), 'gzip')).toMatch(/^503: /);
    }
    expect(await send(url, zeros(100))).toBe('100 bytes');
  });

  test('refuses other encodings with 415', async () => {
    for (const encoding of ['deflate', 'br', 'gzip, gzip']) {
      expect(await post(deflateSync(zeros(9)), encoding)).toMatch(/^415: .*gzip or absent/);
    }
    expect(await post(zeros(9), 'identity')).toBe('9 bytes');
  });

  test('refuses gzip that is cut short or none at all', async () => {
    const body = gzipSync(Buffer.from('hello'));
    expect(await post(body.subarray(0, -4), 'gzip')).toMatch(/^400: The body is no whole gzip/);
    expect(await post(Buffer.from('hello'), 'gzip')).toMatch(/^400: The body is no whole gzip/);
  });
});

test('a receiver stores what a gzip body holds, and nothing of one that unfolds without end', async () => {
  const receiver = await start();
  const bomb = gzipSync(zeros(129 * 1024 * 1024));
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
