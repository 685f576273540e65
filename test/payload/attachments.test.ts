import { openAsBlob } from 'node:fs';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { ATTACHMENTS_MAX } from '#src/payload/attachment.ts';
import { redact } from '#src/payload/redaction/redact.ts';
import { encodePayload } from '#src/payload/serialize.ts';
import type { Run } from '#src/run/run.ts';
import { LIMITS, makeRun, makeSink } from '../run/memory-sink.ts';
import { logLines } from '../support/log-lines.ts';

const ONE = new Uint8Array(1);
const names = (record: { attachments: { name: string }[] | undefined } | undefined) =>
  record?.attachments?.map(({ name }) => name);

describe('Run.attach', () => {
  test('copies bytes of every kind', () => {
    const { run, sink } = makeRun();
    const bytes = new Uint8Array([0, 1, 2, 3]);
    const shared = new Uint8Array(new SharedArrayBuffer(2));
    run.attach('part', bytes.subarray(1, 3), 'image/png');
    run.attach('buffer', bytes.buffer);
    run.attach('view', new DataView(bytes.buffer, 3));
    run.attach('shared', shared);
    run.attach('voice "1"', Buffer.from('hi'), 'audio/wav; rate="8000"');
    bytes.fill(9);
    shared.fill(9);
    const unknown = 'application/octet-stream';
    expect(sink.started[0]?.attachments).toEqual([
      { name: 'part', bytes: new Uint8Array([1, 2]), mimeType: 'image/png' },
      { name: 'buffer', bytes: new Uint8Array([0, 1, 2, 3]), mimeType: unknown },
      { name: 'view', bytes: new Uint8Array([3]), mimeType: unknown },
      { name: 'shared', bytes: new Uint8Array([0, 0]), mimeType: unknown },
      { name: 'voice "1"', bytes: new Uint8Array([104, 105]), mimeType: 'audio/wav; rate="8000"' },
    ]);
  });

  test('keeps Blobs and files uncopied, and uses their type by default', async () => {
    const { run, sink } = makeRun();
    const file = await openAsBlob(import.meta.filename, { type: 'text/x-typescript' });
    run.attach('file', new File(['a'], 'a.png', { type: 'image/png' }));
    run.attach('odd', new Blob([], { type: 'odd' }));
    run.attach('opened', file);
    run.attach('given', file, 'text/plain');
    expect(sink.started[0]?.attachments).toMatchObject([
      { name: 'file', mimeType: 'image/png' },
      { name: 'odd', mimeType: 'application/octet-stream' },
      { name: 'opened', mimeType: 'text/x-typescript', bytes: file },
      { name: 'given', mimeType: 'text/plain', bytes: file },
    ]);
  });

  test.each<[string, unknown[]]>([
    ['a name with a dot', ['a.png', ONE, 'image/png']],
    ['no name', ['', ONE, 'image/png']],
    ['a name that is no text', [1, ONE, 'image/png']],
    ['a name of 257 characters', ['x'.repeat(257), ONE, 'image/png']],
    ['bytes that are an array', ['a', [1], 'image/png']],
    ['text', ['a', 'bytes', 'text/plain']],
    ['no content', ['a']],
    ['a path', ['a', import.meta.filename, 'text/plain']],
    ['a URL', ['a', new URL(import.meta.url)]],
    ['a stream', ['a', Readable.from(['text'])]],
    ['a web stream', ['a', new ReadableStream()]],
    ['a type that is no text', ['a', ONE, null]],
    ['a type without a slash', ['a', ONE, 'png']],
    ['a type that would end its header line', ['a', ONE, 'image/png\r\nx-evil: 1']],
    ['a type with parameters that would', ['a', ONE, 'image/png; a=\r\nx-evil: 1']],
    ['a type beyond ASCII', ['a', ONE, 'image/png; a=ü']],
    ['an object with the prototype of Blob', ['a', Object.create(Blob.prototype), 'image/png']],
    ['a buffer that was transferred', ['a', transferred(), 'image/png']],
  ])('ignores %s, and reports it once', (_, given) => {
    const lines = logLines();
    const { run, sink } = makeRun();
    run.attach(...(given as Parameters<Run['attach']>));
    run.attach(...(given as Parameters<Run['attach']>));
    expect(sink.started[0]?.attachments ?? []).toEqual([]);
    expect(lines).toEqual([expect.stringMatching(/^warn: Run\.attach/)]);
  });

  test.each([
    ['photo', 'photo'],
    ['"', '%22'],
    ['\ud800', '\udfff'],
  ])('accepts a name once per run, in its form on the wire: %j and %j', (first, second) => {
    const lines = logLines();
    const { run, sink } = makeRun();
    run.attach(first, new Uint8Array([1]), 'image/png');
    run.attach(second, new Uint8Array([2]), 'image/png');
    expect(sink.started[0]?.attachments).toEqual([{ name: first, bytes: new Uint8Array([1]), mimeType: 'image/png' }]);
    expect(lines).toEqual([expect.stringContaining('expected `name` to be unique within the run')]);
  });

  test.each([
    [9, 2],
    [10, 2],
    [11, 1],
  ])(
    'keeps, with a limit of 20 bytes and 10 of them used, of %i more bytes a total of %i attachments',
    (size, kept) => {
      logLines();
      const { run, sink } = makeRun({}, { attachmentBytes: 20 });
      run.attach('first', new Uint8Array(10), 'image/png');
      run.attach('second', new Blob([new Uint8Array(size)]), 'image/png');
      expect(sink.started[0]?.attachments).toHaveLength(kept);
    },
  );

  test.each([-1, 0, 1])(`keeps ${ATTACHMENTS_MAX} per run, of ${ATTACHMENTS_MAX} %i`, (more) => {
    const lines = logLines();
    const { run, sink } = makeRun();
    for (let n = 0; n < ATTACHMENTS_MAX + more; n++) run.attach(`n${n}`, ONE);
    expect(sink.started[0]?.attachments).toHaveLength(Math.min(ATTACHMENTS_MAX, ATTACHMENTS_MAX + more));
    expect(lines).toHaveLength(Math.max(0, more));
  });
});

