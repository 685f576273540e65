import { describe, expect, test } from 'vitest';
import { redact } from '../../src/payload/redact.ts';
import { encodePayload } from '../../src/payload/serialize.ts';
import { LIMITS, makeRun, makeSink, watched } from '../run/memory-sink.ts';
import { told } from '../support/told.ts';

const png = (length: number, fill = 7) => `data:image/png;base64,${Buffer.alloc(length, fill).toString('base64')}`;
const encoded = (value: unknown, capture = {}) => {
  const { json, attachments } = encodePayload('inputs', value, makeSink(capture).capture);
  return { payload: JSON.parse(json), attachments };
};

describe('a payload', () => {
  test.each([
    [1_023, false],
    [1_024, false],
    [1_025, true],
  ])('with %i bytes in it attaches them: %s', (size, isAttached) => {
    const bytes = new Uint8Array(size).fill(5);
    const { payload, attachments } = encoded({ bytes });
    const base64 = Buffer.alloc(size, 5).toString('base64');
    expect(payload.bytes).toEqual({
      type: 'Uint8Array',
      byteLength: size,
      ...(isAttached ? { attachment: 'inputs_1' } : { base64 }),
    });
    expect(attachments).toEqual(
      isAttached ? [{ name: 'inputs_1', bytes, mimeType: 'application/octet-stream' }] : undefined,
    );
  });

  test.each<[string, ArrayBufferView | ArrayBufferLike]>([
    ['Buffer', Buffer.alloc(4_096, 1)],
    ['ArrayBuffer', new ArrayBuffer(4_096)],
    ['SharedArrayBuffer', new SharedArrayBuffer(4_096)],
    ['DataView', new DataView(new ArrayBuffer(5_000), 4, 4_096)],
    ['Float64Array', new Float64Array(512)],
  ])('attaches the bytes of a %s', (type, value) => {
    const { payload, attachments } = encoded({ nested: [{ value }] });
    expect(payload.nested[0].value).toEqual({ type, byteLength: 4_096, attachment: 'inputs_1' });
    expect(attachments?.[0]?.bytes).toHaveProperty('byteLength', 4_096);
  });

  test('attaches a copy, so that a later change is not seen', () => {
    const bytes = new Uint8Array(2_000);
    const { attachments } = encoded(bytes);
    bytes.fill(1);
    expect(attachments?.[0]?.bytes).toEqual(new Uint8Array(2_000));
  });

  test('attaches Blobs and files of any size as they are, with their type', () => {
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

  test('attaches a data URI that is longer than a payload may be', () => {
    const { payload, attachments } = encoded(
      { url: png(9_000) },
      { payload: { depth: 9, width: 9, nodes: 99, bytes: 2_000 } },
    );
    expect(payload).toEqual({ url: '[Attachment inputs_1: image/png, 9000 bytes]' });
    expect(attachments).toHaveLength(1);
  });

  test('attaches once what comes twice', () => {
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
    ['is percent-encoded', `data:image/svg+xml,${'%3Csvg%3E'.repeat(200)}`],
    ['is no base64', `${png(900)}*`],
    ['has at most 1024 characters', png(700)],
  ])('keeps a data URI that %s as text', (_, url) => {
    expect(encoded({ url })).toEqual({ payload: { url }, attachments: undefined });
  });

  test.each([
    [2_999, 2],
    [3_000, 2],
    [3_001, 1],
  ])('with %i bytes more where there is room for 3000 attaches %i, and says what is left out', (size, count) => {
    const lines = told();
    const { payload, attachments } = encoded(
      { first: new Uint8Array(2_000), bytes: new Uint8Array(size), text: png(4_000) },
      { attachmentBytes: 5_000 },
    );
    expect(attachments).toHaveLength(count);
    const attachment = count === 2 ? 'inputs_2' : '[Left out: 3001 bytes]';
    expect(payload.bytes).toEqual({ type: 'Uint8Array', byteLength: size, attachment });
    expect(payload.text).toBe('[Attachment left out: image/png, 4000 bytes]');
    expect(lines).toEqual([expect.stringContaining('beyond limits.attachmentBytes')]);
  });

  test('attaches a hundred values at the most', () => {
    told();
    const { payload, attachments } = encoded(Array.from({ length: 101 }, () => new Uint8Array(1_025)));
    expect(attachments).toHaveLength(100);
    expect(payload.input[99].attachment).toBe('inputs_100');
    expect(payload.input[100].attachment).toBe('[Left out: 1025 bytes]');
  });

  test.each<[string, unknown]>([
    ['a buffer that was transferred', transferred()],
    ['what only looks like a Blob', Object.create(Blob.prototype)],
    ['a Blob whose type throws', hostileBlob()],
  ])('tells of %s in its place, and keeps the rest', (_, value) => {
    const { payload } = encoded({ value, more: 1, image: png(900) });
    expect(payload).toMatchObject({ more: 1, image: '[Attachment inputs_1: image/png, 900 bytes]' });
  });
});

describe('a run', () => {
  test('has what was in its inputs from the start, what was in its outputs in the end', () => {
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

  test('names what it attaches around the names that it has been given', () => {
    const { run, sink, record } = makeRun();
    run.attach('outputs_1', new Uint8Array(1));
    run.end({ a: new Blob(['x']), b: new Blob(['y']) });
    expect(record()?.outputs).toMatchObject({ a: { attachment: 'outputs_2' }, b: { attachment: 'outputs_3' } });
    expect(sink.ended[0]?.attachments?.map(({ name }) => name)).toEqual(['outputs_1', 'outputs_2', 'outputs_3']);
  });

  test('lets go of the attachments of a payload that is replaced, and has their room again', () => {
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

  test('gives new inputs another name once the first have been delivered', () => {
    const { run, sink, record } = makeRun({ inputs: { a: new Blob(['a']) } });
    Object.assign(sink.started[0] as object, { attachments: [] });
    run.set({ inputs: { b: new Blob(['b']) } });
    expect(record()?.inputs).toMatchObject({ b: { attachment: 'inputs_2' } });
  });

  test('attaches what is in the chunks of a stream', () => {
    const { run, sink } = makeRun();
    const texts = [1, 2].map((fill) => run.encode({ image: png(900, fill) }));
    run.keepResult({ interim: new Blob(['x']) });
    run.keepOutputs(`{"outputs":[${texts}]}`);
    run.end();
    expect(JSON.parse(sink.ended[0]?.outputs ?? '').outputs).toEqual([
      { image: '[Attachment outputs_1: image/png, 900 bytes]' },
      { image: '[Attachment outputs_2: image/png, 900 bytes]' },
    ]);
    expect(sink.ended[0]?.attachments?.map(({ name }) => name)).toEqual(['outputs_1', 'outputs_2']);
  });

  test('attaches nothing of events and metadata: their beginning stays, or their size', () => {
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

  test('attaches nothing of what is hidden, and reads none of it', () => {
    const { object, reads } = watched();
    const inputs = { object, image: png(900), blob: new Blob(['x']) };
    const { run, sink } = makeRun({ inputs }, { hideInputs: true, hideOutputs: true });
    run.set({ inputs });
    run.encode(inputs);
    run.end(inputs);
    expect(reads()).toBe(0);
    expect(sink.ended[0]?.attachments).toBeUndefined();
  });
});

function transferred(): ArrayBuffer {
  const buffer = new ArrayBuffer(8_000);
  structuredClone(buffer, { transfer: [buffer] });
  return buffer;
}

function hostileBlob(): Blob {
  return Object.defineProperty(new Blob(['x']), 'type', {
    get: () => {
      throw new Error('no type');
    },
  });
}

test('a payload that cannot be hidden takes its attachments with it', () => {
  told();
  const redaction = redact({
    patterns: [/secret/],
    replace: () => {
      throw new Error('no');
    },
  });
  const { sink, record } = makeRun(
    { inputs: { bytes: new Uint8Array(2_000), text: 'a secret' } },
    { payload: { ...LIMITS, redaction } },
  );
  expect(record()?.inputs).toEqual({ input: '[Redaction failed]' });
  expect(sink.started[0]?.attachments).toBeUndefined();
});
