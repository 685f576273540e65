import { EventEmitter } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { serialize } from '../../src/payload/serialize.ts';
import { LIMITS } from '../run/memory-sink.ts';

const read = (value: unknown, limits: Partial<typeof LIMITS> = {}): unknown =>
  JSON.parse(serialize(value, { ...LIMITS, ...limits }));

describe('what belongs to the web is told by what it is', () => {
  test('Headers, URLSearchParams and FormData are objects; what comes twice is a list', () => {
    const headers = new Headers([
      ['accept', '*/*'],
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['set-cookie', 'c=3'],
    ]);
    expect(read(headers)).toEqual({ accept: '*/*', 'set-cookie': ['a=1', 'b=2', 'c=3'] });
    expect(read(new URLSearchParams('a=1&b=2&a=3&__proto__=4'))).toEqual(
      JSON.parse('{"a":["1","3"],"b":"2","__proto__":"4"}'),
    );
    const form = new FormData();
    form.append('q', 'tea');
    form.append('file', new Blob(['abc'], { type: 'text/plain' }), 'a.txt');
    expect(read(form)).toEqual({
      q: 'tea',
      file: { type: 'File', byteLength: 3, mimeType: 'text/plain', name: 'a.txt' },
    });
  });

  test('of them at most as much as is kept is taken', () => {
    const query = new URLSearchParams('a=1&b=2&c=3');
    expect(read(query, { width: 3 })).toEqual({ a: '1', b: '2', c: '3' });
    expect(read(query, { width: 2 })).toMatchObject({
      a: '1',
      b: '2',
      '[Truncated]': expect.stringContaining('more keys'),
    });
  });

  test('Request and Response are told without their bodies, which stay unread', async () => {
    const request = new Request('http://localhost/a?b=c', { method: 'POST', body: 'text', headers: { accept: '*/*' } });
    const response = new Response('text', { status: 201, statusText: 'Created', headers: { etag: 'x' } });
    expect(read({ request, response })).toEqual({
      request: {
        type: 'Request',
        method: 'POST',
        url: 'http://localhost/a?b=c',
        headers: { accept: '*/*', 'content-type': 'text/plain;charset=UTF-8' },
      },
      response: {
        type: 'Response',
        status: 201,
        statusText: 'Created',
        url: '',
        headers: { 'content-type': 'text/plain;charset=UTF-8', etag: 'x' },
      },
    });
    expect([request.bodyUsed, response.bodyUsed]).toEqual([false, false]);
    expect([await request.text(), await response.text()]).toEqual(['text', 'text']);
  });

  test('Blob is its size and type', () => {
    expect(read(new Blob(['abc'], { type: 'image/png' }))).toEqual({
      type: 'Blob',
      byteLength: 3,
      mimeType: 'image/png',
    });
  });

  test('streams are their kind', () => {
    const { readable, writable } = new TransformStream();
    expect(read([readable, writable, new TransformStream()])).toEqual([
      '[ReadableStream]',
      '[WritableStream]',
      '[TransformStream]',
    ]);
    expect(readable.locked).toBe(false);
  });
});

describe('what is gone through step by step is not taken a step of', () => {
  test('generators and iterators', async () => {
    const steps: string[] = [];
    const sync = (function* () {
      steps.push('sync');
      yield 1;
    })();
    const async = (async function* () {
      steps.push('async');
      yield 1;
    })();
    const own = new (class {
      next = (): never => {
        throw new Error('was asked');
      };
      [Symbol.asyncIterator](): this {
        return this;
      }
    })();
    const list = [1, 2].values();
    const map = new Map([[1, 2]]).keys();
    expect(read([sync, async, own, list, map])).toEqual([
      '[Generator]',
      '[AsyncGenerator]',
      '[AsyncIterator]',
      '[Iterator]',
      '[Iterator]',
    ]);
    expect(steps).toEqual([]);
    expect([sync.next(), await async.next(), list.next(), map.next()].map(({ value }) => value)).toEqual([1, 1, 1, 1]);
  });

  test('a stream of Node', async () => {
    const stream = new PassThrough();
    stream.end('text');
    expect(read({ stream, socket: new Socket() })).toEqual({ stream: '[PassThrough]', socket: '[Socket]' });
    expect(stream.readableFlowing).toBe(null);
    expect((await stream.toArray()).join('')).toBe('text');
  });

  test('messages of HTTP, of which the head is told', () => {
    const request = new IncomingMessage(new Socket());
    Object.assign(request, { method: 'GET', url: '/a', headers: { host: 'b' } });
    const response = new ServerResponse(request);
    response.setHeader('etag', 'x');
    expect(read(request)).toEqual({
      type: 'IncomingMessage',
      method: 'GET',
      url: '/a',
      headers: { host: 'b' },
    });
    expect(read(response)).toEqual({ type: 'ServerResponse', statusCode: 200, headers: { etag: 'x' } });
  });
});

test('a graph of instances that all know one another is told within the limits', () => {
  class Node {
    readonly children: Node[] = [];
    readonly up: Node | undefined;
    readonly siblings: readonly Node[] | undefined;
    constructor(up?: Node) {
      this.up = up;
      this.siblings = up?.children;
      up?.children.push(this);
    }
  }
  const top = new Node();
  for (let n = 0; n < 20; n++) for (let m = 0, up = new Node(top); m < 20; m++) up = new Node(up);
  const text = serialize(top, { ...LIMITS, nodes: 1_000 });
  expect(text.match(/"children"/g)?.length).toBeLessThan(1_000);
  expect(text).toMatch(/\[Circular\].*\[Truncated: \d+ more items\]/);
});

test('an instance of a class is told by its own properties', () => {
  const emitter = Object.assign(new EventEmitter(), { name: 'a' });
  expect(read(emitter)).toMatchObject({ name: 'a', _eventsCount: 0 });
});
