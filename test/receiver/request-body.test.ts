import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { deflateSync, gzipSync } from 'node:zlib';
import { request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Refusal } from '../../src/receiver/refusal.ts';
import { type BodyLimits, readBody } from '../../src/receiver/request-body.ts';
import { BOUNDARY, makeRun, multipart, part, ROOT, raw, sendMultipart, start } from './wire.ts';

/** Posts to a server that answers with the size of the body, or with the refusal. */
async function post(body: Buffer | AsyncIterable<Buffer>, encoding?: string, limits?: BodyLimits): Promise<string> {
  const server = createServer((incoming, response) => {
    readBody(incoming, limits).then(
      (bytes) => response.end(`${bytes.length} bytes`),
      (error) => response.end(error instanceof Refusal ? `${error.status}: ${error.detail}` : `thrown: ${error}`),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise((resolve) => server.close(() => resolve())));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const headers = encoding === undefined ? {} : { 'content-encoding': encoding };
  return (await request(url, { method: 'POST', body: body as Buffer, headers, reset: true })).body.text();
}

async function* inChunks(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 10) yield bytes.subarray(at, at + 10);
}

const limits = { wireBytesMax: 100, decodedBytesMax: 1_000 };
const zeros = (size: number) => Buffer.alloc(size);

describe('readBody', () => {
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
