import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PayloadLimits } from '../../src/payload/plain.ts';
import { redact } from '../../src/payload/redact.ts';
import { encodePayload, serialize } from '../../src/payload/serialize.ts';
import { anything } from '../base/hostile.ts';
import { LIMITS, makeSink } from '../run/memory-sink.ts';

const read = (value: unknown, limits: Partial<PayloadLimits> = {}): unknown =>
  JSON.parse(serialize(value, { ...LIMITS, ...limits }));

const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

describe('plain JSON', () => {
  test('of any shape is written exactly as JSON.stringify would, and left as it was', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(serialize(value, LIMITS)).toBe(text);
        expect(JSON.stringify(value)).toBe(text);
      }),
      { numRuns: 3_000 },
    );
  });

  test('with holes and undefined too', () => {
    const sparse: unknown[] = [];
    sparse[2] = 1;
    expect(serialize({ a: undefined, b: [undefined, sparse] }, LIMITS)).toBe('{"b":[null,[null,null,1]]}');
  });

  test('but for a number that JSON does not have', () => {
    expect(serialize([1, Number.NaN, { a: -1 / 0 }], LIMITS)).toBe('[1,"NaN",{"a":"-Infinity"}]');
  });

  test('of nothing is null', () => {
    expect(serialize(undefined, LIMITS)).toBe('null');
  });

  test('shared in several places is written in each', () => {
    const shared = { a: 1 };
    expect(serialize([shared, { shared }, shared], LIMITS)).toBe('[{"a":1},{"shared":{"a":1}},{"a":1}]');
  });

  test('with keys that JavaScript gives a meaning is data', () => {
    const text = '{"__proto__":{"a":1},"constructor":2,"toString":3,"hasOwnProperty":4}';
    expect(serialize(JSON.parse(text), LIMITS)).toBe(text);
    expect(read({ ...JSON.parse(text), big: 1n })).toEqual(JSON.parse(`${text.slice(0, -1)},"big":"1n"}`));
    expect(({} as { a?: unknown }).a).toBeUndefined();
  });
});

describe('anything', () => {
  test('becomes JSON text, without an exception', () => {
    fc.assert(
      fc.property(anything, (make) => {
        expect(() => read(make())).not.toThrow();
      }),
      { numRuns: 3_000 },
    );
  });

  test('stays within small limits', () => {
    const limits = { depth: 3, width: 4, nodes: 20, bytes: 100 };
    fc.assert(
      fc.property(anything, (make) => {
        // 20 values and 20 markers of at most 320 characters, six for a character that has to be escaped.
        expect(serialize(make(), limits).length).toBeLessThan(40 * 320 * 6);
      }),
      { numRuns: 1_000 },
    );
  });

  test('frozen to the ground is taken as it is', () => {
    const frozen = Object.freeze({ list: Object.freeze([Object.freeze({ a: 1 })]), big: 1n });
    expect(read(frozen)).toEqual({ list: [{ a: 1 }], big: '1n' });
  });

  test('is read at the call: what becomes of it later changes nothing', () => {
    const value = { list: [1], map: new Map([['a', 1]]) };
    const text = serialize(value, LIMITS);
    value.list.push(2);
    value.map.set('b', 2);
    expect(text).toBe('{"list":[1],"map":{"a":1}}');
  });
});

describe('what is longer than a string can be', () => {
  test('is a marker, where the limit was raised beyond that', () => {
    // Written 54 times it is longer than the longest string of the engine, 2 ** 29 - 24 characters.
    const text = 'x'.repeat(10_000_000);
    expect(read(new Array(54).fill(text), { bytes: 2 ** 31 })).toBe('[Threw: Invalid string length]');
  });
});

