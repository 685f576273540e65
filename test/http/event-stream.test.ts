import { describe, expect, it } from 'vitest';
import { EventStream, type EventStreamItem } from '../../src/http/event-stream.ts';

/** An event: its name, its data, and the last id. */
type Event = readonly [name: string, data: string, id: string];

interface Case {
  readonly title: string;
  readonly stream: string;
  readonly events: readonly Event[];
  readonly comments?: readonly string[];
  readonly retries?: readonly number[];
}

/** Cases of the HTML standard, 9.2.5 and 9.2.6, and what follows from its rules. `event` is `message` where there is none. */
const cases: readonly Case[] = [
  {
    title: 'joins lines of data by a line feed',
    stream: 'data: YHOO\ndata: +2\ndata: 10\n\n',
    events: [['message', 'YHOO\n+2\n10', '']],
  },
  {
    title: 'takes comments, ids, an id that is reset and one space after the colon',
    stream: ': test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n',
    events: [
      ['message', 'first event', '1'],
      ['message', 'second event', ''],
      ['message', ' third event', ''],
    ],
    comments: ['test stream'],
  },
  {
    title: 'gives data that is empty, and nothing for a block that the stream leaves open',
    stream: 'data\n\ndata\ndata\n\ndata:',
    events: [
      ['message', '', ''],
      ['message', '\n', ''],
    ],
  },
  {
    title: 'takes no more than one space from data',
    stream: 'data:test\n\ndata: test\n\ndata:  test\n\n',
    events: [
      ['message', 'test', ''],
      ['message', 'test', ''],
      ['message', ' test', ''],
    ],
  },
  {
    title: 'drops a block without a blank line behind it',
    stream: 'data: a\n\ndata: b\n',
    events: [['message', 'a', '']],
  },
  { title: 'drops a line that is not ended', stream: 'data: a\n\ndata: b', events: [['message', 'a', '']] },
  {
    title: 'ends lines by LF',
    stream: 'event: e\ndata: a\n\ndata: b\n\n',
    events: [
      ['e', 'a', ''],
      ['message', 'b', ''],
    ],
  },
  {
    title: 'ends lines by CR',
    stream: 'event: e\rdata: a\r\rdata: b\r\r',
    events: [
      ['e', 'a', ''],
      ['message', 'b', ''],
    ],
  },
  {
    title: 'ends lines by CRLF',
    stream: 'event: e\r\ndata: a\r\n\r\ndata: b\r\n\r\n',
    events: [
      ['e', 'a', ''],
      ['message', 'b', ''],
    ],
  },
  {
    title: 'ends lines by all three in one stream',
    stream: 'data: a\rdata: b\r\ndata: c\n\r\ndata: d\n\r',
    events: [
      ['message', 'a\nb\nc', ''],
      ['message', 'd', ''],
    ],
  },
  {
    title: 'counts LF and CR as two ends of lines',
    stream: 'data: a\n\rdata: b\n\n',
    events: [
      ['message', 'a', ''],
      ['message', 'b', ''],
    ],
  },
  { title: 'leaves out a byte order mark', stream: '\uFEFFdata: a\n\n', events: [['message', 'a', '']] },
  {
    title: 'leaves out one byte order mark alone',
    stream: '\uFEFF\uFEFFdata: a\n\ndata: b\n\n',
    events: [['message', 'b', '']],
  },
  {
    title: 'keeps a byte order mark within',
    stream: 'data: a\uFEFF\n\n\uFEFFdata: b\n\n',
    events: [['message', 'a\uFEFF', '']],
  },
  { title: 'takes three letters for no byte order mark', stream: '\u00EF\u00BB\u00BFdata: a\n\n', events: [] },
  {
    title: 'reads characters of two, three and four bytes',
    stream: 'event: größe\ndata: 温度 🌡\n\n',
    events: [['größe', '温度 🌡', '']],
  },
  {
    title: 'ends no line by the separators of Unicode',
    stream: 'data: a\u2028b\u2029c\u0085d\n\n',
    events: [['message', 'a\u2028b\u2029c\u0085d', '']],
  },
  {
    title: 'takes fields in any order',
    stream: 'id: 7\ndata: a\nevent: e\n\ndata: b\nid: 8\n\nevent: f\ndata: c\nid: 9\n\n',
    events: [
      ['e', 'a', '7'],
      ['message', 'b', '8'],
      ['f', 'c', '9'],
    ],
  },
  {
    title: 'keeps an id for those that have none',
    stream: 'id: 1\ndata: a\n\ndata: b\n\n',
    events: [
      ['message', 'a', '1'],
      ['message', 'b', '1'],
    ],
  },
  { title: 'moves the id by a block without data', stream: 'id: 5\n\ndata: a\n\n', events: [['message', 'a', '5']] },
  {
    title: 'resets the id by an empty one',
    stream: 'id: 5\ndata: a\n\nid:\ndata: b\n\n',
    events: [
      ['message', 'a', '5'],
      ['message', 'b', ''],
    ],
  },
  {
    title: 'resets the id by one of a space',
    stream: 'id: 5\ndata: a\n\nid: \ndata: b\n\n',
    events: [
      ['message', 'a', '5'],
      ['message', 'b', ''],
    ],
  },
  { title: 'takes the last id of a block', stream: 'id: 1\nid: 2\ndata: a\n\n', events: [['message', 'a', '2']] },
  {
    title: 'passes over an id with a null character',
    stream: 'id: 1\ndata: a\n\nid: 2\u00003\ndata: b\n\n',
    events: [
      ['message', 'a', '1'],
      ['message', 'b', '1'],
    ],
  },
  {
    title: 'does not take over the id of an open block',
    stream: 'id: 1\ndata: a\n\nid: 2',
    events: [['message', 'a', '1']],
  },
  { title: 'takes the last name of a block', stream: 'event: e\nevent: f\ndata: a\n\n', events: [['f', 'a', '']] },
  {
    title: 'names an event message where its name is empty',
    stream: 'event: e\nevent:\ndata: a\n\n',
    events: [['message', 'a', '']],
  },
  {
    title: 'forgets the name of a block without data',
    stream: 'event: e\n\ndata: a\n\n',
    events: [['message', 'a', '']],
  },
  {
    title: 'passes over fields that it does not know',
    stream: 'foo: 1\ndatax: 2\nDATA: 3\n data: 4\ndata: a\nidx: 9\n\n',
    events: [['message', 'a', '']],
  },
  { title: 'keeps colons of a value', stream: 'data: a: b:c\n\n', events: [['message', 'a: b:c', '']] },
  { title: 'keeps other spaces', stream: 'data:\ta \n\n', events: [['message', '\ta ', '']] },
  {
    title: 'tells of comments, wherever they are',
    stream: ':\n: heartbeat\n\ndata: a\n:in between\ndata: b\n\n',
    events: [['message', 'a\nb', '']],
    comments: ['', 'heartbeat', 'in between'],
  },
  {
    title: 'tells how long to wait, by digits alone',
    stream: 'retry: 1500\nretry: 2s\nretry: -1\nretry:\nretry: 0\ndata: a\n\n',
    events: [['message', 'a', '']],
    retries: [1500, 0],
  },
  { title: 'gives nothing for blank lines', stream: '\n\n\r\n\r\r', events: [] },
];

