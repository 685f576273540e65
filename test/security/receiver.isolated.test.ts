import http from 'node:http';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { multipart, part, ROOT, sendMultipart, start } from '../receiver/wire.ts';

test('a receiver listens only on one loopback address [security 8]', async () => {
  const receiver = await start();
  const others = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4');
  // 127.0.0.2 exists on machines without a network too.
  for (const { address } of [...others, { address: '127.0.0.2' }]) {
    const answer = await new Promise((resolve) => {
      const socket = connect(Number(new URL(receiver.url).port), address);
      socket.on('connect', () => resolve('connected')).on('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
      onTestFinished(() => void socket.destroy());
    });
    expect(answer).toBe('ECONNREFUSED');
  }
});

describe('a receiver limits', () => {
  test('the time of a request and the bytes of its header [security 9]', async () => {
    const created = vi.spyOn(http, 'createServer');
    vi.resetModules();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    vi.doMock('node:http', async (importActual) => {
      const actual = await importActual<typeof http>();
      return { ...actual, createServer: created };
    });
    onTestFinished(() => vi.doUnmock('node:http'));
    const { createReceiver: create } = await import('#src/receiver.ts');
    const receiver = await create();
    onTestFinished(() => receiver.close());
    const server = created.mock.results[0]?.value;
    expect(created.mock.calls[0]?.[0]).toMatchObject({ maxHeaderSize: 64 * 1024 });
    const { headersTimeout, timeout } = server;
    expect([headersTimeout, timeout]).toEqual([10_000, 120_000]);

    const { host, port } = new URL(receiver.url);
    const socket = connect(Number(port), '127.0.0.1');
    const chunks: string[] = [];
    socket.on('data', (chunk) => chunks.push(String(chunk)));
    const receivedChunk = () => new Promise((resolve) => socket.once('data', resolve));
    socket.write(`POST /none HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 2\r\n\r\n1`);
    await receivedChunk();
    vi.advanceTimersByTime(59_999);
    // A response to the first request would arrive before the response to another one.
    expect((await fetch(`${receiver.url}/info`)).status).toBe(200);
    expect(chunks).toEqual([expect.stringContaining('HTTP/1.1 404 ')]);
    const next = receivedChunk();
    vi.advanceTimersByTime(1);
    await next;
    expect(chunks[1]).toContain('HTTP/1.1 408 ');
    await new Promise((resolve) => socket.once('close', resolve));
  });

  test('the size of a body after gzip decompression, and rejects nested gzip [security 9]', async () => {
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
});
