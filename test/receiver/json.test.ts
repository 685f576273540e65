import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonReader, jsonSizeBytes, VALUES_MAX } from '../../src/receiver/ingest/json.ts';

const parse = (text: string, reader = new JsonReader()) => reader.parse(Buffer.from(text), 'It');
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
const array = (values: number) => `[0${',0'.repeat(values - 1)}]`;
const refused = (status: number) => expect.objectContaining({ status });

describe('parse', () => {
  test('takes nesting to 512 levels and no further, and does not fall over what is deeper', () => {
    expect(parse(nested(511))).toBeInstanceOf(Array);
    expect(parse(nested(512))).toBeInstanceOf(Array);
    for (const levels of [513, 1_000_000]) expect(() => parse(nested(levels))).toThrow(refused(400));
    expect(() => parse(`${'{"a":'.repeat(513)}1${'}'.repeat(513)}`)).toThrow(refused(400));
    expect(parse(`[${'[],{},'.repeat(600)}0]`)).toBeInstanceOf(Array);
  });

  test('takes so many values in one request and no more', () => {
    expect(parse(array(VALUES_MAX - 1))).toHaveLength(VALUES_MAX - 1);
    expect(parse(array(VALUES_MAX))).toHaveLength(VALUES_MAX);
    expect(() => parse(array(VALUES_MAX + 1))).toThrow(refused(413));
  });

  test('counts the values of all texts that one reader reads', () => {
    const reader = new JsonReader();
    parse(array(VALUES_MAX - 1), reader);
    expect(parse('[0]', reader)).toEqual([0]);
    expect(() => parse('[0]', reader)).toThrow(refused(413));
  });

  test('refuses too many values before it builds any of them', () => {
    const text = Buffer.from('[],'.repeat(VALUES_MAX));
    expect(() => new JsonReader().parse(text, 'It')).toThrow(refused(413));
  });

  test('counts nothing within text, whatever it escapes', () => {
    const text = JSON.stringify({ a: '[{"\\'.repeat(1_000), 'b\\"[': ',[' });
    expect(parse(text)).toEqual(JSON.parse(text));
    expect(parse(`"${','.repeat(VALUES_MAX + 1)}"`)).toHaveLength(VALUES_MAX + 1);
    // Near to where the end of a text is no longer looked for byte by byte.
    for (let length = 40; length < 60; length += 1) {
      for (const end of ['\\"', '\\\\', '\\\\\\"', '\\n"'.slice(0, 2)]) {
        const brackets = `["${'x'.repeat(length)}${end}${'['.repeat(600)}"]`;
        expect(parse(brackets)).toEqual(JSON.parse(brackets));
        const deep = `["${'x'.repeat(length)}${end}"${',['.repeat(600)}${']'.repeat(601)}`;
        expect(() => parse(deep)).toThrow(refused(400));
      }
    }
  });

  test('takes no other encoding than UTF-8', () => {
    expect(parse('"grün"')).toBe('grün');
    expect(() => new JsonReader().parse(Buffer.from('"grün"', 'latin1'), 'It')).toThrow(refused(400));
  });

  test('gives what JSON.parse gives', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parse(text)).toEqual(JSON.parse(text));
      }),
    );
  });
});

test('jsonSizeBytes counts what JSON.stringify writes, escapes aside, 16 for each value and 56 for each object or array', () => {
  expect(jsonSizeBytes('')).toBe(2 + 16);
  expect(jsonSizeBytes({ a: [1, null, true], ü: '', b: {}, c: [] })).toBe(41 + 8 * 16 + 4 * 56);
  const plain = fc.stringMatching(/^[a-zü€ ]*$/);
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { maxDepth: 4 },
      plain,
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('json'), { maxLength: 4 }),
      fc.dictionary(plain, tie('json'), { maxKeys: 4 }),
    ),
  }));
  const added = (value: unknown): number =>
    typeof value !== 'object' || value === null
      ? 16
      : 16 + 56 + Object.values(value).reduce((sum: number, item) => sum + added(item), 0);
  fc.assert(
    fc.property(json, (value) => jsonSizeBytes(value) === Buffer.byteLength(JSON.stringify(value)) + added(value)),
  );
});
