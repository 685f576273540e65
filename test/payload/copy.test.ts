import { describe, expect, test } from 'vitest';
import { serialize } from '../../src/payload/serialize.ts';
import { revokedProxy, throwingProxy } from '../base/hostile.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { LIMITS } from '../run/memory-sink.ts';

const write = (value: unknown, limits: Partial<typeof LIMITS> = {}): string =>
  serialize(value, { ...LIMITS, ...limits });

/** The value as it arrives: written as JSON and read again. */
const read = (value: unknown, limits: Partial<typeof LIMITS> = {}): unknown => JSON.parse(write(value, limits));

const throws = (thrown: unknown) => (): never => {
  throw thrown;
};

describe('what JSON cannot hold is told in its place', () => {
  test.each<[string, unknown, unknown]>([
    ['a bigint', 123n, '123n'],
    ['a symbol', Symbol('mark'), 'Symbol(mark)'],
    ['a function', function work() {}, '[Function work]'],
    ['a function without a name', (() => () => {})(), '[Function anonymous]'],
    ['a class', class Job {}, '[Function Job]'],
    ['a promise', Promise.resolve(1), '[Promise]'],
    ['a date', new Date(Date.UTC(2026, 10, 20, 7, 22, 40, 5)), '2026-11-20T07:22:40.005Z'],
    ['boxed text', new String('text'), 'text'],
    ['a boxed number', new Number(Number.NaN), 'NaN'],
    ['a boxed bigint', Object(1n), '1n'],
    ['undefined', undefined, null],
    ['undefined in a list', [undefined, 1], [null, 1]],
    ['undefined in an object', { a: undefined, b: 1 }, { b: 1 }],
  ])('%s', (_, value, expected) => {
    expect(read(value)).toEqual(expected);
  });

  test.each<[string, unknown, unknown]>([
    ['NaN', Number.NaN, 'NaN'],
    ['Infinity', Number.POSITIVE_INFINITY, 'Infinity'],
    ['minus Infinity', Number.NEGATIVE_INFINITY, '-Infinity'],
    ['minus zero', -0, 0],
    ['a date that is none', new Date(Number.NaN), 'Invalid Date'],
  ])('%s', (_, value, expected) => {
    expect(read({ value })).toEqual({ value: expected });
  });

  test.each<[string, unknown, unknown]>([
    ['a regular expression', /a+/gi, '/a+/gi'],
    ['a URL', new URL('https://example.com/a?b=c#d'), 'https://example.com/a?b=c#d'],
    ['a URL with a password', new URL('https://me:secret@example.com/a'), 'https://example.com/a'],
  ])('%s', (_, value, expected) => {
    expect(read(value)).toEqual(expected);
  });

  test('within a payload too, and the rest of it is kept', () => {
    expect(read({ a: 1n, b: [Symbol('x'), { c: () => {} }], d: 'kept' })).toEqual({
      a: '1n',
      b: ['Symbol(x)', { c: '[Function c]' }],
      d: 'kept',
    });
  });

  test('a getter that throws', () => {
    expect(
      read({
        get bad() {
          return throws(new Error('no'))();
        },
        good: 1,
      }),
    ).toEqual({ bad: '[Threw: no]', good: 1 });
    expect(
      read({
        get bad() {
          return throws(null)();
        },
        good: 1,
      }),
    ).toEqual({ bad: '[Threw: null]', good: 1 });
    const list = Object.defineProperty([1, 2, 3], 1, { get: throws(new Error('no')) });
    expect(read(list)).toEqual([1, '[Threw: no]', 3]);
  });

  test('a getter that gives another object with such a getter, without end', () => {
    let calls = 0;
    const endless = (): object => ({
      get next() {
        calls++;
        return endless();
      },
    });
    expect(write(endless(), { depth: 4 })).toBe('{"next":{"next":{"next":{"next":"[Truncated: too deep]"}}}}');
    expect(calls).toBeLessThanOrEqual(9);
    const wide = (): object[] =>
      Array.from({ length: 100 }, () => ({
        get next() {
          calls++;
          return wide();
        },
      }));
    calls = 0;
    write(wide(), { nodes: 50 });
    expect(calls).toBeLessThanOrEqual(100);
  });

  test('a proxy that cannot be read', () => {
    expect(read({ bad: revokedProxy(), list: revokedProxy([]), good: 1 })).toEqual({
      bad: '[Proxy]',
      list: '[Proxy]',
      good: 1,
    });
    expect(read(revokedProxy())).toBe('[Proxy]');
    expect(read([throwingProxy(['ownKeys']), throwingProxy(['get']), 1])).toEqual(['[Proxy]', '[Proxy]', 1]);
    expect(read(revokedProxy(() => {}))).toMatch(/^\[Function \[Threw: /);
  });

  test('a proxy that can, and whose properties can not all be read', () => {
    const get = (_: object, key: string) =>
      key === 'bad' ? throws(new Error('no'))() : key === 'toJSON' ? undefined : 1;
    expect(read(new Proxy({ bad: 0, good: 0 }, { get }))).toEqual({ bad: '[Threw: no]', good: 1 });
    expect(read(new Proxy([1, { a: 2n }], {}))).toEqual([1, { a: '2n' }]);
  });
});

describe('a circle', () => {
  test('is cut where a value holds itself, at any distance', () => {
    const value: Record<string, unknown> = { name: 'a' };
    value.self = value;
    value.list = [{ up: value }];
    expect(read(value)).toEqual({ name: 'a', self: '[Circular]', list: [{ up: '[Circular]' }] });
  });

  test('is found through maps, sets, errors and toJSON', () => {
    const map = new Map<string, unknown>();
    map.set('self', map);
    const set = new Set<unknown>();
    set.add(set);
    const error = new Error('no');
    error.cause = error;
    const json = { toJSON: () => ({ json }) };
    expect(read([map, set])).toEqual([{ self: '[Circular]' }, ['[Circular]']]);
    expect(read(error)).toMatchObject({ message: 'no', cause: '[Circular]' });
    expect(read(json)).toEqual({ json: '[Circular]' });
  });

  test('is none where one object stands in two places', () => {
    const shared = { a: 1n };
    expect(read({ x: shared, y: [shared, shared] })).toEqual({ x: { a: '1n' }, y: [{ a: '1n' }, { a: '1n' }] });
  });
});

describe('a collection', () => {
  test('Map with text as keys is an object, whatever the keys', () => {
    const map = new Map<string, unknown>(Object.entries({ a: 1, constructor: { b: 2 } })).set('__proto__', 3);
    expect(write(map)).toBe('{"a":1,"constructor":{"b":2},"__proto__":3}');
    expect(read(new Map())).toEqual({});
  });

  test('Map with other keys is a list of pairs', () => {
    expect(
      read(
        new Map<unknown, unknown>([
          ['a', 1],
          [{ k: 1n }, new Map([['b', 2]])],
        ]),
      ),
    ).toEqual([
      ['a', 1],
      [{ k: '1n' }, { b: 2 }],
    ]);
  });

  test('Set is a list', () => {
    expect(read(new Set([1, 'a', new Set([2n])]))).toEqual([1, 'a', ['2n']]);
  });

  test('is as wide as the limit and no wider', () => {
    const map = new Map([
      ['a', 1],
      ['b', 2],
      ['c', 3],
    ]);
    expect(read(map, { width: 3 })).toEqual({ a: 1, b: 2, c: 3 });
    expect(read(map, { width: 2 })).toEqual({ a: 1, b: 2, '[Truncated]': '1 more keys' });
    expect(read(new Set([1, 2, 3]), { width: 3 })).toEqual([1, 2, 3]);
    expect(read(new Set([1, 2, 3]), { width: 2 })).toEqual([1, 2, '[Truncated: 1 more items]']);
    const pairs = new Map([1, 2, 3].map((key) => [key, key]));
    expect(read(pairs, { width: 2 })).toEqual([[1, 1], [2, 2], '[Truncated: 1 more items]']);
  });
});

describe('an error', () => {
  test('is its name, message, stack, cause and own properties', () => {
    const error = Object.assign(new TypeError('no', { cause: { code: 1n } }), { stack: 'the stack', status: 503 });
    expect(read(error)).toEqual({
      name: 'TypeError',
      message: 'no',
      stack: 'the stack',
      cause: { code: '1n' },
      status: 503,
    });
  });

  test('of several has each of them', () => {
    const both = new AggregateError([new Error('one'), 'two'], 'both');
    expect(read(both)).toMatchObject({ name: 'AggregateError', message: 'both', errors: [{ message: 'one' }, 'two'] });
  });

  test('with a field that throws keeps the others', () => {
    const error = Object.defineProperty(new Error('no'), 'message', { get: throws(new Error('hostile')) });
    expect(read(Object.assign(error, { stack: 's' }))).toEqual({
      name: 'Error',
      message: '[Threw: hostile]',
      stack: 's',
    });
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
    [
      'a part of a buffer',
      new Uint8Array([1, 2, 3, 4, 5]).subarray(1, 4),
      { type: 'Uint8Array', byteLength: 3, base64: 'AgME' },
    ],
    ['an empty one', new Uint8Array(), { type: 'Uint8Array', byteLength: 0, base64: '' }],
  ])('%s is its type, length and bytes', (_, value, expected) => {
    expect(read(value)).toEqual(expected);
  });

  test.each([
    [1_023, 1_364],
    [1_024, 1_368],
    [1_025, 1_368],
    [1_000_000, 1_368],
  ])('of %i bytes is kept to 1 KiB', (byteLength, expected) => {
    const { base64, ...rest } = read(new Uint8Array(byteLength)) as { base64: string };
    expect(base64).toHaveLength(expected);
    expect(rest).toEqual({ type: 'Uint8Array', byteLength });
  });

  test('that has been given away does not cost its neighbours', () => {
    const gone = new Uint8Array(3);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    expect(read({ gone, good: 1 })).toMatchObject({ good: 1 });
  });
});

describe('toJSON', () => {
  test('has its say, and what it gives is treated like any other value', () => {
    expect(read({ toJSON: () => 'said' })).toBe('said');
    expect(read({ a: { toJSON: () => ({ b: 1n, toJSON: 'text' }) } })).toEqual({ a: { b: '1n', toJSON: 'text' } });
    expect(read({ a: { toJSON: () => undefined }, b: 1 })).toEqual({ b: 1 });
    expect(read(Object.assign([1], { toJSON: () => [2n] }))).toEqual(['2n']);
  });

  test('that throws costs its own object alone', () => {
    expect(read({ bad: { toJSON: throws(new Error('no')) }, good: 1 })).toEqual({ bad: '[Threw: no]', good: 1 });
    expect(read({ bad: { toJSON: throws(null) }, good: 1 })).toEqual({ bad: '[Threw: null]', good: 1 });
  });

  test('that gives back its own object leaves the plain keys', () => {
    class Document {
      title = 'a';
      get bad(): never {
        throw new Error('no');
      }
      toJSON(): this {
        return this;
      }
    }
    const own = {
      a: 1n,
      toJSON: () => own,
      get bad() {
        return throws(new Error('no'))();
      },
    };
    const list = Object.assign([1, 2], { toJSON: () => list });
    expect(read({ document: new Document(), list })).toEqual({ document: { title: 'a' }, list: [1, 2] });
    expect(read(own)).toEqual({ a: '1n', bad: '[Threw: no]' });
  });

  test('is asked once: what it gives is not asked again', () => {
    const endless = (): object => ({ toJSON: endless });
    expect(read(endless())).toEqual({});
  });

  test('that is asynchronous leaves no rejection unhandled', async () => {
    const rejections = unhandledRejections();
    expect(read({ toJSON: async () => throws(new Error('no'))() })).toBe('[Promise]');
    expect(await rejections()).toEqual([]);
  });
});

describe('what is not asked for is not touched', () => {
  test('symbols as keys, hidden properties and getters of a prototype', () => {
    class Account {
      name = 'a';
      get secret(): never {
        throw new Error('was read');
      }
    }
    const account = Object.assign(new Account(), { [Symbol('key')]: 1 });
    Object.defineProperty(account, 'hidden', { value: 1, enumerable: false });
    expect(read(account)).toEqual({ name: 'a' });
  });

  test('streams and iterators', async () => {
    const stream = new ReadableStream({ start: (controller) => controller.enqueue(1) });
    let steps = 0;
    const generator = (function* () {
      yield ++steps;
    })();
    expect(read({ stream, generator })).toEqual({ stream: '[ReadableStream]', generator: '[Generator]' });
    expect([stream.locked, steps]).toEqual([false, 0]);
    expect(await stream.getReader().read()).toEqual({ done: false, value: 1 });
  });

  test('a promise of the application: its rejection stays as unhandled as it was', async () => {
    const rejections = unhandledRejections();
    const error = new Error('mine');
    expect(read({ promise: Promise.reject(error) })).toEqual({ promise: '[Promise]' });
    expect(await rejections()).toEqual([error]);
  });
});

describe('text of every kind counts against the limit', () => {
  const long = 'x'.repeat(100_000);
  test.each<[string, unknown]>([
    ['a string', long],
    ['a URL', new URL(`data:,${long}`)],
    ['a regular expression', new RegExp(long)],
    ['a symbol', Symbol(long)],
    ['a function name', Object.defineProperty(() => {}, 'name', { value: long })],
    ['a bigint', BigInt(`0x${'f'.repeat(10_000)}`)],
    ['a boxed string', new String(long)],
  ])('%s', (_, value) => {
    const text = read(value, { bytes: 100 }) as string;
    expect(text).toMatch(/\[Truncated: \d+ characters\]/);
    expect(text.length).toBeLessThan(140);
  });

  test('and is never cut through a character', () => {
    for (let bytes = 0; bytes <= 12; bytes++) {
      const text = read(`a${'😀'.repeat(6)}`, { bytes }) as string;
      expect(text).not.toMatch(/\p{Surrogate}/u);
      const dropped = Number(/\[Truncated: (\d+) characters\]/.exec(text)?.[1]);
      expect(text.replace(/\[.*\]/, '').length + dropped).toBe(13);
    }
  });
});
