import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { defaultLimits } from '../../src/base/limits.ts';
import { defaultRedaction } from '../../src/run/default-redaction.ts';
import { isKeptText } from '../../src/run/json-scan.ts';
import { type PayloadRules, payloadRules } from '../../src/run/payload-rules.ts';
import { redact } from '../../src/run/redact.ts';
import { collectGarbage } from '../support/garbage.ts';

const rules = payloadRules(defaultLimits, defaultRedaction);
const kept = (text: string, some: Partial<PayloadRules> = {}): boolean => isKeptText(text, { ...rules, ...some });
/** `{"a":[[[…]]]}`, with as many levels in all. */
const nested = (levels: number): string => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;

describe('JSON text of an object stays as it is', () => {
  test.each([
    '{}',
    ' { } ',
    '{"a":1}',
    '{ "a" : [ 1 , -0.5 , true , false , null , "" , {} , [ ] ] }',
    '{\n\t"a": 12345678901234567890,\r\n\t"b": "c"\n}',
    String.raw`{"a":"\" \\ \/ \b \f \n \r \t \u0000 \u00e9 \ud7ff \ue000"}`,
    '{"a":"é 漢 😀"}',
    '{"a":1,"a":2}',
    '{"__proto__":{"a":1},"constructor":2}',
  ])('%j', (text) => {
    expect(kept(text)).toBe(true);
    expect(typeof JSON.parse(text)).toBe('object');
  });
});

describe('text is to be parsed', () => {
  test.each([
    ['that is no object', ['[]', '1', '"a"', 'null', '', ' ', '\u00a0{}']],
    [
      'that breaks off',
      ['{', '{"', '{"a', '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":[', '{"a":[1', '{"a":[1,', '{"a":"b'],
    ],
    ['that ends with another bracket', ['{"a":[1}', '{"a":1]', '{"a":[{]}']],
    ['that goes on', ['{}}', '{} {}', '{},', '{"a":1}{}']],
    [
      'that is no JSON',
      ["{'a':1}", '{a:1}', '{"a" 1}', '{"a":1 "b":2}', '{"a":[1 2]}', '{"a":1,}', '{"a":[1,]}', '{,}'],
    ],
    ['with words that are none', ['{"a":tru}', '{"a":True}', '{"a":nulll}', '{"a":undefined}', '{"a":NaN}']],
    [
      'with numbers that are none',
      ['{"a":01}', '{"a":+1}', '{"a":.5}', '{"a":1.}', '{"a":-}', '{"a":0x1}', '{"a":1e999}'],
    ],
    [
      'with escapes that are none',
      [String.raw`{"a":"\x"}`, String.raw`{"a":"\u12"}`, String.raw`{"a":"\u123g"}`, '{"a":"\\'],
    ],
    ['with half of a pair', [String.raw`{"a":"\ud83d"}`, String.raw`{"a":"\uDE00"}`, '{"a":"\ud83d"}']],
    ['with control characters in a string', ['{"a":"\n"}', '{"a":"b\u0000"}', '{"a\t":1}', '{\n"a":"b","c":"\u001f"}']],
    ['with secrets in it', ['{"password":"x"}', '{"a":[{"apiKey":"x"}]}', String.raw`{"p\u0061ssword":"x"}`]],
    ['with a method of its own', ['{"toJSON":1}']],
    ['with something to attach', ['{"a":"data:image/png;base64,AAAA"}']],
  ])('%s', (_, texts) => {
    for (const text of texts) expect([text, kept(text)]).toEqual([text, false]);
  });

  test.each([
    ['depth', nested(3), { depth: 3 }, { depth: 2 }],
    ['depth of objects', '{"a":{"b":{}}}', { depth: 3 }, { depth: 2 }],
    ['width of lists', '{"a":[1,2,3]}', { width: 3 }, { width: 2 }],
    ['width of objects', '{"a":1,"b":2}', { width: 2 }, { width: 1 }],
    ['values', '{"a":[1,"b"]}', { nodes: 4 }, { nodes: 3 }],
    ['characters', '{"a":1}', { bytes: 7 }, { bytes: 6 }],
  ])('beyond a limit of %s, and neither at it nor below', (_, text, at, beyond) => {
    expect([kept(text), kept(text, at), kept(text, beyond)]).toEqual([true, true, false]);
  });

  test('where paths hide something, or everything is hidden', () => {
    expect(kept('{"a":1}', { redaction: redact({ paths: ['inputs.b'] }) })).toBe(false);
    expect(kept('{"a":1}', { redaction: undefined })).toBe(true);
  });

  test.each([
    ['x', 1],
    ['é', 1],
    ['漢', 3],
  ])('beyond four MiB of %j, and neither at them nor below', (character, bytes) => {
    const room = 4 * 1_024 * 1_024 - 4;
    const textOf = (length: number): string => `{"a":"${character.repeat(length - 8)}"}`;
    const most = Math.floor(room / bytes);
    expect([most - 1, most, most + 1].map((length) => kept(textOf(length)))).toEqual([true, true, false]);
  });

  test('that stands where a longer one stood, and breaks off where that goes on', () => {
    expect(kept('{"a":"1234","b":[1,2,{"c":true}]}')).toBe(true);
    for (const text of ['{"a":"1234","b":[1,2,{"c":true}', '{"a":"12', '{"a":"1234","b":[1', '{"a":"1234","b"']) {
      expect([text, kept(text)]).toEqual([text, false]);
    }
  });

  test('where a pattern finds something, or might behind an escape', () => {
    const redaction = redact({ patterns: [/\d{4}/] });
    expect(kept('{"a":"123","b":["1","2"]}', { redaction })).toBe(true);
    expect(kept('{"a":"b","c":"01234"}', { redaction })).toBe(false);
    expect(kept('{"1234":"b"}', { redaction })).toBe(false);
    expect(kept('{"1234":"b"}', { redaction })).toBe(false);
    expect(kept(String.raw`{"a":"\n"}`, { redaction })).toBe(false);
  });

  test('of which a part was kept aside is not held on to', () => {
    // A part of the text that were a key would keep it all: a thousand of them would be a gibibyte.
    const padding = 'x'.repeat(1_024 * 1_024);
    const before = process.memoryUsage().heapUsed;
    for (let number = 0; number < 200; number++) {
      expect(kept(`{"key of the text number ${number}":1,"a":"${padding}${number}"}`)).toBe(true);
    }
    collectGarbage();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(100 * 1_024 * 1_024);
  });
});

