import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { makeSlot } from '#src/base/slot.ts';

test('the value of a slot is not visible or copied, and can be set for a frozen object', () => {
  const slot = makeSlot<string>();
  const object = Object.freeze({ a: 1 });
  slot.set(object, 'mine');
  expect(slot.get(object)).toBe('mine');
  expect([Reflect.ownKeys(object), inspect(object, { showHidden: true })]).toEqual([['a'], '{ a: 1 }']);
  expect(slot.get({ ...object })).toBeUndefined();
});

test('a proxy has a separate value', () => {
  const slot = makeSlot<number>();
  const object = {};
  const proxy = new Proxy(object, {});
  slot.set(object, 1);
  expect(slot.get(proxy)).toBeUndefined();
});
