import { expect, test } from 'vitest';
import { mapped } from './mapped.ts';

/** The messages of a list that is flattened into attributes. */
const messages = (flat: Record<string, unknown>) =>
  mapped(Object.fromEntries(Object.entries(flat).map(([name, value]) => [`gen_ai.prompt.${name}`, value]))).inputs
    ?.messages;

test('names with dots become objects, and whole numbers become indexes of lists', () => {
  const parts = { '0.parts.0.text': 'a', '0.parts.1.text': 'b' };
  expect(messages({ '0.role': 'user', ...parts })).toEqual([{ role: 'user', parts: [{ text: 'a' }, { text: 'b' }] }]);
});

test('items are sorted by number, without gaps', () => {
  expect(messages({ '10.a': 10, '9.a': 9, '999999999.a': 'last' })).toEqual([{ a: 9 }, { a: 10 }, { a: 'last' }]);
});

test('numbers among other keys are keys of an object', () => {
  expect(messages({ '0.a.0': 'a', '0.a.x': 'b' })).toEqual([{ a: { '0': 'a', x: 'b' } }]);
});

test.each([[{ '0.a.b': 1, '0.a': 2 }], [{ '0.a': 2, '0.a.b': 1 }]])(
  'if a name is the prefix of another name, the structure wins: %j',
  (flat) => {
    expect(messages(flat)).toEqual([{ a: { b: 1 } }]);
  },
);

test('no name reaches a prototype', () => {
  const [message] = messages({ '0.__proto__.polluted': true, '0.constructor.prototype.polluted': true });
  expect(Object.keys(message)).toEqual(['__proto__', 'constructor']);
  expect({}).not.toHaveProperty('polluted');
});

test('a name of a hundred thousand levels has its first 15 levels below the index', () => {
  const [message] = messages({ [`0.${'a.'.repeat(100_000)}b`]: 1 });
  let levels = 0;
  for (let at = message; typeof at === 'object'; at = Object.values(at)[0]) levels++;
  expect(levels).toBe(15);
});
