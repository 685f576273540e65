import { expect, test } from 'vitest';
import { LogMessages } from '../../src/otel/log-messages.ts';

const limits = { depth: 8, width: 100, nodes: 100, bytes: 1_000 };

test('what is told is kept as it was at that moment, and lists are continued', () => {
  const messages = new LogMessages(limits);
  const first = { role: 'user', content: 'a', list: [1, { b: 2n }] };
  messages.add({ 'gen_ai.input.messages': [first] });
  first.content = 'changed';
  first.list.push(3);
  messages.add({ 'gen_ai.input.messages': [{ role: 'user', content: 'c' }], 'gen_ai.system_instructions': 'd' });
  messages.add({ 'gen_ai.system_instructions': 'e' });
  expect(JSON.parse(JSON.stringify(messages.attributes))).toEqual({
    'gen_ai.input.messages': [
      { role: 'user', content: 'a', list: [1, { b: '2' }] },
      { role: 'user', content: 'c' },
    ],
    'gen_ai.system_instructions': 'd',
  });
  expect(messages.leftOut).toBe(0);
});

test('bytes are copied, and left out where they are more than there is room for', () => {
  const messages = new LogMessages({ ...limits, bytes: 104 });
  const bytes = new Uint8Array(100).fill(7);
  messages.add({ fits: bytes });
  bytes.fill(0);
  expect(messages.attributes).toEqual({ fits: new Uint8Array(100).fill(7) });
  const other = new LogMessages({ ...limits, bytes: 103 });
  other.add({ fits: bytes });
  expect(other.attributes).toEqual({ fits: '[Left out: 100 bytes]' });
});

test.each([
  ['fifth', 5, 1],
  ['sixth', 6, 0],
])('a record that comes when the %s character is the last is left out and counted, or not', (_, bytes, leftOut) => {
  const messages = new LogMessages({ ...limits, bytes });
  messages.add({ a: '1234' });
  messages.add({ b: 'more' });
  expect(messages.leftOut).toBe(leftOut);
  expect(Object.keys(messages.attributes)).toEqual(leftOut === 0 ? ['a', 'b'] : ['a']);
});

test('a structure with more values than the limit is cut, and so is one that leads back to itself', () => {
  const messages = new LogMessages({ ...limits, nodes: 4 });
  messages.add({ list: [1, 2, 3, 4] });
  expect(messages.attributes).toEqual({ list: [1, 2, 3, '[Truncated]'] });
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const deep = new LogMessages({ ...limits, depth: 2 });
  deep.add({ cycle });
  expect(JSON.stringify(deep.attributes)).toBe('{"cycle":{"self":{"self":"[Truncated]"}}}');
});

test('names that stand for more than a key elsewhere are keys', () => {
  const messages = new LogMessages(limits);
  messages.add({ a: JSON.parse('{"__proto__":{"b":1}}') });
  expect(JSON.stringify(messages.attributes)).toBe('{"a":{"__proto__":{"b":1}}}');
  expect({}).not.toHaveProperty('b');
});
