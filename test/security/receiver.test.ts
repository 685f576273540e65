import http from 'node:http';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createReceiver } from '../../src/receiver.ts';
import {
  BOUNDARY,
  call,
  makeRun,
  multipart,
  part,
  ROOT,
  raw,
  sendJson,
  sendMultipart,
  sendParts,
  start,
} from '../receiver/wire.ts';
import { runRunspan } from '../support/program.ts';

describe('who can speak to a receiver', () => {
  const elsewhere = '0.0.0.0 :: [::] 10.0.0.1 localhost.evil.example 127.0.0.1.evil.example 127.0.0.1/24 2130706433 *';

  test.each(['', ...elsewhere.split(' ')])('it does not listen on %j [security 8]', async (host) => {
    await expect(createReceiver({ host })).rejects.toMatchObject({
      code: 'RUNSPAN_INVALID_OPTION',
      message: expect.stringContaining('loopback'),
    });
  });

  test('nobody does over another address of this machine [security 8]', async () => {
    const receiver = await start();
    const others = Object.values(networkInterfaces())
      .flatMap((all) => all ?? [])
      .filter(({ internal, family }) => !internal && family === 'IPv4');
    // Also without a network: an address of this machine beside the one it listens on.
    for (const { address } of [...others, { address: '127.0.0.2' }]) {
      const answer = await new Promise((resolve) => {
        const socket = connect(Number(new URL(receiver.url).port), address);
        socket
          .on('connect', () => resolve('connected'))
          .on('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
        onTestFinished(() => void socket.destroy());
      });
      expect(answer).toBe('ECONNREFUSED');
    }
  });

  test('the command listens at another address only with a key [security 8]', async () => {
    const { code, stdout, stderr } = await runRunspan(['dev', '--host', '0.0.0.0', '--port', '0']);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining('requires RUNSPAN_RECEIVER_KEY')]);
  });

  test.each([
    ['a form', 'application/x-www-form-urlencoded', 'a=b'],
    ['a form of text', 'text/plain', JSON.stringify(makeRun())],
    ['a beacon', 'text/plain;charset=UTF-8', JSON.stringify(makeRun())],
    ['a script that says nothing', '', JSON.stringify(makeRun())],
  ])('%s of a page writes nothing, even without an origin [security 8]', async (_, type, body) => {
    const receiver = await start();
    for (const path of ['/runs', '/runs/batch', '/runs/multipart']) {
      expect((await call(receiver.url + path, 'POST', body, { 'content-type': type })).status).toBe(415);
    }
    expect(await receiver.runs()).toEqual([]);
  });

  test('a form with files stores nothing, since its fields cannot have the type JSON [security 8]', async () => {
    const receiver = await start();
    const field = part(`post.${ROOT}`, makeRun(), []);
    const { status, body } = await sendParts(receiver, field);
    expect([status, body.detail]).toEqual([400, expect.stringContaining('application/json')]);
    const origin = { origin: 'https://evil.example' };
    expect(await sendMultipart(receiver, multipart(part(`post.${ROOT}`, makeRun())), origin)).toMatchObject({
      status: 403,
    });
    expect(await receiver.runs()).toEqual([]);
  });

  test('what is refused says neither who asked nor lets another origin read it [security 8]', async () => {
    const receiver = await start();
    const samePort = receiver.url.replace('127.0.0.1', 'evil.example');
    for (const origin of ['https://evil.example', 'null', 'file://', samePort]) {
      const { status, body, headers } = await call(`${receiver.url}/info`, 'GET', undefined, { origin });
      expect([status, body.detail]).toEqual([403, 'Pages of another origin may not send requests to this receiver']);
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  });
});

describe('what a receiver bounds', () => {
  test('time for a header, for a request and without a byte, bytes of a header, and connections [security 9]', async () => {
    const created = vi.spyOn(http, 'createServer');
    onTestFinished(() => created.mockRestore());
    vi.resetModules();
    vi.doMock('node:http', async (importActual) => {
      const actual = await importActual<typeof http>();
      return { ...actual, createServer: created };
    });
    onTestFinished(() => vi.doUnmock('node:http'));
    const { createReceiver: create } = await import('../../src/receiver.ts');
    const receiver = await create();
    onTestFinished(() => receiver.close());
    const server = created.mock.results[0]?.value;
    expect(created.mock.calls[0]?.[0]).toMatchObject({ maxHeaderSize: 16 * 1024 });
    const { headersTimeout, requestTimeout, timeout, maxConnections } = server;
    expect([headersTimeout, requestTimeout, timeout, maxConnections]).toEqual([10_000, 60_000, 120_000, 1_000]);
  });

  test('a body that unfolds a thousandfold, in gzip and in gzip of gzip [security 9]', async () => {
    const receiver = await start();
    const bomb = gzipSync(multipart(part(`attachment.${ROOT}.a`, Buffer.alloc(129 * 1024 * 1024))), { level: 9 });
    expect(bomb.length).toBeLessThan(192 * 1024);
    const zipped = { 'content-encoding': 'gzip' };
    expect(await sendMultipart(receiver, bomb, zipped)).toMatchObject({
      status: 413,
      body: { detail: expect.stringContaining('when decompressed') },
    });
    expect((await sendMultipart(receiver, gzipSync(bomb), zipped)).status).toBe(400);
    expect((await sendMultipart(receiver, gzipSync(bomb), { 'content-encoding': 'gzip, gzip' })).status).toBe(415);
    expect(await receiver.runs()).toEqual([]);
  });

  const nested = (levels: number): string => `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`;

  test.each<[string, number, (receiver: Awaited<ReturnType<typeof start>>) => Promise<{ status: number }>]>([
    ['parts', 413, (receiver) => sendParts(receiver, ...Array.from({ length: 1_001 }, () => part('x', {})))],
    [
      'bytes in the name of a part',
      400,
      (receiver) => sendParts(receiver, part(`attachment.${ROOT}.${'x'.repeat(1_000)}`, {})),
    ],
    [
      'bytes in the header of a part',
      400,
      (receiver) => sendParts(receiver, part('x', {}, [`X: ${'x'.repeat(17_000)}`])),
    ],
    [
      'characters in a boundary',
      400,
      (receiver) =>
        sendMultipart(receiver, Buffer.from('x'), {
          'content-type': `multipart/form-data; boundary=${'b'.repeat(71)}`,
        }),
    ],
    ['levels of JSON', 400, (receiver) => sendJson(receiver, 'POST', '/runs', nested(600))],
    ['a hundred thousand levels of JSON', 400, (receiver) => sendJson(receiver, 'POST', '/runs', nested(100_000))],
    ['values of JSON', 413, (receiver) => sendJson(receiver, 'POST', '/runs', `[${'1,'.repeat(2_000_001)}1]`)],
  ])('too many %s: refused, and the next request is taken [security 9]', async (_, status, send) => {
    const receiver = await start();
    expect((await send(receiver)).status).toBe(status);
    expect((await sendParts(receiver, part(`post.${ROOT}`, makeRun()))).status).toBe(202);
    expect(await receiver.runs()).toHaveLength(1);
  });

  test('a body that announces more than it takes is answered before it comes [security 9]', async () => {
    const receiver = await start();
    const head = [
      'POST /runs/multipart HTTP/1.1',
      `Host: ${new URL(receiver.url).host}`,
      `Content-Type: multipart/form-data; boundary=${BOUNDARY}`,
      `Content-Length: ${64 * 1024 * 1024 + 1}`,
      'Connection: close',
      '',
      '',
    ];
    expect(await raw(receiver.url, head.join('\r\n'))).toMatch(/^HTTP\/1.1 413 /);
  });
});
