import { describe, expect, test } from 'vitest';
import { KeyForms } from '../../src/run/key-forms.ts';

const forms = (): KeyForms => new KeyForms((key) => key.startsWith('secret'));

describe('the form of a key', () => {
  test.each([
    ['name', ',"name":', false],
    ['secret', undefined, true],
    ['toJSON', undefined, true],
    ['ключ', undefined, false],
    ['half \ud83d', undefined, true],
  ])('%j is written as %s', (key, json, isSpecial) => {
    const form = forms().of(key);
    expect(form.bytes?.toString('latin1')).toBe(json);
    expect(form.isSpecial).toBe(isSpecial);
  });

  test('is found after another one, whatever came after that before', () => {
    const all = forms();
    const keys = ['a', 'b', 'secret', 'a', 'c', 'b', 'a', 'b', 'x'.repeat(65), 'x'.repeat(66), 'a'];
    for (let round = 0; round < 3; round++) {
      let form = all.start;
      for (const key of keys) {
        form = all.after(form, key);
        expect(form.key).toBe(key);
        expect(form.isSpecial).toBe(key === 'secret');
      }
    }
  });

  test.each([64, 65])('is kept up to 64 characters, here %i', (length) => {
    const all = forms();
    const key = 'k'.repeat(length);
    const form = all.of(key);
    expect(all.of(key) === form).toBe(length <= 64);
    const next = all.after(all.start, key);
    expect(all.after(all.start, key) === next).toBe(length <= 64);
  });

  test.each([1_999, 2_000, 2_001])('is kept while there are at most 2 000, here %i', (count) => {
    const all = forms();
    const first = all.of('key0');
    for (let at = 1; at < count; at++) all.of(`key${at}`);
    expect(all.of('key0') === first).toBe(count <= 2_000);
  });
});