describe('a limit', () => {
  test.each<[string, Partial<PayloadLimits>, unknown, unknown]>([
    ['depth, one below', { depth: 3 }, [[1]], [[1]]],
    ['depth, at', { depth: 3 }, [[[1]]], [[[1]]]],
    ['depth, one above', { depth: 3 }, [[[[1]]]], [[['[Truncated: too deep]']]]],
    ['depth of objects, at', { depth: 2 }, { a: { b: 1 } }, { a: { b: 1 } }],
    ['depth of objects, one above', { depth: 2 }, { a: { b: {} } }, { a: { b: '[Truncated: too deep]' } }],
    ['width, one below', { width: 3 }, [1, 2], [1, 2]],
    ['width, at', { width: 3 }, [1, 2, 3], [1, 2, 3]],
    ['width, one above', { width: 3 }, [1, 2, 3, 4], [1, 2, 3, '[Truncated: 1 more items]']],
    ['width of objects, at', { width: 2 }, { a: 1, b: 2 }, { a: 1, b: 2 }],
    ['width of objects, above', { width: 2 }, { a: 1, b: 2, c: 3, d: 4 }, { a: 1, b: 2, '[Truncated]': '2 more keys' }],
    ['nodes, one below', { nodes: 4 }, [1, 2], [1, 2]],
    ['nodes, at', { nodes: 4 }, [1, 2, 3], [1, 2, 3]],
    ['nodes, one above', { nodes: 4 }, [1, 2, 3, 4], [1, 2, 3, '[Truncated: 1 more items]']],
    ['nodes of objects, above', { nodes: 3 }, { a: 1, b: 2, c: 3 }, { a: 1, b: 2, '[Truncated]': '1 more keys' }],
    ['bytes, one below', { bytes: 9 }, 'abcdefgh', 'abcdefgh'],
    ['bytes, at', { bytes: 8 }, 'abcdefgh', 'abcdefgh'],
    ['bytes, one above', { bytes: 7 }, 'abcdefgh', 'abcde[Truncated: 1 characters]gh'],
    ['bytes of keys and text, at', { bytes: 8 }, { abcd: 'efgh' }, { abcd: 'efgh' }],
    ['bytes of keys and text, above', { bytes: 7 }, { abcd: 'efgh' }, { abcd: 'ef[Truncated: 1 characters]h' }],
    ['bytes of all text together', { bytes: 5 }, ['abc', 'de', 'f'], ['abc', 'de', '[Truncated: 1 characters]']],
    ['bytes, and numbers go on', { bytes: 1 }, { a: 'bcd', n: 1 }, { a: '[Truncated: 3 characters]', n: 1 }],
  ])('of %s', (_, limits, value, expected) => {
    expect(read(value, limits)).toEqual(expected);
  });

  test('cuts a long text in the middle: three quarters are its head, one its tail', () => {
    const text = 'h'.repeat(500) + 't'.repeat(500);
    expect(read(text, { bytes: 400 })).toBe(`${'h'.repeat(300)}[Truncated: 600 characters]${'t'.repeat(100)}`);
  });

  test('of bytes holds for keys: one that is long and has no room ends its object', () => {
    const long = 'k'.repeat(257);
    expect(read({ a: 1, [long]: 2, b: 3 }, { bytes: 258 })).toEqual({ a: 1, [long]: 2, b: 3 });
    expect(read({ a: 1, [long]: 2, b: 3 }, { bytes: 257 })).toEqual({ a: 1, '[Truncated]': '2 more keys' });
    const short = 'k'.repeat(256);
    expect(read({ a: 'bc', [short]: 2, d: 3 }, { bytes: 2 })).toEqual({
      a: '[Truncated: 1 characters]c',
      [short]: 2,
      d: 3,
    });
  });

  test('of bytes holds for what a toJSON gives that JSON.stringify alone would find', () => {
    const toJSON = () => 'x'.repeat(1_000);
    const marked = `${'x'.repeat(75)}[Truncated: 900 characters]${'x'.repeat(25)}`;
    expect(read(Object.assign([1], { toJSON }), { bytes: 100 })).toBe(marked);
    expect(read(Object.defineProperty({}, 'toJSON', { value: toJSON }), { bytes: 100 })).toBe(marked);
  });

  test('of depth holds for nesting that no stack could hold', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 1_000_000; level++) deep = { deep };
    const text = serialize(deep, LIMITS);
    expect(text.match(/\{"deep":/g)).toHaveLength(64);
    expect(text).toContain('"[Truncated: too deep]"');
  });

  test('of depth that is set beyond what the stack holds still throws nothing', () => {
    expect(() => read(nested(100_000), { depth: 1_000_000 })).not.toThrow();
    expect(() => read({ big: 1n, deep: nested(100_000) }, { depth: 1_000_000 })).not.toThrow();
  });

  test('of nodes holds for little data shared without end', () => {
    let shared: unknown = 'leaf';
    for (let level = 0; level < 60; level++) shared = [shared, shared];
    expect(serialize(shared, LIMITS).length).toBeLessThan(2_000_000);
  });

  test('of width holds for an array of length 2 ** 32 - 1', () => {
    const sparse: unknown[] = [1];
    sparse.length = 2 ** 32 - 1;
    const items = read(sparse) as unknown[];
    expect(items).toHaveLength(10_001);
    expect([items[0], items[1], items.at(-1)]).toEqual([1, null, '[Truncated: 4294957295 more items]']);
  });
});

const { capture } = makeSink();

describe('encodePayload', () => {
  test.each([
    ['a plain object', { a: 1 }, '{"a":1}'],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    ['undefined', undefined, '{}'],
    ['null', null, '{"outputs":null}'],
    ['text', 'x', '{"outputs":"x"}'],
    ['a list', [1, 2], '{"outputs":[1,2]}'],
    ['a date', new Date(0), '{"outputs":"1970-01-01T00:00:00.000Z"}'],
    [
      'an instance of a class',
      new (class Point {
        x = 1;
      })(),
      '{"outputs":{"x":1}}',
    ],
    ['a plain object whose toJSON gives text', { toJSON: () => 'x' }, '{"outputs":"x"}'],
  ])('makes of %s an object', (_, value, expected) => {
    expect(encodePayload('outputs', value, capture).json).toBe(expected);
  });

  test('makes an object of a proxy that cannot be read', () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();

    expect(Object.keys(JSON.parse(encodePayload('inputs', proxy, capture).json))).toEqual(['input']);
  });

  test('lets nothing of a hidden value travel beside it', () => {
    const payload = { ...LIMITS, redaction: redact({ paths: ['inputs.input'] }) };
    const uri = `data:image/png;base64,${Buffer.alloc(3_000).toString('base64')}`;
    const value = { toJSON: () => uri };

    expect(encodePayload('inputs', value, { ...capture, payload })).toEqual({
      json: '{"input":"[Redacted]"}',
      attachments: undefined,
    });
    expect(encodePayload('outputs', value, { ...capture, payload }).attachments).toHaveLength(1);
  });
});
