import { describe, expect, test } from 'vitest';
import { bare, bareDescriptor } from '../../src/base/bare.ts';
import { polluted } from '../support/pollution.ts';

describe('bare', () => {
  test('has the own properties of both, those of the second before those of the first, and no other', () => {
    const own = bare(Object.assign(Object.create({ inherited: 1 }), { a: 1, b: 1 }), { b: 2, c: undefined });
    expect({ ...own }).toEqual({ a: 1, b: 2, c: undefined });
    expect(['inherited', 'toString'].filter((key) => key in own)).toEqual([]);
    expect(polluted(Object.prototype, { apiKey: 'k' }, () => 'apiKey' in own)).toBe(false);
  });

  test('is another object each time, and takes what is put into it', () => {
    const first = bare<{ a?: number }>({});
    first.a = 1;
    expect(bare({})).not.toHaveProperty('a');
  });

  test('keeps a key `__proto__` out of the prototype', () => {
    expect('apiKey' in bare(JSON.parse('{"__proto__":{"apiKey":"k"}}'))).toBe(false);
  });
});

test('bareDescriptor describes a property as defineProperty takes it, whatever is on all objects', () => {
  const to = {};
  polluted(Object.prototype, { get: 1 }, () =>
    Object.defineProperty(to, 'a', bareDescriptor({ a: 1 }, 'a') as PropertyDescriptor),
  );
  expect(to).toEqual({ a: 1 });
  expect(bareDescriptor({}, 'a')).toBeUndefined();
});
