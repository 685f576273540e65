import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import * as zlib from 'node:zlib';
import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { HttpError } from '#src/receiver/http/http-error.ts';
import { type BodyLimits, RequestBodies } from '#src/receiver/http/request-body.ts';
import { gate } from '../support/gate.ts';
import { listenInTest } from '../support/listen-in-test.ts';
import { startService } from './service.ts';
import { BOUNDARY, makeChild, makeRun, multipart, part, ROOT, raw, sendMultipart, start } from './wire.ts';

const { deflateSync, gzipSync } = zlib;
/** Defined from Node 22.15. */
const { zstdCompressSync } = zlib as { zstdCompressSync?: (bytes: Buffer) => Buffer };

const KIB = 1024;
const limits = { wireBytesMax: 100, decodedBytesMax: 1_000, inFlightBytesMax: 100 * KIB };
const zeros = (size: number) => Buffer.alloc(size);

/** Starts a server that responds with the size of the body, or with the error. */
async function startReader(given?: BodyLimits, bytesMax?: number): Promise<string> {
  const bodies = new RequestBodies(given);
  const server = createServer((incoming, response) => {
    bodies
      .read(incoming, 'acme', ({ length }) => length, bytesMax)
      .then(
        (length) => response.end(`${length} bytes`),
        (error) => response.end(error instanceof HttpError ? `${error.status}: ${error.detail}` : `thrown: ${error}`),
      );
  });
  return listenInTest(server);
}

async function send(url: string, body: Buffer | AsyncIterable<Buffer>, encoding?: string): Promise<string> {
  const headers = encoding === undefined ? {} : { 'content-encoding': encoding };
  return (await request(url, { method: 'POST', body: body as Buffer, headers, reset: true })).body.text();
}

async function post(body: Buffer | AsyncIterable<Buffer>, encoding?: string, given?: BodyLimits): Promise<string> {
  return send(await startReader(given), body, encoding);
}

async function* inChunks(bytes: Buffer, size = 10): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe('the size of a body', () => {
  test('is limited as sent, with and without a Content-Length', async () => {
    for (const body of [zeros, (size: number) => inChunks(zeros(size))]) {
      expect(await post(body(99), undefined, limits)).toBe('99 bytes');
      expect(await post(body(100), undefined, limits)).toBe('100 bytes');
      expect(await post(body(101), undefined, limits)).toBe('413: The body is larger than 100 bytes');
    }
  });

  const encodings: [string, (bytes: Buffer) => Buffer][] = [['GZIP', gzipSync]];
  if (zstdCompressSync !== undefined) encodings.push(['zstd', zstdCompressSync]);
  test.each(encodings)('is limited after decompression: %s', async (name, zip) => {
    expect(await post(zip(zeros(999)), name, limits)).toBe('999 bytes');
    expect(await post(zip(zeros(1_000)), name, limits)).toBe('1000 bytes');
    expect(await post(zip(zeros(1_001)), name, limits)).toMatch(/^413: The body is larger than 1000 bytes when decom/);
    expect(await post(Buffer.from('hello'), name)).toMatch(/^400: The body is not valid (gzip|zstd): /);
  });

  test('is limited as sent, also if it is compressed', async () => {
    // Stored blocks without content (RFC 1951, 3.2.4).
    const blocks = Buffer.alloc(100, Buffer.from([0, 0, 0, 0xff, 0xff]));
    const empty = Buffer.concat([gzipSync('').subarray(0, 10), blocks]);
    expect(await post(inChunks(empty), 'gzip', limits)).toBe('413: The body is larger than 100 bytes');
  });

  test('is limited further by the route, before and after decompression', async () => {
    const url = await startReader(undefined, 50);
    expect(await send(url, zeros(50))).toBe('50 bytes');
    expect(await send(url, zeros(51))).toMatch(/^413: /);
    expect(await send(url, gzipSync(zeros(50)), 'gzip')).toBe('50 bytes');
    expect(await send(url, gzipSync(zeros(51)), 'gzip')).toMatch(/^413: /);
  });

  test('is refused according to its Content-Length before it arrives [security 9]', async () => {
    const receiver = await start();
    const head = [
      'POST /runs/multipart HTTP/1.1',
      `Host: ${new URL(receiver.url).host}`,
      `Content-Type: multipart/form-data; boundary=${BOUNDARY}`,
      `Content-Length: ${64 * 1024 * 1024 + 1}`,
      'Connection: close',
    ];
    expect(await raw(receiver.url, `${head.join('\r\n')}\r\n\r\n`)).toMatch(/^HTTP\/1.1 413 /);
  });
});

