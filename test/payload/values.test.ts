import { EventEmitter } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { serialize } from '#src/payload/serialize.ts';
import { revokedProxy, throwingProxy } from '../base/hostile.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { LIMITS } from '../run/memory-sink.ts';
import { polluted } from '../support/pollution.ts';

const write = (value: unknown, limits: Partial<typeof LIMITS> = {}): string =>
  serialize(value, { ...LIMITS, ...limits });

/** The value as the service receives it. */
const read = (value: unknown, limits: Partial<typeof LIMITS> = {}): unknown => JSON.parse(write(value, limits));

const throws = (thrown: unknown) => (): never => {
  throw thrown;
};
const fails = throws(new Error('no'));

const failingAt = <Target extends object>(target: Target, key: PropertyKey, get = fails): Target =>
  Object.defineProperty(target, key, { enumerable: true, get });

const headers = new Headers([
  ['accept', '*/*'],
  ['set-cookie', 'a=1'],
  ['set-cookie', 'b=2'],
]);
const form = new FormData();
form.append('q', 'tea');
form.append('file', new Blob(['abc'], { type: 'text/plain' }), 'a.txt');
const mixedKeys = new Map<unknown, unknown>([
  ['a', 1],
  [{ k: 1n }, new Map([['b', 2]])],
]);
const textKeys = new Map(Object.entries({ a: 1, constructor: { b: 2 } }));
const shared = { a: 1n };

