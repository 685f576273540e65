import { describe, expect, it } from 'vitest';
import { EventStream } from '#src/clients/event-stream.ts';

/** An event as `data`, `data @ last id`, or `name: data @ last id`. */
type Row = readonly [title: string, stream: string, ...events: string[]];

/** Cases of the HTML standard, 9.2.5 and 9.2.6, and consequences of its rules. */
const rows: readonly Row[] = [
  ['joins data lines by a line feed', 'data: YHOO\ndata: +2\ndata: 10\n\n', 'YHOO\n+2\n10'],
  ['resets an id by an id without a value', 'data: a\nid: 1\n\ndata:b\nid\n\ndata:  c\n\n', 'a @ 1', 'b', ' c'],
  ['returns empty data, and nothing for an open block', 'data\n\ndata\ndata\n\ndata:', '', '\n'],
  ['removes one space after the colon', 'data:a\n\ndata: a\n\ndata:  a\n\n', 'a', 'a', ' a'],
  ['drops a block without a blank line after it', 'data: a\n\ndata: b\n', 'a'],
  ['drops a line without an end', 'data: a\n\ndata: b', 'a'],
  ['ends lines by LF', 'event: e\ndata: a\n\ndata: b\n\n', 'e: a', 'b'],
  ['ends lines by CR', 'event: e\rdata: a\r\rdata: b\r\r', 'e: a', 'b'],
  ['ends lines by CRLF', 'event: e\r\ndata: a\r\n\r\ndata: b\r\n\r\n', 'e: a', 'b'],
  ['ends lines by all three in one stream', 'data: a\rdata: b\r\ndata: c\n\r\ndata: d\n\r', 'a\nb\nc', 'd'],
  ['counts LF and CR as two line ends', 'data: a\n\rdata: b\n\n', 'a', 'b'],
  ['removes one byte order mark at the start', '\uFEFFdata: a\n\n', 'a'],
  ['removes no second byte order mark', '\uFEFF\uFEFFdata: a\n\ndata: b\n\n', 'b'],
  ['keeps a byte order mark inside the stream', 'data: a\uFEFF\n\n\uFEFFdata: b\n\n', 'a\uFEFF'],
  ['reads three Latin letters as no byte order mark', '\u00EF\u00BB\u00BFdata: a\n\n'],
  ['reads characters of two, three and four bytes', 'event: größe\ndata: 温度 🌡\n\n', 'größe: 温度 🌡'],
  ['ends no line by a Unicode separator', 'data: a\u2028b\u2029c\u0085d\n\n', 'a\u2028b\u2029c\u0085d'],
  ['reads fields in any order', 'id: 7\ndata: a\nevent: e\n\nevent: f\ndata: c\nid: 9\n\n', 'e: a @ 7', 'f: c @ 9'],
  ['keeps an id for later events', 'id: 1\ndata: a\n\ndata: b\n\n', 'a @ 1', 'b @ 1'],
  ['sets the id by a block without data', 'id: 5\n\ndata: a\n\n', 'a @ 5'],
  ['resets the id by an empty one', 'id: 5\ndata: a\n\nid:\ndata: b\n\n', 'a @ 5', 'b'],
  ['uses the last id of a block', 'id: 1\nid: 2\ndata: a\n\n', 'a @ 2'],
  ['ignores an id with a null character', 'id: 1\ndata: a\n\nid: 2\u00003\ndata: b\n\n', 'a @ 1', 'b @ 1'],
  ['uses the last name of a block', 'event: e\nevent: f\ndata: a\n\n', 'f: a'],
  ['names an event `message` if its name is empty', 'event: e\nevent:\ndata: a\n\n', 'a'],
  ['forgets the name of a block without data', 'event: e\n\ndata: a\n\n', 'a'],
  ['ignores unknown fields', 'foo: 1\ndatax: 2\nDATA: 3\n data: 4\ndata: a\nidx: 9\n\n', 'a'],
  ['keeps colons and other spaces in a value', 'data: a: b:c\ndata:\ta \n\n', 'a: b:c\n\ta '],
  ['returns comments', ':\n: heartbeat\n\ndata: a\n:in between\n\n', '# ', '# heartbeat', '# in between', 'a'],
  ['returns retry delays with digits only', 'retry: 15\nretry: 2s\nretry: -1\nretry:\nretry: 0\n\n', '! 15', '! 0'],
  ['returns nothing for blank lines', '\n\n\r\n\r\r'],
];