describe('the bytes of all requests', () => {
  const given = { wireBytesMax: 100 * KIB, decodedBytesMax: 1_000 * KIB, inFlightBytesMax: 100 * KIB };

  test('are limited, with 429 beyond the limit', async () => {
    const url = await startReader(given);
    const finished = gate();
    async function* slow(): AsyncGenerator<Buffer> {
      yield zeros(60 * KIB);
      await finished;
    }
    const first = send(url, slow());
    await expect.poll(() => send(url, zeros(41 * KIB))).toMatch(/^429: /);
    expect(await send(url, zeros(30 * KIB))).toBe('30720 bytes');
    finished.open();
    expect(await first).toBe('61440 bytes');
    expect(await send(url, zeros(90 * KIB))).toBe('92160 bytes');
  });

  test('include decompressed bytes, and at most four times the size of a body in tiny chunks', async () => {
    const url = await startReader(given);
    expect(await send(url, gzipSync(zeros(90 * KIB)), 'gzip')).toBe('92160 bytes');
    expect(await send(url, gzipSync(zeros(101 * KIB)), 'gzip')).toMatch(/^429: /);
    expect(await send(url, inChunks(zeros(15 * KIB), 1))).toBe('15360 bytes');
    expect(await send(url, inChunks(zeros(25 * KIB), 1))).toMatch(/^429: /);
  });

  test('of feedback with a token have a limit of their own', async () => {
    const { url } = await start();
    const post = (path: string, body: string | Readable) =>
      request(new URL(path, url), { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    await post('/runs', JSON.stringify(makeRun({ inputs: {} })));
    const { body } = await post('/feedback/tokens', JSON.stringify({ run_id: ROOT, feedback_key: 'liked' }));
    const token = (await body.json()) as { url: string };
    const finished = gate();
    async function* slow(): AsyncGenerator<Buffer> {
      yield zeros(1_020 * KIB);
      await finished;
    }
    const sent = Array.from({ length: 17 }, () => post(token.url, Readable.from(slow())));
    expect((await Promise.race(sent)).statusCode).toBe(429);
    expect((await post('/runs', JSON.stringify(makeChild({ inputs: {} })))).statusCode).toBe(202);
    finished.open();
    await Promise.all(sent);
  });

  test('of a tenant are at most half while another was refused in the last minute', async () => {
    const { url, addKey } = await startService();
    const keyOf = (tenant: string, permission: 'write' | 'metrics') => ({
      'x-api-key': addKey({ tenant, permission }).text,
    });
    const [acme, bolt, metrics] = [keyOf('acme', 'write'), keyOf('bolt', 'write'), keyOf('bolt', 'metrics')];
    const send = async (key: object, body: Buffer | Readable) => {
      const headers = { ...key, 'content-type': 'application/json', 'content-encoding': 'gzip' };
      return (await request(new URL('/runs', url), { method: 'POST', headers, body })).statusCode;
    };
    const [end, vast, small] = [
      gate(),
      gzipSync(zeros(100 * KIB * KIB)),
      gzipSync(JSON.stringify(makeRun({ inputs: {} }))),
    ];
    async function* slow(): AsyncGenerator<Buffer> {
      yield vast.subarray(0, -1);
      await end;
      yield vast.subarray(-1);
    }
    const sent = [send(acme, Readable.from(slow())), send(acme, Readable.from(slow()))];
    const receivedBytes = async () => {
      const { body } = await request(new URL('/metrics', url), { headers: metrics });
      return Number(/received_bytes_total (\d+)/.exec(await body.text())?.[1]);
    };
    await expect.poll(receivedBytes, { timeout: 20_000 }).toBe(2 * 100 * KIB * KIB);
    expect(await send(acme, small)).toBe(202);
    expect(await send(bolt, vast)).toBe(429);
    expect([await send(bolt, small), await send(acme, small)]).toEqual([202, 429]);
    end.open();
    expect(await Promise.all(sent)).toEqual([400, 400]);
    expect(await send(acme, small)).toBe(202);
  });

  test('exclude bodies that were refused or cut short', async () => {
    const url = await startReader(given);
    async function* failing(): AsyncGenerator<Buffer> {
      yield zeros(60 * KIB);
      throw new Error('cut short');
    }
    for (const encoding of [undefined, 'gzip'])
      await expect(send(url, failing(), encoding)).rejects.toThrow('cut short');
    for (let round = 0; round < 5; round += 1) {
      expect(await send(url, zeros(60 * KIB), 'gzip')).toMatch(/^400: /);
      expect(await send(url, inChunks(zeros(101 * KIB), KIB))).toMatch(/^4(13|29): /);
      expect(await send(url, gzipSync(zeros(200 * KIB)), 'gzip')).toMatch(/^429: /);
    }
    expect(await send(url, zeros(90 * KIB))).toBe('92160 bytes');
  });
});

describe('the encoding of a body', () => {
  test('may be gzip, zstd on Node 22.15, or absent', async () => {
    for (const encoding of ['deflate', 'br', 'gzip, gzip', 'gzip, identity', 'zstd, gzip', 'x-zstd']) {
      expect(await post(deflateSync(zeros(9)), encoding)).toMatch(/^415: Expected content-encoding to be gzip/);
    }
    for (const encoding of ['identity', '', ' ']) expect(await post(zeros(9), encoding)).toBe('9 bytes');
    expect(await post(gzipSync(zeros(9)), 'X-Gzip')).toBe('9 bytes');
    const receiver = await start();
    const { status, headers } = await sendMultipart(receiver, zeros(9), { 'content-encoding': 'br' });
    expect([status, headers['accept-encoding']]).toEqual([415, zstdCompressSync ? 'gzip, zstd' : 'gzip']);
    const body = gzipSync(multipart(part(`post.${ROOT}`, makeRun())));
    expect((await sendMultipart(receiver, body, { 'content-encoding': 'gzip' })).status).toBe(202);
  });

  test.skipIf(zstdCompressSync !== undefined)('names the Node version that zstd requires', async () => {
    expect(await post(zeros(9), 'zstd')).toMatch(/^415: .* or absent, got "zstd"; zstd requires Node 22\.15$/);
  });

  test.skipIf(zstdCompressSync === undefined)('limits the window of zstd to 8 MiB', async () => {
    // RFC 8878, 3.1.1: magic number, descriptor, window descriptor (exponent from 10 in the upper five bits), and one
    // last block of two zeros.
    const frame = (windowLog: number) =>
      Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, (windowLog - 10) << 3, (2 << 3) | 1, 0, 0, 0, 0]);
    expect(await post(frame(23), 'zstd')).toBe('2 bytes');
    expect(await post(frame(24), 'zstd')).toMatch(/^400: The body is not valid zstd/);
  });

  test('makes a truncated body invalid', async () => {
    const body = gzipSync(Buffer.from('hello'));
    expect(await post(body.subarray(0, -4), 'gzip')).toMatch(/^400: The body is not valid gzip/);
  });
});

test('a body of one-byte chunks is complete', async () => {
  const bytes = Buffer.from(Array.from({ length: 5_000 }, (_, index) => index % 256));
  const bodies = new RequestBodies();
  const server = createServer((incoming, response) => {
    void bodies.read(incoming, 'acme', (body) => response.end(body));
  });
  const reply = await request(await listenInTest(server), {
    method: 'POST',
    body: Readable.from(inChunks(bytes, 1)),
    reset: true,
  });
  expect(Buffer.from(await reply.body.arrayBuffer())).toEqual(bytes);
});
