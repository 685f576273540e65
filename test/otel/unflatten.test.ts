import { expect, test } from 'vitest';
import { unflatten } from '../../src/otel/conventions/unflatten.ts';

const from = (flat: Record<string, unknown>) => JSON.parse(JSON.stringify(unflatten(Object.entries(flat))));

test('names with dots become objects, whole numbers places of a list', () => {
  expect(from({ '0.message.role': 'user', '0.message.parts.0.text': 'a', '0.message.parts.1.text': 'b' })).toEqual([
    { message: { role: 'user', parts: [{ text: 'a' }, { text: 'b' }] } },
  ]);
});

test('places are sorted as numbers and closed up, however high they are', () => {
  expect(from({ '10.a': 10, '9.a': 9, '999999999.a': 'last' })).toEqual([{ a: 9 }, { a: 10 }, { a: 'last' }]);
});

test('keys that are not all numbers make an object', () => {
  expect(from({ '0': 'a', x: 'b' })).toEqual({ '0': 'a', x: 'b' });
});

test('a name that is the beginning of another gives way to the structure', () => {
  expect(from({ 'a.b': 1, a: 2 })).toEqual({ a: { b: 1 } });
  expect(from({ a: 2, 'a.b': 1 })).toEqual({ a: { b: 1 } });
});

test('no name reaches a prototype', () => {
  const made = unflatten([
    ['__proto__.polluted', true],
    ['constructor.prototype.polluted', true],
  ]);
  expect(Object.getPrototypeOf(made)).toBeNull();
  expect(Object.keys(made as object)).toEqual(['__proto__', 'constructor']);
  expect({}).not.toHaveProperty('polluted');
});

test('a name of a hundred thousand levels is cut off at the sixteenth', () => {
  const deep = unflatten([[`${'a.'.repeat(100_000)}b`, 1]]);
  let levels = 0;
  for (let at = deep; typeof at === 'object'; at = Object.values(at as object)[0]) levels++;
  expect(levels).toBe(16);
});
