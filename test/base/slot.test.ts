import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { makeSlot } from '../../src/base/slot.ts';

test('a value is found on the object that it was put on, and can be replaced', () => {
  const slot = makeSlot<number>();
  const [one, other] = [{}, {}];
  slot.set(one, 1);
  expect([slot.get(one), slot.get(other)]).toEqual([1, undefined]);
  slot.set(one, 2);
  expect(slot.get(one)).toBe(2);
});

test('two slots are two places', () => {
  const [first, second] = [makeSlot<number>(), makeSlot<number>()];
  const object = {};
  first.set(object, 1);
  expect(second.get(object)).toBeUndefined();
  second.set(object, 2);
  expect([first.get(object), second.get(object)]).toEqual([1, 2]);
});

test('nobody else sees it or copies it, and a frozen object takes it too', () => {
  const slot = makeSlot<string>();
  const object = Object.freeze({ a: 1 });
  slot.set(object, 'mine');
  expect(slot.get(object)).toBe('mine');
  expect([Reflect.ownKeys(object), inspect(object, { showHidden: true })]).toEqual([['a'], '{ a: 1 }']);
  expect(slot.get({ ...object })).toBeUndefined();
});

test('a proxy has a place of its own', () => {
  const slot = makeSlot<number>();
  const object = {};
  const proxy = new Proxy(object, {});
  slot.set(object, 1);
  expect(slot.get(proxy)).toBeUndefined();
});
