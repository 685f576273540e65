import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonOutput, keyBytes } from '../../src/run/json-output.ts';

/** What one output makes of some additions. */
function made(add: (output: JsonOutput) => void): string {
  const output = new JsonOutput();
  try {
    add(output);
    return output.text();
  } finally {
    output.close();
  }
}

const stringOf = (text: string): string => made((output) => output.addString(text));

/** RFC 8259, section 7: what has to be escaped, and the letters of the escapes that have one. */
const LETTERS: Readonly<Record<number, string>> = {
  8: 'b',
  9: 't',
  10: 'n',
  12: 'f',
  13: 'r',
  34: '"',
  92: '\\',
};

function expectedOf(code: number): string {
  const letter = LETTERS[code];
  if (letter !== undefined) return `\\${letter}`;
  return code < 32 ? `\\u${code.toString(16).padStart(4, '0')}` : String.fromCharCode(code);
}

describe('a string', () => {
  test.each([1, 2, 3, 4, 5, 31, 32, 33, 34, 35, 36, 37, 4_095, 4_096, 4_097, 8_193])(
    'of %i characters has each character escaped as JSON wants it, wherever it is',
    (length) => {
      const places = new Set([0, 1, 2, 3, length >> 1, length - 2, length - 1].filter((at) => at >= 0 && at < length));
      for (let code = 0; code < 256; code++) {
        for (const at of places) {
          const before = 'a'.repeat(at);
          const after = 'z'.repeat(length - at - 1);
          expect(stringOf(before + String.fromCharCode(code) + after)).toBe(`"${before}${expectedOf(code)}${after}"`);
        }
      }
    },
  );

  test.each([20, 32, 33, 5_000])('of %i characters that are all escaped is whole', (length) => {
    expect(stringOf('\u0001'.repeat(length))).toBe(`"${'\\u0001'.repeat(length)}"`);
  });

  test.each([1, 33, 5_000])('of %i characters may have some that are no bytes', (length) => {
    const text = 'é'.repeat(length);
    expect(stringOf(`${text}—😀`)).toBe(`"${text}—😀"`);
    expect(stringOf(`—😀${text}\n`)).toBe(`"—😀${text}\\n"`);
  });

  test.each([1, 33])('of %i characters has halves of pairs replaced', (length) => {
    const text = 'a'.repeat(length);
    expect(stringOf(`${text}\ud83d`)).toBe(`"${text}\ufffd"`);
    expect(stringOf(`\ude00${text}`)).toBe(`"\ufffd${text}"`);
  });

  test('of any kind is what JSON.stringify makes of it, also one that was put together of others', () => {
    const unit = fc.oneof(fc.constantFrom('"', '\\', '\n', '\u0000', '\x7f', '\x80', 'ÿ', 'Ā', '\u2028'), fc.string());
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 60 }), (units) => {
        const text = units.join('');
        const sum = units.reduce((all, one) => all + one, '');
        expect(stringOf(text)).toBe(JSON.stringify(text));
        expect(stringOf(sum)).toBe(JSON.stringify(text));
        expect(stringOf(`abc${text}`.slice(3))).toBe(JSON.stringify(text));
      }),
    );
  });
});

describe('a text', () => {
  test.each([65_535, 65_536, 65_537, 200_000])('of %i characters is whole, in its order', (length) => {
    const items = Array.from({ length: Math.ceil(length / 5) }, (_, at) => String(at % 10_000).padStart(5, '.'));
    const expected = items.join('').slice(0, length);
    const text = made((output) => {
      for (let at = 0; at < length; at += 5) output.add(expected.slice(at, at + 5));
    });
    expect(text).toBe(expected);
  });

  test('keeps its order where the kinds of what is added take turns', () => {
    const long = 'long\n'.repeat(20);
    const text = made((output) => {
      for (let at = 0; at < 2_000; at++) {
        output.addKey(keyBytes('key') as Buffer, at === 0);
        output.addString(at % 3 === 0 ? long : at % 3 === 1 ? 'short' : 'wide—');
      }
      output.add('}');
    });
    const values = Array.from({ length: 2_000 }, (_, at) =>
      JSON.stringify(at % 3 === 0 ? long : at % 3 === 1 ? 'short' : 'wide—'),
    );
    expect(text).toBe(`{${values.map((value) => `"key":${value}`).join(',')}}`);
  });

  test.each([1, 5, 70_000])('has its last %i characters taken back', (count) => {
    const kept = 'k'.repeat(1_000);
    const text = made((output) => {
      output.add(kept);
      const before = output.length;
      for (let left = count; left > 0; left -= 1_000) output.add('x'.repeat(Math.min(1_000, left)));
      expect(output.length - before).toBe(count);
      output.drop(count);
      output.add('end');
    });
    expect(text).toBe(`${kept}end`);
  });
});

describe('texts within one another', () => {
  test('are each their own, also when together they take more room than there is', () => {
    const nest = (depth: number): string =>
      made((output) => {
        output.add('[');
        output.addString(`${depth}`.repeat(3_000));
        const inner = depth === 0 ? '0' : nest(depth - 1);
        output.addString('short');
        output.addKey(keyBytes('key') as Buffer, true);
        output.addString('\u0001'.repeat(33));
        output.add(inner);
      });
    const expected = (depth: number): string =>
      `["${`${depth}`.repeat(3_000)}""short"{"key":"${'\\u0001'.repeat(33)}"${depth === 0 ? '0' : expected(depth - 1)}`;
    expect(nest(40)).toBe(expected(40));
  });

  test('leave nothing behind when one is given up', () => {
    const text = made((output) => {
      output.add('before ');
      expect(() =>
        made((inner) => {
          inner.add('lost');
          throw new Error('given up');
        }),
      ).toThrow('given up');
      output.add('after');
    });
    expect(text).toBe('before after');
  });
});

test.each([
  ['plain', ',"plain":'],
  ['', ',"":'],
  ['a"b\n', ',"a\\"b\\n":'],
  ['clé', ',"clé":'],
])('the key %j is written as %s', (key, expected) => {
  expect(keyBytes(key)?.toString('latin1')).toBe(expected);
});

test('a key with characters that are no bytes has none', () => {
  expect(keyBytes('ключ')).toBeUndefined();
});
