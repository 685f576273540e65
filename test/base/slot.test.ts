import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { makeSlot } from '#src/base/slot.ts';

test('a slot returns the value that was set for an object, and the value can be replaced', () => {
  const slot = makeSlot<number>();
  const [one, other] = [{}, {}];
  slot.set(one, 1);
  expect([slot.get(one), slot.get(other)]).toEqual([1, undefined]);
  slot.set(one, 2);
  expect(slot.get(one)).toBe(2);
});

test('two slots have separate values', () => {
  const [first, second] = [makeSlot<number>(), makeSlot<number>()];
  const object = {};
  first.set(object, 1);
  expect(second.get(object)).toBeUndefined();
  second.set(object, 2);
  expect([first.get(object), second.get(object)]).toEqual([1, 2]);
});

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