describe('a value that JSON cannot represent is recorded as text or plain data:', () => {
  test.each<[string, unknown, unknown]>([
    ['a bigint', 123n, '123n'],
    ['a symbol', Symbol('mark'), 'Symbol(mark)'],
    ['a function', function work() {}, '[Function work]'],
    ['a function without a name', (() => () => {})(), '[Function anonymous]'],
    ['a class', class Job {}, '[Function Job]'],
    ['a promise', Promise.resolve(1), '[Promise]'],
    ['a date', new Date(Date.UTC(2026, 10, 20, 7, 22, 40, 5)), '2026-11-20T07:22:40.005Z'],
    ['an invalid date', [new Date(Number.NaN)], ['Invalid Date']],
    ['a boxed text', new String('text'), 'text'],
    ['a boxed number', new Number(Number.NaN), 'NaN'],
    ['a boxed bigint', Object(1n), '1n'],
    ['undefined', { a: undefined, b: [undefined, 1] }, { b: [null, 1] }],
    ['non-finite numbers', [Number.NaN, 1 / 0, -1 / 0, -0], ['NaN', 'Infinity', '-Infinity', 0]],
    ['a regular expression', /a+/gi, '/a+/gi'],
    ['a URL', new URL('https://example.com/a?b=c#d'), 'https://example.com/a?b=c#d'],
    ['a URL with a password', new URL('https://me:secret@example.com/a'), 'https://example.com/a'],
    ['a Map with text keys', textKeys, { a: 1, constructor: { b: 2 } }],
    [
      'a Map with other keys',
      mixedKeys,
      [
        ['a', 1],
        [{ k: '1n' }, { b: 2 }],
      ],
    ],
    ['a Set', new Set([1, 'a', new Set([2n])]), [1, 'a', ['2n']]],
    ['headers', headers, { accept: '*/*', 'set-cookie': ['a=1', 'b=2'] }],
    ['a query', new URLSearchParams('a=1&b=2&a=3'), { a: ['1', '3'], b: '2' }],
    ['a form', form, { q: 'tea', file: { type: 'File', byteLength: 3, mimeType: 'text/plain', name: 'a.txt' } }],
    ['a Blob', new Blob(['abc'], { type: 'image/png' }), { type: 'Blob', byteLength: 3, mimeType: 'image/png' }],
    [
      'an instance of a class',
      Object.assign(new EventEmitter(), { name: 'a' }),
      expect.objectContaining({ name: 'a' }),
    ],
    ['an object in two places', { x: shared, y: [shared] }, { x: { a: '1n' }, y: [{ a: '1n' }] }],
    ['a proxy', [new Proxy({ a: 1 }, {}), new Proxy([1, { a: 2n }], {})], [{ a: 1 }, [1, { a: '2n' }]]],
    [
      'a revoked proxy',
      { bad: revokedProxy(), list: revokedProxy([]), a: 1 },
      { bad: '[Proxy]', list: '[Proxy]', a: 1 },
    ],
    ['a throwing proxy', [throwingProxy(['ownKeys']), throwingProxy(['get']), 1], ['[Proxy]', '[Proxy]', 1]],
    ['a revoked function', revokedProxy(() => {}), expect.stringMatching(/^\[Function \[Threw: /)],
    ['a throwing getter', failingAt({ good: 1 }, 'bad'), { good: 1, bad: '[Threw: no]' }],
    ['a getter that throws null', failingAt({ good: 1 }, 'bad', throws(null)), { good: 1, bad: '[Threw: null]' }],
    ['a throwing item', Object.defineProperty([1, 2], 1, { get: fails }), [1, '[Threw: no]']],
    ['toJSON', { a: { toJSON: () => ({ b: 1n, toJSON: 'text' }) } }, { a: { b: '1n', toJSON: 'text' } }],
    ['toJSON without a result', { a: { toJSON: () => undefined }, b: 1 }, { b: 1 }],
    ['toJSON of a list', Object.assign([1], { toJSON: () => [2n] }), ['2n']],
    ['a toJSON that throws', { bad: { toJSON: fails }, good: 1 }, { bad: '[Threw: no]', good: 1 }],
  ])('%s', (_, value, expected) => {
    expect(read(value)).toEqual(expected);
  });

  test('Request and Response without their bodies, which stay unread', async () => {
    const request = new Request('http://localhost/a?b=c', { method: 'POST', body: 'text', headers: { accept: '*/*' } });
    const response = new Response('text', { status: 201, statusText: 'Created', headers: { etag: 'x' } });
    const type = { 'content-type': 'text/plain;charset=UTF-8' };
    const { url, method } = request;
    expect(read({ request, response })).toEqual({
      request: { type: 'Request', method, url, headers: { accept: '*/*', ...type } },
      response: { type: 'Response', status: 201, statusText: 'Created', url: '', headers: { ...type, etag: 'x' } },
    });
    expect([await request.text(), await response.text()]).toEqual(['text', 'text']);
  });

  test('the messages of node:http without their bodies', () => {
    const request = new IncomingMessage(new Socket());
    Object.assign(request, { method: 'GET', url: '/a', headers: { host: 'b' } });
    const response = new ServerResponse(request).setHeader('etag', 'x');
    expect(read([request, response])).toEqual([
      { type: 'IncomingMessage', method: 'GET', url: '/a', headers: { host: 'b' } },
      { type: 'ServerResponse', statusCode: 200, headers: { etag: 'x' } },
    ]);
  });
});

describe('a circular reference is cut at its first repetition,', () => {
  test('at any distance', () => {
    const value: Record<string, unknown> = { name: 'a' };
    value.self = value;
    value.list = [{ up: value }];
    expect(read(value)).toEqual({ name: 'a', self: '[Circular]', list: [{ up: '[Circular]' }] });
  });

  test('also through maps, sets, errors and toJSON', () => {
    const map = new Map<string, unknown>();
    map.set('self', map);
    const set = new Set<unknown>();
    set.add(set);
    const error = new Error('no');
    error.cause = error;
    const json = { toJSON: () => ({ json }) };
    expect(read([map, set, error, json])).toMatchObject([
      { self: '[Circular]' },
      ['[Circular]'],
      { message: 'no', cause: '[Circular]' },
      { json: '[Circular]' },
    ]);
  });

  test('also in a graph of instances with references to each other', () => {
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
    const text = write(top, { nodes: 1_000 });
    expect(text.match(/"children"/g)?.length).toBeLessThan(1_000);
    expect(text).toMatch(/\[Circular\].*\[Truncated: \d+ more items\]/);
  });
});

describe('an error', () => {
  test('is recorded with name, message, stack, cause and own properties', () => {
    const error = Object.assign(new TypeError('no', { cause: { code: 1n } }), { stack: 'the stack', status: 503 });
    const expected = { name: 'TypeError', message: 'no', stack: 'the stack', cause: { code: '1n' }, status: 503 };
    expect(read(error)).toEqual(expected);
    const both = new AggregateError([new Error('one'), 'two'], 'both');
    expect(read(both)).toMatchObject({ name: 'AggregateError', message: 'both', errors: [{ message: 'one' }, 'two'] });
  });

  test('with a field that throws keeps the others', () => {
    const error = Object.assign(failingAt(new Error('x'), 'message'), { stack: 's' });
    expect(read(error)).toEqual({ name: 'Error', message: '[Threw: no]', stack: 's' });
  });
});

describe('binary data', () => {
  test.each<[string, unknown, unknown]>([
    ['Uint8Array', new Uint8Array([1, 2, 3]), { type: 'Uint8Array', byteLength: 3, base64: 'AQID' }],
    ['Buffer', Buffer.from('hi'), { type: 'Buffer', byteLength: 2, base64: 'aGk=' }],
    ['ArrayBuffer', new Uint8Array([255]).buffer, { type: 'ArrayBuffer', byteLength: 1, base64: '/w==' }],
    ['DataView', new DataView(new ArrayBuffer(2)), { type: 'DataView', byteLength: 2, base64: 'AAA=' }],
    ['Float64Array', new Float64Array([1]), { type: 'Float64Array', byteLength: 8, base64: 'AAAAAAAA8D8=' }],
    ['SharedArrayBuffer', new SharedArrayBuffer(1), { type: 'SharedArrayBuffer', byteLength: 1, base64: 'AA==' }],
    ['a part', new Uint8Array(5).fill(2).subarray(1, 3), { type: 'Uint8Array', byteLength: 2, base64: 'AgI=' }],
    ['an empty one', new Uint8Array(), { type: 'Uint8Array', byteLength: 0, base64: '' }],
  ])('%s is its type, length and bytes', (_, value, expected) => {
    expect(read(value)).toEqual(expected);
  });

  test.each([
    [1_023, 1_364],
    [1_024, 1_368],
    [1_025, 1_368],
    [1_000_000, 1_368],
  ])('of %i bytes is cut at 1 KiB', (byteLength, expected) => {
    const { base64, ...rest } = read(new Uint8Array(byteLength)) as { base64: string };
    expect(base64).toHaveLength(expected);
    expect(rest).toEqual({ type: 'Uint8Array', byteLength });
  });

  test('that was transferred does not affect other values', () => {
    const gone = new Uint8Array(3);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    expect(read({ gone, good: 1 })).toMatchObject({ good: 1 });
  });
});

describe('code of the application', () => {
  test('runs once for toJSON, and toJSON of its result is not called', () => {
    let calls = 0;
    const value = { toJSON: () => ({ toJSON: 'kept', calls: ++calls }) };
    expect(read([value, Object.assign([1], { toJSON: () => ++calls })])).toEqual([{ toJSON: 'kept', calls: 1 }, 2]);
    const endless = (): object => ({ toJSON: endless });
    expect(read(endless())).toEqual({});
  });

  test('runs for no more values than the limits keep', () => {
    let calls = 0;
    const value: object = {};
    for (let n = 0; n < 30_000; n++) {
      Object.defineProperty(value, `k${n}`, { enumerable: true, get: () => ++calls });
    }
    expect(read(value)).toMatchObject({ k9999: calls, '[Truncated]': '20000 more keys' });
    expect(calls).toBeLessThanOrEqual(20_000);
    const endless = (): object => ({
      get next() {
        calls++;
        return endless();
      },
    });
    calls = 0;
    expect(write(endless(), { depth: 4 })).toBe('{"next":{"next":{"next":{"next":"[Truncated: too deep]"}}}}');
    expect(calls).toBeLessThanOrEqual(9);
  });

  test('that returns its own object from toJSON leaves the plain keys', () => {
    const own = { a: 1n, toJSON: () => own };
    const list = Object.assign([1, 2], { toJSON: () => list });
    expect(read({ own: failingAt(own, 'bad'), list })).toEqual({ own: { a: '1n', bad: '[Threw: no]' }, list: [1, 2] });
  });

  test('that returns a promise from toJSON leaves no rejection unhandled', async () => {
    const rejections = unhandledRejections();
    expect(read({ toJSON: async () => fails() })).toBe('[Promise]');
    expect(await rejections()).toEqual([]);
  });

  test('on all prototypes changes nothing', () => {
    const value = { a: [1, { b: 'c' }], map: new Map([['k', 1]]), date: new Date(0), url: new URL('http://a/'), n: 1n };
    const expected = write(value);
    const names = ['then', 'get', 'set', 'value', 'apiKey', 'logprob', 'enumerable'];
    const properties = Object.fromEntries(names.map((name) => [name, () => name]));
    let text = '';
    polluted(Object.prototype, properties, () => {
      text = write(value);
    });
    expect(text).toBe(expected);
  });
});

describe('a value is not changed:', () => {
  test('symbol keys, hidden properties and inherited getters are not read', () => {
    const account = Object.assign(Object.create(failingAt({}, 'secret')), { name: 'a', [Symbol('key')]: 1 });
    Object.defineProperty(account, 'hidden', { enumerable: false, get: fails });
    expect(read(account)).toEqual({ name: 'a' });
  });

  test('iterators and streams are not advanced', async () => {
    const steps: string[] = [];
    const sync = (function* () {
      steps.push('sync');
      yield 1;
    })();
    const async = (async function* () {
      steps.push('async');
      yield 1;
    })();
    const own = Object.assign(Object.create({ [Symbol.asyncIterator]: () => own }), { next: fails });
    const { readable, writable } = new TransformStream();
    const node = new PassThrough();
    node.end('text');
    const values = [sync, async, own, [1].values(), new Map().keys(), readable, writable, node, new Socket()];
    expect(read(values)).toEqual([
      ...['[Generator]', '[AsyncGenerator]', '[AsyncIterator]', '[Iterator]', '[Iterator]'],
      ...['[ReadableStream]', '[WritableStream]', '[PassThrough]', '[Socket]'],
    ]);
    expect([steps, readable.locked, node.readableFlowing]).toEqual([[], false, null]);
    expect([sync.next().value, (await async.next()).value, (await node.toArray()).join('')]).toEqual([1, 1, 'text']);
  });

  test('a rejected promise stays unhandled', async () => {
    const rejections = unhandledRejections();
    const error = new Error('mine');
    expect(read({ promise: Promise.reject(error) })).toEqual({ promise: '[Promise]' });
    expect(await rejections()).toEqual([error]);
  });
});

describe('text', () => {
  const long = 'x'.repeat(100_000);

  test.each<[string, unknown]>([
    ['a string', long],
    ['a URL', new URL(`data:,${long}`)],
    ['a regular expression', new RegExp(long)],
    ['a symbol', Symbol(long)],
    ['the name of a function', Object.defineProperty(() => {}, 'name', { value: long })],
    ['a bigint', BigInt(`0x${'f'.repeat(10_000)}`)],
    ['a boxed text', new String(long)],
  ])('of %s is cut at the limit', (_, value) => {
    const text = read(value, { bytes: 100 }) as string;
    expect(text).toMatch(/\[Truncated: \d+ characters\]/);
    expect(text.length).toBeLessThan(140);
  });

  test('is never cut through a character', () => {
    for (let bytes = 0; bytes <= 12; bytes++) {
      const text = read(`a${'😀'.repeat(6)}`, { bytes }) as string;
      expect(text).not.toMatch(/\p{Surrogate}/u);
      const dropped = Number(/\[Truncated: (\d+) characters\]/.exec(text)?.[1]);
      expect(text.replace(/\[.*\]/, '').length + dropped).toBe(13);
    }
  });

  test('with lone surrogates is made well-formed, in keys and values and where it is cut', () => {
    const text = write({ a: '\ud800', b: `${long}\udc00${long}`, '\ud800k': 1, c: 'ok 😀' });
    expect(text).not.toMatch(/\\u[dD]/);
    expect(JSON.parse(text)).toEqual({ a: '\ufffd', b: `${long}\ufffd${long}`, '\ufffdk': 1, c: 'ok 😀' });
  });

  test('of thrown errors counts against the limit', () => {
    const bad = throws(new Error('m'.repeat(300)));
    const value = Array.from({ length: 100 }, () => failingAt({}, 'bad', bad));
    expect(write(value, { bytes: 500 }).length).toBeLessThan(8_000);
  });
});
