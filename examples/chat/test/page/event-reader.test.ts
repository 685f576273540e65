import { expect, test } from 'vitest';
import { EventReader } from '../../page/event-reader.ts';

const event = (seq: number) => ({ type: 'event', seq, method: 'custom', params: { namespace: [], data: { seq } } });
const frame = (seq: number) => `id: ${seq}\nevent: custom\ndata: ${JSON.stringify(event(seq))}\n\n`;

test('events are read wherever the pieces of the stream end', () => {
  const text = `: open\n\n${frame(1)}: heartbeat\n\n${frame(2)}${frame(3)}`;
  for (const size of [1, 2, 7, 50, text.length]) {
    const reader = new EventReader();
    const events = [];
    for (let start = 0; start < text.length; start += size)
      events.push(...reader.read(text.slice(start, start + size)));
    expect(events).toEqual([event(1), event(2), event(3)]);
  }
});

test('what is no event of the protocol is passed over, and the next one is not', () => {
  const odd = [
    'data: {',
    'data: null',
    'data: {"method":"x"}',
    'data: {"method":1,"params":{"namespace":[]}}',
    'event: x',
  ];
  expect(new EventReader().read(`${odd.join('\n\n')}\n\n${frame(4)}`)).toEqual([event(4)]);
});