function fails(): never {
  throw new Error('no');
}

function transferred(): ArrayBuffer {
  const buffer = new ArrayBuffer(8);
  structuredClone(buffer, { transfer: [buffer] });
  return buffer;
}

const png = (length: number, fill = 7) => `data:image/png;base64,${Buffer.alloc(length, fill).toString('base64')}`;
const encoded = (value: unknown, capture = {}) => {
  const { json, attachments } = encodePayload('inputs', value, makeSink(capture).capture);
  return { payload: JSON.parse(json), attachments };
};

describe('a payload with binary values', () => {
  test.each([
    [1_023, false],
    [1_024, false],
    [1_025, true],
  ])('with %i bytes attaches a copy of them: %s', (size, isAttached) => {
    const bytes = new Uint8Array(size).fill(5);
    const { payload, attachments } = encoded({ bytes });
    const copy = bytes.slice();
    bytes.fill(6);
    const base64 = Buffer.alloc(size, 5).toString('base64');
    expect(payload.bytes).toEqual({
      type: 'Uint8Array',
      byteLength: size,
      ...(isAttached ? { attachment: 'inputs_1' } : { base64 }),
    });
    expect(attachments).toEqual(
      isAttached ? [{ name: 'inputs_1', bytes: copy, mimeType: 'application/octet-stream' }] : undefined,
    );
  });

  test('attaches Blobs and files of any size uncopied, with their type', () => {
    const [blob, file] = [new Blob(['ab']), new File(['abc'], 'a.png', { type: 'image/png' })];
    const { payload, attachments } = encoded({ blob, file });
    expect(payload).toEqual({
      blob: { type: 'Blob', byteLength: 2, attachment: 'inputs_1' },
      file: { type: 'File', byteLength: 3, attachment: 'inputs_2' },
    });
    expect(attachments).toEqual([
      { name: 'inputs_1', bytes: blob, mimeType: 'application/octet-stream' },
      { name: 'inputs_2', bytes: file, mimeType: 'image/png' },
    ]);
    expect(attachments?.[1]?.bytes).toBe(file);
  });

  test('attaches the bytes of a data URI, and keeps the rest of the message', () => {
    const messages = [
      { role: 'user', content: [{ type: 'image_url', image_url: { url: png(9_000) } }, 'What is it?'] },
    ];
    const { payload, attachments } = encoded({ messages });
    const url = '[Attachment inputs_1: image/png, 9000 bytes]';
    expect(payload.messages).toEqual([
      { role: 'user', content: [{ type: 'image_url', image_url: { url } }, 'What is it?'] },
    ]);
    expect(attachments).toEqual([{ name: 'inputs_1', bytes: Buffer.alloc(9_000, 7), mimeType: 'image/png' }]);
  });

  test('attaches a data URI longer than the payload limit', () => {
    const { payload, attachments } = encoded(
      { url: png(9_000) },
      { payload: { depth: 9, width: 9, nodes: 99, bytes: 2_000 } },
    );
    expect(payload).toEqual({ url: '[Attachment inputs_1: image/png, 9000 bytes]' });
    expect(attachments).toHaveLength(1);
  });

  test('attaches a repeated value once', () => {
    const [bytes, blob] = [new Uint8Array(2_000), new Blob(['x'])];
    const { payload, attachments } = encoded([
      bytes,
      png(900),
      blob,
      bytes,
      png(900),
      blob,
      png(900, 8),
      bytes.slice(),
    ]);
    const markers = payload.input.map((item: string | { attachment: string }) =>
      typeof item === 'string' ? item.slice(12, 20) : item.attachment,
    );
    expect(markers.join(' ')).toBe('inputs_1 inputs_2 inputs_3 inputs_1 inputs_2 inputs_3 inputs_4 inputs_5');
    expect(attachments).toHaveLength(5);
  });

  test.each([
    [2_999, 2],
    [3_000, 2],
    [3_001, 1],
  ])(
    'attaches up to the limit, and marks omitted values: %i bytes with room for 3000, %i attachments',
    (size, count) => {
      const lines = logLines();
      const { payload, attachments } = encoded(
        { first: new Uint8Array(2_000), bytes: new Uint8Array(size), text: png(4_000) },
        { attachmentBytes: 5_000 },
      );
      expect(attachments).toHaveLength(count);
      const attachment = count === 2 ? 'inputs_2' : '[Left out: 3001 bytes]';
      expect(payload.bytes).toEqual({ type: 'Uint8Array', byteLength: size, attachment });
      expect(payload.text).toBe('[Attachment left out: image/png, 4000 bytes]');
      expect(lines).toEqual([expect.stringContaining('exceeded limits.attachmentBytes')]);
    },
  );

  test('attaches at most a hundred values', () => {
    logLines();
    const { payload, attachments } = encoded(Array.from({ length: 101 }, () => new Uint8Array(1_025)));
    expect(attachments).toHaveLength(100);
    expect(payload.input[99].attachment).toBe('inputs_100');
    expect(payload.input[100].attachment).toBe('[Left out: 1025 bytes]');
  });

  test.each<[string, unknown]>([
    ['a buffer that was transferred', transferred()],
    ['what only looks like a Blob', Object.create(Blob.prototype)],
    ['a Blob whose type throws', Object.defineProperty(new Blob(['x']), 'type', { get: fails })],
  ])('replaces %s by a marker, and keeps the rest', (_, value) => {
    const { payload } = encoded({ value, more: 1, image: png(900) });
    expect(payload).toMatchObject({ more: 1, image: '[Attachment inputs_1: image/png, 900 bytes]' });
  });
});