test('what stays is what JSON.parse reads, whatever is done to a text', () => {
  const text = fc
    .record({
      value: fc.dictionary(fc.string(), fc.jsonValue()),
      at: fc.nat(),
      cut: fc.nat(2),
      added: fc.string({ maxLength: 2 }),
      indent: fc.nat(2),
    })
    .map(({ value, at, cut, added, indent }) => {
      const json = JSON.stringify(value, undefined, indent);
      const place = at % (json.length + 1);
      return json.slice(0, place) + added + json.slice(place + cut);
    });
  let count = 0;
  fc.assert(
    fc.property(text, (given) => {
      if (!kept(given)) return;
      count++;
      const value: unknown = JSON.parse(given);
      expect(typeof value).toBe('object');
      expect(JSON.stringify(value).isWellFormed()).toBe(true);
    }),
    // Some four of a hundred stay.
    { numRuns: 6_000 },
  );
  expect(count).toBeGreaterThan(100);
});

test('what JSON.stringify makes of plain data stays', () => {
  const plain = fc.dictionary(fc.stringMatching(/^[a-c]{1,3}$/), fc.jsonValue({ stringUnit: 'grapheme' }));
  fc.assert(
    fc.property(plain, (value) => {
      const json = JSON.stringify(value);
      // Numbers with an exponent and keys with an escape are left to others.
      expect(kept(json) || /\de|toJSON/i.test(json) || hasEscapedKey(value)).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

function hasEscapedKey(value: unknown): boolean {
  let isFound = false;
  JSON.stringify(value, (key, inner) => {
    isFound ||= JSON.stringify(key).includes('\\');
    return inner;
  });
  return isFound;
}
