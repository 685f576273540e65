import { describe, expect, it } from 'vitest';
import { decodeRecord, encodeRecord, type SpooledRecord, salvageRecord } from '../../src/export/spool-record.ts';
import { ended, makeRun } from '../support/encoded-run.ts';

const ID = '0190a6ba-1c00-7000-8000-000000000001';
const ORDER = `20261120T072240123456Z${ID}`;
const MAIN = {
  id: ID,
  trace_id: ID,
  name: 'ask',
  start_time: '2026-11-20T07:22:40.123456Z',
  run_type: 'chain',
  dotted_order: ORDER,
  session_name: 'default',
};

/** Sections laid by hand: each after its length, four bytes, big-endian. */
function sections(...texts: readonly (string | Uint8Array)[]): Buffer {
  return Buffer.concat(
    texts.flatMap((text) => {
      const bytes = Buffer.from(text as string);
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      return [length, bytes];
    }),
  );
}

const laid = (main: unknown, ...rest: readonly (string | Uint8Array)[]) =>
  sections('{"op":"post","isEnded":true}', JSON.stringify(main), ...(rest.length === 0 ? ['', '', ''] : rest));

describe('a record', () => {
  it('is laid out in sections', () => {
    const run = ended(makeRun({ id: ID, dottedOrder: ORDER, traceId: ID, name: 'ask', startTime: MAIN.start_time }), {
      inputs: '{"a":1}',
      outputs: '{"b":"ü"}',
      events: '[]',
      endTime: '2026-11-20T07:22:41.000000Z',
      attachments: [{ name: 'page', mimeType: 'text/plain', bytes: Buffer.from([0, 255]) }],
    });
    expect(Buffer.from(encodeRecord({ op: 'post', isEnded: true, run }))).toEqual(
      laid(
        { ...MAIN, end_time: '2026-11-20T07:22:41.000000Z' },
        '{"a":1}',
        '{"b":"ü"}',
        '[]',
        'page',
        'text/plain',
        Buffer.from([0, 255]),
      ),
    );
  });

  it('comes back as it was', () => {
    const parent = makeRun();
    const run = ended(makeRun({}, parent), {
      name: 'ünïcode 😀 "quoted"\n',
      tags: ['a', 'ü'],
      metadata: new Map([
        ['plain', '"text"'],
        ['nested', '{"a":[1,null,{"b":true}]}'],
        ['__proto__', '{"__proto__":{"isAdmin":true}}'],
        ['constructor', '1'],
      ]),
      runtime: '{"sdk":"runspan"}',
      inputs: '{"__proto__":{"x":1},"text":"ü😀"}',
      outputs: '{"outputs":"\\u0000"}',
      events: '[{"name":"e","time":"2026-01-02T03:04:05.000000Z"}]',
      error: 'Error: no\n    at x',
      attachments: [
        { name: 'empty', mimeType: 'application/octet-stream', bytes: new Uint8Array(0) },
        { name: 'ünï', mimeType: 'image/png', bytes: Uint8Array.from([255, 82, 83, 80, 0]) },
      ],
    });
    const record: SpooledRecord = { op: 'patch', isEnded: true, run };
    expect(decodeRecord(encodeRecord(record))).toEqual(record);
    expect(({} as Record<string, unknown>).isAdmin).toBeUndefined();
  });

  it('carries nothing of the end before there is one', () => {
    const run = ended(makeRun({ inputs: '{"a":1}', outputs: '{"b":1}', events: '[1]', error: 'Error: later' }));
    const { outputs, events, error, endTime, ...start } = run;
    expect(decodeRecord(encodeRecord({ op: 'post', isEnded: false, run }))?.run).toEqual({
      ...start,
      outputs: undefined,
      events: undefined,
      error: undefined,
      endTime: undefined,
    });
  });

  it('leaves blobs out, says how many, and leaves the run as it is', () => {
    const kept = { name: 'kept', mimeType: 'text/plain', bytes: Buffer.from('x') };
    const blob = (name: string) => ({ name, mimeType: 'text/plain', bytes: new Blob(['y']) });
    const metadata = new Map([['dropped_attachments', '2']]);
    const attachments = [blob('one'), kept, blob('two')];
    const run = ended(makeRun({ attachments, metadata }));
    const read = decodeRecord(encodeRecord({ op: 'post', isEnded: true, run }))?.run;
    expect(read?.attachments).toEqual([{ ...kept, bytes: Uint8Array.from(Buffer.from('x')) }]);
    expect([...(read?.metadata ?? [])]).toEqual([['dropped_attachments', '4']]);
    expect(run.attachments).toBe(attachments);
    expect([...metadata]).toEqual([['dropped_attachments', '2']]);
  });

  it('holds on to no bytes of the file that it was read from', () => {
    const attachments = [{ name: 'a', mimeType: 'text/plain', bytes: Buffer.from('x') }];
    const file = encodeRecord({ op: 'post', isEnded: true, run: ended(makeRun({ attachments })) });
    expect(decodeRecord(file)?.run.attachments?.[0]?.bytes).toHaveProperty('buffer.byteLength', 1);
  });
});