describe('a run with attachments of its payloads', () => {
  test('has those of its inputs from its start, and those of its outputs from its end', () => {
    const { run, sink, record } = makeRun({ inputs: { image: png(900) } });
    expect(sink.started[0]?.attachments).toMatchObject([{ name: 'inputs_1' }]);
    run.end({ drawn: new Blob(['x'], { type: 'image/gif' }) });
    expect(record()).toMatchObject({
      inputs: { image: '[Attachment inputs_1: image/png, 900 bytes]' },
      outputs: { drawn: { attachment: 'outputs_1' } },
    });
    expect(sink.ended[0]?.attachments).toMatchObject([
      { name: 'inputs_1' },
      { name: 'outputs_1', mimeType: 'image/gif' },
    ]);
  });

  test('generates names that the application has not used', () => {
    const { run, sink, record } = makeRun();
    run.attach('outputs_1', new Uint8Array(1));
    run.end({ a: new Blob(['x']), b: new Blob(['y']) });
    expect(record()?.outputs).toMatchObject({ a: { attachment: 'outputs_2' }, b: { attachment: 'outputs_3' } });
    expect(sink.ended[0]?.attachments?.map(({ name }) => name)).toEqual(['outputs_1', 'outputs_2', 'outputs_3']);
  });

  test('drops those of a replaced payload, which no longer count against the limit', () => {
    const { run, sink, record } = makeRun({ inputs: { a: new Uint8Array(6_000) } }, { attachmentBytes: 10_000 });
    run.set({ inputs: { b: new Uint8Array(7_000) }, outputs: { c: new Uint8Array(3_000) } });
    run.end({ d: new Uint8Array(3_000) });
    expect(record()).toMatchObject({
      inputs: { b: { attachment: 'inputs_1' } },
      outputs: { d: { attachment: 'outputs_1' } },
    });
    expect(sink.ended[0]?.attachments?.map(({ name, bytes }) => [name, (bytes as Uint8Array).length])).toEqual([
      ['inputs_1', 7_000],
      ['outputs_1', 3_000],
    ]);
  });

  test('attaches binary values of stream chunks', () => {
    const sink = makeSink();
    const images = function* () {
      for (const fill of [1, 2]) yield { image: png(900, fill) };
    };
    for (const _ of traceable(images, { exporter: sink })());
    expect(sink.records()[0]?.outputs?.outputs).toEqual([
      { image: '[Attachment outputs_1: image/png, 900 bytes]' },
      { image: '[Attachment outputs_2: image/png, 900 bytes]' },
    ]);
    expect(names(sink.ended[0])).toEqual(['outputs_1', 'outputs_2']);
  });

  test('attaches no value of events and metadata, which keep its beginning or its size', () => {
    const { run, sink, record } = makeRun();
    const data = { bytes: new Uint8Array(2_000), blob: new Blob(['abc']), image: png(900) };
    run.event('seen', data);
    run.set({ metadata: data });
    run.end();
    const kept = {
      bytes: { type: 'Uint8Array', byteLength: 2_000, base64: Buffer.alloc(1_024).toString('base64') },
      blob: { type: 'Blob', byteLength: 3 },
      image: png(900),
    };
    expect(record()).toMatchObject({ events: [{ kwargs: kept }], extra: { metadata: kept } });
    expect(sink.ended[0]?.attachments).toBeUndefined();
  });
});

