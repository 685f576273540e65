import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PayloadLimits } from '#src/payload/plain.ts';
import { redact } from '#src/payload/redaction/redact.ts';
import { encodePayload, serialize } from '#src/payload/serialize.ts';
import { revokedProxy } from '../base/hostile.ts';
import { LIMITS, makeSink } from '../run/memory-sink.ts';
import { forAll } from '../support/campaign.ts';
import { collected } from '../support/garbage.ts';

const read = (value: unknown, limits: Partial<PayloadLimits> = {}): unknown =>
  JSON.parse(serialize(value, { ...LIMITS, ...limits }));

const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

describe('plain JSON', () => {
  test('of any shape is written like `JSON.stringify` does, and not changed', () => {
    forAll(1_000, [fc.jsonValue()], (value) => {
      const text = JSON.stringify(value);
      expect(serialize(value, LIMITS)).toBe(text);
      expect(JSON.stringify(value)).toBe(text);
    });
  });

  test.each<[string, unknown, string]>([
    ['undefined', undefined, 'null'],
    ['undefined and holes', { a: undefined, b: [undefined, new Array(2).concat(1)] }, '{"b":[null,[null,null,1]]}'],
    ['numbers that JSON does not have', [1, Number.NaN, { a: -1 / 0 }], '[1,"NaN",{"a":"-Infinity"}]'],
    ['frozen objects', Object.freeze({ list: Object.freeze([1]), big: 1n }), '{"list":[1],"big":"1n"}'],
  ])('with %s', (_, value, expected) => {
    expect(serialize(value, LIMITS)).toBe(expected);
  });

  test('keeps keys with names of prototype members', () => {
    const text = '{"__proto__":{"a":1},"constructor":2,"toString":3,"hasOwnProperty":4}';
    expect(serialize(JSON.parse(text), LIMITS)).toBe(text);
    expect(read({ ...JSON.parse(text), big: 1n })).toEqual(JSON.parse(`${text.slice(0, -1)},"big":"1n"}`));
    expect(serialize(new URLSearchParams('a=1&__proto__=4'), LIMITS)).toBe('{"a":"1","__proto__":"4"}');
  });

  test('is not retained', async () => {
    const dropped = (() => {
      const below = { leaf: 1 };
      serialize({ rows: [{ a: { b: [below] } }, below, {}] }, { ...LIMITS, redaction: redact() }, ['inputs']);
      return new WeakRef(below);
    })();
    await collected(dropped);
    expect(dropped.deref()).toBeUndefined();
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
    ['width of maps', { width: 1 }, new Map(Object.entries({ a: 1, b: 2 })), { a: 1, '[Truncated]': '1 more keys' }],
    [
      'width of pairs',
      { width: 2 },
      new Map([1, 2, 3].map((n) => [n, n])),
      [[1, 1], [2, 2], '[Truncated: 1 more items]'],
    ],
    ['width of sets', { width: 1 }, new Set([1, 2]), [1, '[Truncated: 1 more items]']],
    ['width of a sparse list', { width: 1 }, new Array(2 ** 32 - 1), [null, '[Truncated: 4294967294 more items]']],
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

  test('keeps the first three quarters of its characters and the last quarter', () => {
    const text = `h${'h'.repeat(50_000_000)}${'t'.repeat(500)}`;
    expect(read(text, { bytes: 400 })).toBe(`${'h'.repeat(300)}[Truncated: 50000101 characters]${'t'.repeat(100)}`);
  });

  test('of bytes ends an object at a key over 256 characters that has no room', () => {
    const long = 'k'.repeat(257);
    expect(read({ a: 1, [long]: 2, b: 3 }, { bytes: 258 })).toEqual({ a: 1, [long]: 2, b: 3 });
    expect(read({ a: 1, [long]: 2, b: 3 }, { bytes: 257 })).toEqual({ a: 1, '[Truncated]': '2 more keys' });
    const short = 'k'.repeat(256);
    const cut = { a: '[Truncated: 1 characters]c', [short]: 2, d: 3 };
    expect(read({ a: 'bc', [short]: 2, d: 3 }, { bytes: 2 })).toEqual(cut);
  });

  test('of bytes applies to the result of a toJSON of a list or a hidden toJSON', () => {
    const toJSON = () => 'x'.repeat(1_000);
    const marked = `${'x'.repeat(75)}[Truncated: 900 characters]${'x'.repeat(25)}`;
    expect(read(Object.assign([1], { toJSON }), { bytes: 100 })).toBe(marked);
    expect(read(Object.defineProperty({}, 'toJSON', { value: toJSON }), { bytes: 100 })).toBe(marked);
  });

  test('of depth applies to nesting deeper than the stack allows', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 1_000_000; level++) deep = { deep };
    const text = serialize(deep, LIMITS);
    expect(text.match(/\{"deep":/g)).toHaveLength(64);
    expect(() => read(nested(100_000), { depth: 1_000_000 })).not.toThrow();
    expect(() => read({ big: 1n, deep: nested(100_000) }, { depth: 1_000_000 })).not.toThrow();
  });

  test('of depth bounds the cost of a cycle', () => {
    const root: { name: string; children: unknown[] } = { name: 'root', children: [] };
    for (let index = 0; index < 5_000; index++) root.children.push({ index, parent: root });
    const json = serialize(root, { ...LIMITS, redaction: redact() });
    expect(JSON.parse(json).children[4_999]).toEqual({ index: 4_999, parent: '[Circular]' });
  });

  test('of nodes applies to few objects with many references', () => {
    let shared: unknown = 'leaf';
    for (let level = 0; level < 60; level++) shared = [shared, shared];
    expect(serialize(shared, LIMITS).length).toBeLessThan(2_000_000);
  });

  test('of width applies to a proxy of a list without end', () => {
    const endless = new Proxy<number[]>([], {
      get: (_, key) => (key === 'length' ? 2 ** 53 - 1 : key === 'toJSON' ? undefined : 1),
    });
    expect(read(endless, { width: 3 })).toEqual([1, 1, 1, '[Truncated: 9007199254740988 more items]']);
  });
});

describe('a payload', () => {
  const { capture } = makeSink();

  test.each([
    ['a plain object', { a: 1 }, '{"a":1}'],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    ['undefined', undefined, '{}'],
    ['null', null, '{"outputs":null}'],
    ['text', 'x', '{"outputs":"x"}'],
    ['a list', [1, 2], '{"outputs":[1,2]}'],
    ['a date', new Date(0), '{"outputs":"1970-01-01T00:00:00.000Z"}'],
    ['an instance of a class', Object.assign(Object.create({}), { x: 1 }), '{"outputs":{"x":1}}'],
    ['a plain object whose toJSON returns text', { toJSON: () => 'x' }, '{"outputs":"x"}'],
    ['a proxy whose keys cannot be read', revokedProxy(), '{"outputs":"[Proxy]"}'],
  ])('made of %s is an object', (_, value, expected) => {
    expect(encodePayload('outputs', value, capture).json).toEqual(expected);
  });

  test('has no attachments of a hidden value', () => {
    const payload = { ...LIMITS, redaction: redact({ paths: ['inputs.input'] }) };
    const value = { toJSON: () => `data:image/png;base64,${Buffer.alloc(3_000).toString('base64')}` };
    const hidden = encodePayload('inputs', value, { ...capture, payload });
    expect(hidden).toEqual({ json: '{"input":"[Redacted]"}', attachments: undefined });
    expect(encodePayload('outputs', value, { ...capture, payload }).attachments).toHaveLength(1);
  });
});

const S = 'k9Xw27abQ4';
const KEYS =
  `a content max_tokens name value key headers rawHeaders toJSON constructor __proto__ password apiKey token tokens
  session signature thinking logprob https://a.b/?token=${S}`.split(/\s+/);
const SNIPPETS = [
  ...['', ' ', 'prose of several words', S, 'Bearer ', ': ', '\r\n'],
  ...['"', '\\', '{"password":"', '{"a":1}', '['],
];
const MORE_SNIPPETS =
  'authorization cookie x-api-key = @ https://a.b/ postgres:// ?page=2 &api_key= /login 😀 é data: \ud800';

const text = fc
  .array(fc.constantFrom(...SNIPPETS, ...MORE_SNIPPETS.split(' '), 'A'.repeat(1_100)), { maxLength: 6 })
  .map((parts) => parts.join(''));
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(null, true, 0, -0, 1.5, 1e21, Number.NaN, undefined, 7_000),
    text,
    text.map((inner) => JSON.stringify({ password: inner, url: inner })),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(text, { minLength: 2, maxLength: 2 }),
    fc.array(fc.tuple(fc.constantFrom(...KEYS), tie('value')), { maxLength: 4 }).map(Object.fromEntries),
  ),
}));

