import { describe, expect, test } from 'vitest';
import { serialize } from '../../src/payload/serialize.ts';
import { LIMITS } from '../run/memory-sink.ts';
import { polluted } from '../support/pollution.ts';

const read = (value: unknown, limits: Partial<typeof LIMITS> = {}): unknown =>
  JSON.parse(serialize(value, { ...LIMITS, ...limits }));

describe('code of the application in a value', () => {
  test('runs at most twice for a getter of plain data, and once for any other', () => {
    let calls = 0;
    const counted = { enumerable: true, get: () => ++calls };
    const plain: object[] = [Object.defineProperty({ a: 1 }, 'n', counted), Object.defineProperty([0], 0, counted)];
    const others = [
      Object.defineProperty(new (class Own {})(), 'n', counted),
      Object.defineProperty(new Error('no'), 'n', counted),
      Object.defineProperty({ big: 1n }, 'n', counted),
    ];
    for (const value of [...plain, ...others]) {
      calls = 0;
      serialize({ value }, LIMITS);
      expect(calls).toBe(plain.includes(value) ? 2 : 1);
    }
  });

  test('runs once for toJSON, also if a promise that it returns is rejected', () => {
    let calls = 0;
    const value = { toJSON: () => ({ toJSON: 'kept', calls: ++calls }) };
    expect(read([value, Object.assign([1], { toJSON: () => ++calls })])).toEqual([{ toJSON: 'kept', calls: 1 }, 2]);
  });

  test('runs at most twice for each trap of a proxy', () => {
    const asked: string[] = [];
    const note =
      (name: string, real: (...args: never[]) => unknown) =>
      (...args: unknown[]) => {
        asked.push(typeof args[1] === 'string' ? `${name} ${args[1]}` : name);
        return real(...(args as never[]));
      };
    const handler = Object.fromEntries(
      Object.getOwnPropertyNames(Reflect).map((name) => [name, note(name, Reflect[name as 'get'])]),
    );
    serialize(new Proxy({ a: 1, b: { c: 2 } }, handler), LIMITS);
    for (const call of new Set(asked)) expect(asked.filter((other) => other === call).length).toBeLessThanOrEqual(2);
  });
});

describe('what the host has done to all objects', () => {
  test('changes nothing of what is told', () => {
    const value = { a: [1, { b: 'c' }], map: new Map([['k', 1]]), date: new Date(0), url: new URL('http://a/'), n: 1n };
    const expected = serialize(value, LIMITS);
    let text = '';
    const names = ['then', 'get', 'set', 'value', 'apiKey', 'logprob', 'enumerable'];
    const properties = Object.fromEntries(names.map((name) => [name, () => name]));
    polluted(Object.prototype, properties, () => {
      text = serialize(value, LIMITS);
    });
    expect(text).toBe(expected);
  });
});

describe('text that is not well formed', () => {
  test('is mended: in values of any length, in keys, and where it is cut', () => {
    const long = 'x'.repeat(100);
    const text = serialize({ a: '\ud800', b: `${long}\udc00${long}`, '\ud800k': 1, c: 'ok 😀' }, LIMITS);
    expect(text).not.toMatch(/\\u[dD]/);
    expect(JSON.parse(text)).toEqual({ a: '\ufffd', b: `${long}\ufffd${long}`, '\ufffdk': 1, c: 'ok 😀' });
  });
});

describe('what is large', () => {
  test('a text of 100 million characters is cut before it is written', () => {
    const text = read('x'.repeat(100_000_000), { bytes: 1_000 }) as string;
    expect(text).toBe(`${'x'.repeat(750)}[Truncated: 99999000 characters]${'x'.repeat(250)}`);
  });

  test('of a map or a set no more is taken than is kept', () => {
    const map = new Map(Array.from({ length: 100_000 }, (_, at) => [`k${at}`, at]));
    expect(read(map, { width: 2 })).toEqual({ k0: 0, k1: 1, '[Truncated]': '99998 more keys' });
    expect(read(new Set(map.values()), { width: 2 })).toEqual([0, 1, '[Truncated: 99998 more items]']);
  });

  test('of an object no more values are read than are kept', () => {
    let calls = 0;
    const value: object = {};
    for (let n = 0; n < 30_000; n++) {
      Object.defineProperty(value, `k${n}`, { enumerable: true, get: () => ++calls });
    }
    expect(read(value)).toMatchObject({ k9999: 20_000, '[Truncated]': '20000 more keys' });
    expect(calls).toBe(20_000);
  });

  test('a list whose proxy says it is endless is as wide as the limit', () => {
    const endless = new Proxy<number[]>([], {
      get: (_, key) => (key === 'length' ? 2 ** 53 - 1 : key === 'toJSON' ? undefined : 1),
    });
    expect(read(endless, { width: 3 })).toEqual([1, 1, 1, '[Truncated: 9007199254740988 more items]']);
  });

  test('what throws long messages is bounded with the other text', () => {
    const value = Array.from({ length: 100 }, () => ({
      get bad() {
        throw new Error('m'.repeat(300));
      },
    }));
    expect(serialize(value, { ...LIMITS, bytes: 500 }).length).toBeLessThan(8_000);
  });
});
