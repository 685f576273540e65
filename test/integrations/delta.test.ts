import { describe, expect, test } from 'vitest';
import { addDelta, copyOf } from '../../src/integrations/delta.ts';
import { emptyFields } from '../../src/integrations/fields.ts';

const joined = (...deltas: Record<string, unknown>[]): unknown => {
  const target = emptyFields();
  for (const delta of deltas) addDelta(target, delta);
  return target;
};

describe('deltas', () => {
  test('go on where there is text, and tell names again', () => {
    expect(
      joined({ id: 'a', role: 'assistant', content: 'Hel' }, { id: 'a', role: 'assistant', content: 'lo' }),
    ).toEqual({ id: 'a', role: 'assistant', content: 'Hello' });
  });

  test('replace numbers and flags, and leave what is there where they are null', () => {
    expect(joined({ n: 1, text: 'a', none: null }, { n: 2, text: null, none: null })).toEqual({
      n: 2,
      text: 'a',
      none: null,
    });
    expect(joined({ text: null }, { text: 'a' })).toEqual({ text: 'a' });
  });

  test('join items by their index, in any order, and add those without one', () => {
    expect(
      joined(
        { calls: [{ index: 1, args: 'x' }] },
        {
          calls: [
            { index: 0, args: 'a' },
            { index: 1, args: 'y' },
          ],
        },
      ),
    ).toEqual({
      calls: [
        { index: 1, args: 'xy' },
        { index: 0, args: 'a' },
      ],
    });
    expect(joined({ parts: [{ text: 'a' }] }, { parts: [{ text: 'b' }, 1, [2]] })).toEqual({
      parts: [{ text: 'a' }, { text: 'b' }, 1, [2]],
    });
  });

  test('tell how many characters they were, names not counted', () => {
    expect(addDelta(emptyFields(), { id: 'abc', content: 'four', calls: [{ args: 'xy' }], deep: { text: 'z' } })).toBe(
      7,
    );
  });

  test('keep nothing of themselves', () => {
    const delta = { list: [{ deep: { text: 'a' } }], plain: [[1]] };
    const target = emptyFields();
    addDelta(target, delta);
    (delta.list[0] as { deep: { text: string } }).deep.text = 'changed';
    (delta.plain[0] as number[]).push(2);
    expect(target).toEqual({ list: [{ deep: { text: 'a' } }], plain: [[1]] });
  });

  test('reach no prototype, whatever their keys', () => {
    joined(JSON.parse('{"__proto__": {"polluted": "yes"}, "constructor": {"prototype": {"polluted": "yes"}}}'));
    expect(({} as { polluted?: string }).polluted).toBeUndefined();
  });
});

test('a copy is deep', () => {
  const value = { a: [{ b: 1 }], c: null, d: 'text' };
  const copy = copyOf(value) as typeof value;
  expect(copy).toEqual(value);
  expect(copy.a[0]).not.toBe(value.a[0]);
});