const textOf = (item: EventStreamItem) =>
  item.kind === 'event' ? ([item.event.name, item.event.data, item.event.id] as const) : item;

/** What a stream gives when its bytes come in these pieces. */
function read(pieces: readonly Uint8Array[]) {
  const stream = new EventStream();
  const items = pieces.flatMap((piece) => stream.feed(piece));
  return {
    events: items.filter((item) => item.kind === 'event').map(textOf),
    comments: items.flatMap((item) => (item.kind === 'comment' ? [item.text] : [])),
    retries: items.flatMap((item) => (item.kind === 'retry' ? [item.ms] : [])),
  };
}

describe('EventStream', () => {
  it.each(cases)('$title, however the bytes come', ({ stream, events, comments = [], retries = [] }) => {
    const bytes = Buffer.from(stream);
    const expected = { events, comments, retries };

    expect(read([bytes])).toEqual(expected);
    expect(read(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(expected);
    for (let at = 0; at <= bytes.length; at++) {
      expect(read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(expected);
      expect(read([bytes.subarray(0, at), new Uint8Array(), bytes.subarray(at)])).toEqual(expected);
    }
  });

  it('gives an event as soon as its blank line has come, by CR too', () => {
    const stream = new EventStream();

    expect(stream.feed(Buffer.from('data: a\r\r'))).toHaveLength(1);
    expect(stream.feed(Buffer.from('\ndata: b\n\n'))).toHaveLength(1);
  });

  it('reads bytes that are no UTF-8 as replacement characters', () => {
    expect(read([Uint8Array.of(...Buffer.from('data: a'), 0xff, ...Buffer.from('b\n\n'))]).events).toEqual([
      ['message', 'a\uFFFDb', ''],
    ]);
  });

  it('tells whether an event has begun that is not complete', () => {
    const within = (text: string): boolean => {
      const stream = new EventStream();
      stream.feed(Buffer.from(text));
      return stream.isWithinEvent;
    };

    for (const text of ['da', 'data', 'data: 1', 'data: 1\n', 'event: a\n: comment\n', 'data: 1\n\nid'])
      expect(within(text), text).toBe(true);
    for (const text of ['', ':', ': comment', ': comment\n', 'data: 1\n\n', 'id: 1\n', 'retry: 1\n\n: data'])
      expect(within(text), text).toBe(false);
  });

  it('goes on from an id, which counts until there is another', () => {
    const stream = new EventStream('4');

    const [first, second] = stream.feed(Buffer.from('data: a\n\nid: 5\ndata: b\n\n'));

    expect(first).toMatchObject({ event: { id: '4', hasOwnId: false } });
    expect(second).toMatchObject({ event: { id: '5', hasOwnId: true } });
  });

  // `data: ` and `id: 1` are 11 characters.
  it.each([
    [19, true],
    [20, true],
    [21, false],
  ])('takes an event of %i characters where 20 are allowed: %s', (characters, isTaken) => {
    const feed = (): unknown =>
      new EventStream('', 20).feed(Buffer.from(`id: 1\ndata: ${'x'.repeat(characters - 11)}\n\n`));

    if (isTaken) expect(feed()).toHaveLength(1);
    else expect(feed).toThrow('an event has more than 20 characters');
  });

  it('counts a line that has not ended, and every event anew', () => {
    const stream = new EventStream('', 20);

    for (let event = 0; event < 10; event++) expect(stream.feed(Buffer.from('data: 34567890\n\n'))).toHaveLength(1);
    expect(stream.feed(Buffer.from('data: 34567890'))).toEqual([]);
    expect(() => stream.feed(Buffer.from('1234567'))).toThrow('more than 20 characters');
  });

  it('counts comments one by one, so that heartbeats add up to nothing', () => {
    const stream = new EventStream('', 20);

    for (let beat = 0; beat < 10; beat++) expect(stream.feed(Buffer.from(': heartbeat\n'))).toHaveLength(1);
    expect(() => stream.feed(Buffer.from(`:${'x'.repeat(20)}\n`))).toThrow('more than 20 characters');
  });
});