describe('masking', () => {
  /** A pattern that matches nothing makes the library search, copy and mask each value. */
  const bySearch = redact({ patterns: [/(?!)/] });
  const byCheck = redact();

  test.each([LIMITS, { depth: 2, width: 3, nodes: 8, bytes: 60 }, { depth: 3, width: 2, nodes: 20, bytes: 20 }])(
    'writes the same text for a checked and a searched payload, with the limits %j',
    (limits) => {
      forAll(1_500, [value], (payload) => {
        const expected = serialize(payload, { ...limits, redaction: bySearch }, ['inputs']);
        expect(serialize(payload, { ...limits, redaction: byCheck }, ['inputs'])).toBe(expected);
      });
    },
  );

  test.each<[string, unknown, string]>([
    ['a number after a secret name', [['passcode', 123_456]], '[["passcode","[Redacted]"]]'],
    ['an inherited toJSON', [Object.create({ toJSON: () => ({ password: S }) })], '[{"password":"[Redacted]"}]'],
    ['an iterator', [new ReadableStream().values(), [].values()], '["[AsyncIterator]","[Iterator]"]'],
  ])('treats %s as a value that is not plain', (_, given, expected) => {
    expect(serialize(given, { ...LIMITS, redaction: byCheck })).toBe(expected);
  });

  test('allows a getter that serializes another payload', () => {
    const rules = { ...LIMITS, redaction: byCheck };
    const rows = (count: number) => Array.from({ length: count }, (_, at) => ({ at, below: [{ at }] }));
    const outer = {
      before: rows(3),
      get number() {
        expect(serialize(rows(9), rules, ['inputs'])).toBe(JSON.stringify(rows(9)));
        return 1;
      },
      after: rows(5),
    };
    for (let round = 0; round < 2; round++) expect(serialize(outer, rules, ['inputs'])).toBe(JSON.stringify(outer));
  });
});