describe('bytes', () => {
  it('are a record when it has no more than a run needs', () => {
    expect(decodeRecord(laid(MAIN))).toMatchObject({ op: 'post', isEnded: true, run: { id: ID, name: 'ask' } });
  });

  it.each<[string, Uint8Array]>([
    ['nothing', Buffer.alloc(0)],
    ['half a length', Buffer.from([0, 0])],
    ['a length beyond the end', Buffer.from([0xff, 0xff, 0xff, 0xff, 1])],
    ['too few sections', sections('{"op":"post","isEnded":true}', JSON.stringify(MAIN), '', '')],
    ['half an attachment', laid(MAIN, '', '', '', 'name', 'text/plain')],
    ['more attachments than a run may have', laid(MAIN, '', '', '', ...Array(101).fill(['a', 'a/b', '']).flat())],
    ['an attachment with a name that is a path', laid(MAIN, '', '', '', '../x', 'text/plain', '')],
    ['an attachment with a type that is two header lines', laid(MAIN, '', '', '', 'a', 'text/plain\r\nx: y', '')],
    ['no UTF-8', laid(MAIN, Buffer.from([0x7b, 0xff, 0x7d]), '', '')],
    ['inputs that are no JSON', laid(MAIN, '{"a":}', '', '')],
    ['outputs that are no object', laid(MAIN, '', '[]', '')],
    ['events that are no list', laid(MAIN, '', '', '{}')],
    ['a main part that is a list', laid([])],
    ['a main part that is null', laid(null)],
    ['a main part that nests too deep', sections('{"op":"post","isEnded":true}', '['.repeat(1e5), '', '', '')],
    ['another operation', sections('{"op":"delete","isEnded":true}', JSON.stringify(MAIN), '', '', '')],
    ['an end that is no truth value', sections('{"op":"post","isEnded":1}', JSON.stringify(MAIN), '', '', '')],
    ['an id that breaks out of its part', laid({ ...MAIN, id: `${ID}"\r\n` })],
    ['no id', laid({ ...MAIN, id: undefined })],
    ['a trace id that is none', laid({ ...MAIN, trace_id: '1' })],
    ['a parent that is none', laid({ ...MAIN, parent_run_id: null })],
    ['an order that is none', laid({ ...MAIN, dotted_order: `${ORDER}"` })],
    ['the order of another run', laid({ ...MAIN, dotted_order: ORDER.replace(/1$/, '2') })],
    ['a start that is no time', laid({ ...MAIN, start_time: '2026-11-20","x":"' })],
    ['an end that is no time', laid({ ...MAIN, end_time: 'now' })],
    ['a name that is no text', laid({ ...MAIN, name: {} })],
    ['tags that are no texts', laid({ ...MAIN, tags: [1] })],
    ['an error that is no text', laid({ ...MAIN, error: {} })],
    ['metadata that is no object', laid({ ...MAIN, extra: { metadata: [] } })],
  ])('are no record: %s', (_, bytes) => {
    expect(decodeRecord(bytes)).toBeUndefined();
  });
});

describe('a damaged record', () => {
  const run = ended(makeRun({ name: 'ask "ü"', inputs: '{"id":"11111111-1111-7111-8111-111111111111"}' }, makeRun()));
  const { id, traceId, name } = run;
  /** The bytes of it, with a letter that no id has at the first place of a text, or of several. */
  const without = (...texts: readonly string[]): Uint8Array => {
    const bytes = Buffer.from(encodeRecord({ op: 'post', isEnded: true, run }));
    for (const text of texts) bytes[bytes.indexOf(text) + text.length - 1] = 0x78;
    return bytes;
  };

  it.each<[string, Uint8Array, object]>([
    ['all of it', without('"inputs'), { id, traceId, name }],
    ['by its place in the trace, where the id is damaged', without(`"id":"${id}`), { id, traceId, name }],
    ['without its trace', without(`"trace_id":"${traceId}`), { id, traceId: '', name }],
    ['without its name', without('"name":"'), { id, traceId, name: '' }],
    ['nothing, where there is nothing', Buffer.alloc(1_000), { id: '', traceId: '', name: '' }],
  ])('says whose it was as far as it can be read: %s', (_, bytes, expected) => {
    expect(salvageRecord(bytes)).toEqual(expected);
  });
});