/** The items of a stream that arrives in these chunks. A comment is `# text`, a retry delay `! ms`. */
function read(chunks: readonly Uint8Array[]): string[] {
  const stream = new EventStream();
  const items = chunks.flatMap((chunk) => stream.feed(chunk));
  return items.map((item) => {
    if (item.kind === 'comment') return `# ${item.text}`;
    if (item.kind === 'retry') return `! ${item.ms}`;
    const { name, data, id } = item.event;
    return `${name === 'message' ? '' : `${name}: `}${data}${id === '' ? '' : ` @ ${id}`}`;
  });
}

describe('EventStream', () => {
  it.each(rows)('%s, however the bytes are split', (_, stream, ...expected) => {
    const bytes = Buffer.from(stream);

    expect(read([bytes])).toEqual(expected);
    expect(read(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(expected);
    for (let at = 0; at <= bytes.length; at++) {
      expect(read([bytes.subarray(0, at), new Uint8Array(), bytes.subarray(at)])).toEqual(expected);
    }
  });

  it('returns an event as soon as its blank line has arrived, by CR too', () => {
    const stream = new EventStream();

    expect(stream.feed(Buffer.from('data: a\r\r'))).toHaveLength(1);
    expect(stream.feed(Buffer.from('\ndata: b\n\n'))).toHaveLength(1);
  });

  it('reads bytes that are not UTF-8 as replacement characters', () => {
    expect(read([Uint8Array.of(...Buffer.from('data: a'), 0xff, ...Buffer.from('b\n\n'))])).toEqual(['a\uFFFDb']);
  });

  it.each([
    [true, ['da', 'data', 'data: 1', 'data: 1\n', 'event: a\n: comment\n', 'data: 1\n\nid']],
    [false, ['', ':', ': comment', ': comment\n', 'data: 1\n\n', 'id: 1\n', 'retry: 1\n\n: data']],
  ])('reports whether an event has begun and is not complete: %s', (isWithin, texts) => {
    for (const text of texts) {
      const stream = new EventStream();
      stream.feed(Buffer.from(text));
      expect(stream.isWithinEvent, text).toBe(isWithin);
    }
  });

  it('resumes from an id, which counts until an event has another', () => {
    const [first, second] = new EventStream('4').feed(Buffer.from('data: a\n\nid: 5\ndata: b\n\n'));

    expect(first).toMatchObject({ event: { id: '4', hasOwnId: false } });
    expect(second).toMatchObject({ event: { id: '5', hasOwnId: true } });
  });

  it('limits the characters of each event and comment, complete or not', () => {
    const stream = new EventStream('', 20);
    const feed = (text: string) => () => stream.feed(Buffer.from(text));

    for (let beat = 0; beat < 10; beat++) expect(feed(': heartbeat\n\n')()).toHaveLength(1);
    // `id: 1` and `data: ` are 11 characters.
    for (let event = 0; event < 10; event++) expect(feed('id: 1\ndata: 123456789\n\n')()).toHaveLength(1);
    for (const long of ['id: 1\ndata: 1234567890\n\n', 'data: 123456789012345', `:${'x'.repeat(20)}\n`]) {
      const limited = new EventStream('', 20);
      expect(() => limited.feed(Buffer.from(long))).toThrow('more than 20 characters');
    }
  });
});
