import { getEventListeners, once } from 'node:events';
import { createReadStream, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { HttpClient, type HttpRequest } from '../../src/http/client.ts';
import { temporaryFolder } from '../support/folders.ts';
import { serve } from './server.ts';

const GET: HttpRequest = { method: 'GET', path: '/' };

function makeClient(endpoint: string, requestTimeoutMs = 20_000): HttpClient {
  const options = { headers: { 'x-api-key': 'secret' }, connectTimeoutMs: 5_000, requestTimeoutMs };
  const client = new HttpClient({ endpoint: new URL(endpoint), ...options });
  onTestFinished(() => client.destroy());
  return client;
}

test('an answer is there as soon as its head has come, and its body is read after that, however long it is', async () => {
  const { url } = await serve((_, response) => response.writeHead(206, { 'X-A': 'b' }).end('x'.repeat(300_000)));
  const { status, headers, body } = await makeClient(url).open(GET);
  expect([status, headers['x-a']]).toEqual([206, 'b']);
  expect((await text(body)).length).toBe(300_000);
});

test('the deadline is over with the head: a body may take longer', async () => {
  const { url, server } = await serve((request, response) => {
    if (request.url === '/first') return response.write('a', () => server.emit('begun', response));
    return undefined;
  });
  const begun = once(server, 'begun');
  const client = makeClient(url, 60);
  const { body } = await client.open({ ...GET, path: '/first' });
  const [response] = await begun;
  // Another request of the same deadline has to have ended meanwhile.
  await expect(client.open(GET)).rejects.toThrow('no answer within 60 ms');
  response.end('b');
  expect(await text(body)).toBe('ab');
});

test('a request has the deadline that it asks for, longer or shorter than that of the client', async () => {
  const { url } = await serve(() => {});
  const both = [makeClient(url, 10).open({ ...GET, timeoutMs: 50 }), makeClient(url).open({ ...GET, timeoutMs: 50 })];
  const messages = await Promise.all(both.map((opened) => opened.catch((error: Error) => error.message)));
  expect(messages).toEqual(['no answer within 50 ms', 'no answer within 50 ms']);
});

test.each(['before', 'within'])('a signal ends it %s the body with its own reason, and is let go of', async (when) => {
  const reason = new Error('enough');
  const controller = new AbortController();
  const { url } = await serve((_, response) => {
    if (when === 'before') controller.abort(reason);
    else response.write('a');
  });
  const opened = makeClient(url).open({ ...GET, signal: controller.signal });
  if (when === 'before') await expect(opened).rejects.toBe(reason);
  else {
    const { body } = await opened;
    controller.abort(reason);
    await expect(text(body)).rejects.toBe(reason);
  }
  expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
});

test('a signal is let go of when the body has been read, or is destroyed', async () => {
  const { signal } = new AbortController();
  const { url } = await serve((_, response) => response.end('a'));
  const client = makeClient(url);
  // Nobody listens to the error of a body that is destroyed.
  const destroyed = (body: Readable) => new Promise((resolve) => void body.destroy().on('close', resolve));
  for (const leave of [text, destroyed]) {
    const { body } = await client.open({ ...GET, signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await leave(body);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  }
});

test('a body that breaks off fails, and so does one whose client is destroyed', async () => {
  const { url } = await serve((request, response) => {
    response.write('a', () => (request.url === '/break' ? request.socket.resetAndDestroy() : undefined));
  });
  const client = makeClient(url);
  await expect(text((await client.open({ ...GET, path: '/break' })).body)).rejects.toThrow();
  const { body } = await client.open(GET);
  const reading = expect(text(body)).rejects.toThrow('the client was closed');
  await Promise.all([reading, client.destroy()]);
});

test('a stream goes as it is, with the length that is given', async () => {
  const { url, seen } = await serve();
  const stream = Readable.from([Buffer.from('ab'), Buffer.from('c')]);
  await makeClient(url).open({ method: 'PUT', path: '/up', stream: { stream, bytes: 3 } });
  expect(seen).toMatchObject([{ method: 'PUT', url: '/up', body: 'abc', headers: { 'content-length': '3' } }]);
});

test.each([2, 4])('a stream of 3 bytes that is said to have %i is not taken for sent', async (bytes) => {
  const { url, seen } = await serve();
  const stream = Readable.from([Buffer.from('abc')]);
  await expect(makeClient(url).open({ method: 'PUT', path: '/', stream: { stream, bytes } })).rejects.toThrow();
  expect(seen).toEqual([]);
});

test('a stream is closed when its request does not come about', async () => {
  const folder = temporaryFolder();
  onTestFinished(folder.remove);
  const file = join(folder.path, 'source');
  writeFileSync(file, 'abc');
  const source = createReadStream(file);
  const closed = once(source, 'close');
  const signal = AbortSignal.abort(new Error('no'));
  const client = makeClient('http://127.0.0.1:9');
  const request: HttpRequest = { method: 'PUT', path: '/', stream: { stream: source, bytes: 3 }, signal };
  await expect(client.open(request)).rejects.toThrow('no');
  await closed;
});

test('a stream is closed when it is answered before it has ended, and its connection is too', async () => {
  const { server, url } = await serve();
  server.removeAllListeners('request');
  server.on('request', (_, response) => response.writeHead(413).end());
  const endless = new Readable({ read() {} });
  const closed = new Promise((resolve) => void endless.on('close', resolve));
  endless.push('x');
  const client = makeClient(url);
  const { status } = await client.open({ method: 'PUT', path: '/', stream: { stream: endless, bytes: 1_000 } });
  expect(status).toBe(413);
  await client.destroy();
  await closed;
});
