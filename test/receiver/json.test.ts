import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../../src/receiver/json.ts';
import { jsonSizeBytes } from '../../src/receiver/json-size.ts';

const parse = (text: string) => parseJson(Buffer.from(text), 'It');
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

describe('parseJson', () => {
  test('takes nesting to 512 levels and no further, and does not fall over what is deeper', () => {
    expect(parse(nested(511))).toBeInstanceOf(Array);
    expect(parse(nested(512))).toBeInstanceOf(Array);
    for (const levels of [513, 1_000_000]) {
      expect(() => parse(nested(levels))).toThrow(expect.objectContaining({ status: 400 }));
    }
    expect(() => parse(`${'{"a":'.repeat(513)}1${'}'.repeat(513)}`)).toThrow(expect.objectContaining({ status: 400 }));
  });

  test('takes no other encoding than UTF-8', () => {
    expect(parse('"grün"')).toBe('grün');
    expect(() => parseJson(Buffer.from('"grün"', 'latin1'), 'It')).toThrow(expect.objectContaining({ status: 400 }));
  });
});

test('jsonSizeBytes counts what JSON.stringify writes, escapes aside', () => {
  expect(jsonSizeBytes({ a: [1, null, true], ü: '', b: {}, c: [] })).toBe(41);
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
  fc.assert(fc.property(json, (value) => jsonSizeBytes(value) === Buffer.byteLength(JSON.stringify(value))));
});