test('a payload whose redaction fails has no attachments', () => {
  logLines();
  const redaction = redact({ patterns: [/secret/], replace: fails });
  const { sink, record } = makeRun(
    { inputs: { bytes: new Uint8Array(2_000), text: 'a secret' } },
    { payload: { ...LIMITS, redaction } },
  );
  expect(record()?.inputs).toEqual({ input: '[Redaction failed]' });
  expect(sink.started[0]?.attachments).toBeUndefined();
});

describe('a data URI', () => {
  const bytes = Buffer.alloc(900, 'bytes');
  const base64 = bytes.toString('base64');
  const attached = (url: string) => encoded({ url }).attachments?.[0];

  test.each<[string, number]>([
    [`data:image/svg+xml;charset=utf-8;base64,${base64}`, 900],
    ...[898, 899, 900, 901].map((length): [string, number] => [png(length), length]),
    ...[898, 899].map((length): [string, number] => [png(length).replace(/=+$/, ''), length]),
  ])('is attached: %s', (url, length) => {
    const [, mimeType] = /^data:(.*);base64,/.exec(url) ?? [];
    expect(attached(url)).toMatchObject({ mimeType, bytes: { byteLength: length } });
  });

  test.each([
    ['without a type', `data:;base64,${base64}`],
    ['with a type without a slash', `data:png;base64,${base64}`],
    ['with a type that would end its header line', `data:image/png\r\nx-evil: 1;base64,${base64}`],
    ['with percent-encoded bytes', `data:text/plain,${'%20'.repeat(500)}`],
    ['of at most 1024 characters', png(700)],
    ['without a comma', `data:image/png;base64${base64}`],
    ['with more than 300 characters before its comma', `data:image/png;${'a'.repeat(300)};base64,${base64}`],
    ['within other text', ` data:image/png;base64,${base64}`],
    ['with a character outside of the alphabet', `${base64.slice(0, -4)}AA*A`],
    ['with the alphabet of URLs', `${base64.slice(0, -4)}-_-_`],
    ['with white space', `${base64.slice(0, -4)}\nAAA`],
    ['with characters of two bytes', `${base64.slice(0, -4)}ŁŁŁŁ`],
    ['with padding in the middle', `${base64.slice(0, -8)}AA==AAAA`],
    ['with a lone character', `${base64}A`],
    ['with bits that belong to no byte', `${base64}AB==`],
    ['with too much padding', `${base64}A===`],
  ])('%s is kept as text', (_, text) => {
    const url = text.includes('data:') ? text : `data:image/png;base64,${text}`;
    expect(encoded({ url })).toEqual({ payload: { url }, attachments: undefined });
  });
});
