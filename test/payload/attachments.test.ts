import { createReadStream, openAsBlob, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ATTACHMENTS_MAX } from '../../src/payload/attachment.ts';
import { RunAttachments } from '../../src/payload/attachments.ts';
import { redact } from '../../src/payload/redact.ts';
import type { Run } from '../../src/run/run.ts';
import { LIMITS, makeRun, makeSink } from '../run/memory-sink.ts';
import { makeRun as makeRecord } from '../support/encoded-run.ts';
import { temporaryFolder } from '../support/folders.ts';
import { collectUntil } from '../support/garbage.ts';
import { told } from '../support/told.ts';

const ONE = new Uint8Array(1);
const names = (record: { attachments: { name: string }[] | undefined } | undefined) =>
  record?.attachments?.map(({ name }) => name);

/** A stream that the test feeds. */
function fedStream() {
  let controller!: ReadableStreamDefaultController;
  const seen = { cancelled: false };
  const stream = new ReadableStream({
    start: (given) => {
      controller = given;
    },
    cancel: () => {
      seen.cancelled = true;
    },
  });
  return { stream, controller, seen };
}

/** A run whose sink says when it has been handed the end of the run. */
function watchedRun(capture: Parameters<typeof makeRun>[1] = {}) {
  const made = makeRun({}, capture);
  const ending: string[] = [];
  const handed = new Promise<void>((resolve) => {
    const { end } = made.sink;
    Object.assign(made.sink, {
      ending: () => void ending.push('ending'),
      end: (record: Parameters<typeof end>[0]) => {
        end(record);
        resolve();
      },
    });
  });
  return { ...made, ending, handed };
}

describe('Run.attach', () => {
  test('keeps a copy of bytes, whatever holds them', () => {
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

  test('holds Blobs as they are, files too, and takes their type where none is given', async () => {
    const { run, sink } = makeRun();
    const file = await openAsBlob(import.meta.filename, { type: 'text/x-typescript' });
    const blobs = [
      new File(['a'], 'a.png', { type: 'image/png' }),
      new Blob(['b']),
      new Blob([], { type: 'odd' }),
      file,
    ];
    for (const [at, blob] of blobs.entries()) run.attach(`n${at}`, blob);
    run.attach('given', file, 'text/plain');
    expect(sink.started[0]?.attachments?.map(({ mimeType }) => mimeType)).toEqual([
      'image/png',
      'application/octet-stream',
      'application/octet-stream',
      'text/x-typescript',
      'text/plain',
    ]);
    expect(sink.started[0]?.attachments?.[3]?.bytes).toBe(file);
  });

  test.each<[string, unknown[]]>([
    ['a name with a dot', ['a.png', ONE, 'image/png']],
    ['no name', ['', ONE, 'image/png']],
    ['a name that is no text', [1, ONE, 'image/png']],
    ['a name of 257 characters', ['x'.repeat(257), ONE, 'image/png']],
    ['bytes that are an array', ['a', [1], 'image/png']],
    ['text', ['a', 'bytes', 'text/plain']],
    ['no content', ['a']],
    ['a type that is no text', ['a', ONE, null]],
    ['a type without a slash', ['a', ONE, 'png']],
    ['a type that would end its header line', ['a', ONE, 'image/png\r\nx-evil: 1']],
    ['a type with parameters that would', ['a', ONE, 'image/png; a=\r\nx-evil: 1']],
    ['a type beyond ASCII', ['a', ONE, 'image/png; a=ü']],
    ['what only looks like a Blob', ['a', Object.create(Blob.prototype), 'image/png']],
    ['a buffer that was transferred', ['a', transferred(), 'image/png']],
  ])('leaves out %s, and says so once', (_, given) => {
    const lines = told();
    const { run, sink } = makeRun();
    run.attach(...(given as Parameters<Run['attach']>));
    run.attach(...(given as Parameters<Run['attach']>));
    expect(sink.started[0]?.attachments ?? []).toEqual([]);
    expect(lines).toEqual([expect.stringMatching(/^warn: Run\.attach/)]);
  });

  test('takes a name of 256 characters, quotes, line breaks and any script', () => {
    const { run, sink } = makeRun();
    const given = ['x'.repeat(256), '"', '\r', '\n', 'ü 日本 😀', '%', ';='];
    for (const name of given) run.attach(name, ONE);
    expect(names(sink.started[0])).toEqual(given);
  });

  test.each([
    ['photo', 'photo'],
    ['"', '%22'],
    ['\ud800', '\udfff'],
  ])('takes a name once per run, also one that the wire would make the same: %j and %j', (first, second) => {
    const lines = told();
    const { run, sink } = makeRun();
    run.attach(first, new Uint8Array([1]), 'image/png');
    run.attach(second, new Uint8Array([2]), 'image/png');
    expect(sink.started[0]?.attachments).toEqual([{ name: first, bytes: new Uint8Array([1]), mimeType: 'image/png' }]);
    expect(lines).toEqual([expect.stringContaining('expected `name` to be new to the run')]);
  });

  test('takes a name once, though the first has been delivered', () => {
    told();
    const { run, sink } = makeRun();
    run.attach('photo', ONE);
    Object.assign(sink.started[0] as object, { attachments: [] });
    run.attach('photo', ONE);
    expect(sink.started[0]?.attachments).toEqual([]);
  });

  test.each([
    [9, 2],
    [10, 2],
    [11, 1],
  ])('with a second one of %i bytes at a limit of 20 keeps %i', (size, kept) => {
    told();
    const { run, sink } = makeRun({}, { attachmentBytes: 20 });
    run.attach('first', new Uint8Array(10), 'image/png');
    run.attach('second', new Blob([new Uint8Array(size)]), 'image/png');
    expect(sink.started[0]?.attachments).toHaveLength(kept);
  });

  test('leaves everything out where the redaction could not be understood', () => {
    const lines = told();
    const { run, record } = makeRun({}, { payload: { ...LIMITS, redaction: redact({ paths: ['nowhere'] }) } });
    run.attach('photo', ONE);
    run.end();
    expect(record()).not.toHaveProperty('attachments');
    expect(lines.at(-1)).toMatch(/every payload is hidden; the attachment was left out/);
  });

  test('holds no bytes that its record has let go of, though the application holds the run', async () => {
    const { run, sink } = makeRun({ inputs: { photo: new Uint8Array(2_000) } });
    run.attach('voice', ONE);
    const [record] = sink.started;
    expect(record?.attachments).toHaveLength(2);
    const held = record?.attachments?.map(({ bytes }) => new WeakRef(bytes)) ?? [];
    if (record !== undefined) record.attachments = undefined;
    await collectUntil(() => held.every((bytes) => bytes.deref() === undefined));
    expect(held.map((bytes) => bytes.deref())).toEqual([undefined, undefined]);
    expect(run.name).toBe('work');
  });

  test('does not trust the size that is put on a Blob', () => {
    told();
    const liar = Object.defineProperty(new Blob([new Uint8Array(21)]), 'size', { value: 1 });
    const { run, sink } = makeRun({}, { attachmentBytes: 20 });
    run.attach('first', liar);
    expect(sink.started[0]?.attachments).toBeUndefined();
  });

  test.each([-1, 0, 1])(`keeps ${ATTACHMENTS_MAX} per run, of ${ATTACHMENTS_MAX} %i`, (more) => {
    const lines = told();
    const { run, sink } = makeRun();
    for (let n = 0; n < ATTACHMENTS_MAX + more; n++) run.attach(`n${n}`, ONE);
    expect(sink.started[0]?.attachments).toHaveLength(Math.min(ATTACHMENTS_MAX, ATTACHMENTS_MAX + more));
    expect(lines).toHaveLength(Math.max(0, more));
  });
});

test('a file of a gigabyte is left out unread, as are paths in its place [fault 116]', async () => {
  const lines = told();
  const folder = temporaryFolder();
  onTestFinished(folder.remove);
  const path = join(folder.path, 'large');
  writeFileSync(path, '');
  truncateSync(path, 1_000_000_000);
  const { run, sink } = makeRun({}, { attachmentBytes: 20_000_000 });
  run.attach('large', await openAsBlob(path));
  run.attach('path', path as never);
  run.attach('url', pathToFileURL(path) as never);
  expect(names(sink.started[0])).toBeUndefined();
  expect(lines).toEqual([
    expect.stringContaining('attachments over limits.attachmentBytes; the attachment was left out.'),
    expect.stringContaining('expected `content` to be bytes, a Blob or a stream; the attachment was left out.'),
  ]);
});

describe('a stream that is attached', () => {
  test('is read while the run goes on', async () => {
    const { run, sink, handed, ending } = watchedRun();
    run.attach('log', Readable.from(['ab', 'c']), 'text/plain');
    await new Promise((resolve) => setImmediate(resolve));
    expect(sink.started[0]?.attachments).toEqual([
      { name: 'log', bytes: new Uint8Array([97, 98, 99]), mimeType: 'text/plain' },
    ]);
    run.end();
    await handed;
    expect(ending).toEqual([]);
  });

  test('makes the run wait for it, and leaves its end time alone', async () => {
    const { run, sink, ending, handed } = watchedRun();
    const { stream, controller } = fedStream();
    run.attach('log', stream);
    controller.enqueue(new Uint8Array([1]));
    run.end({ done: true });
    const { endTime } = sink.started[0] as { endTime: string | undefined };
    expect(endTime).toBeDefined();
    expect(run.isOpen).toBe(false);
    expect(ending).toEqual(['ending']);
    expect(sink.ended).toEqual([]);
    controller.enqueue(new Uint8Array([2]));
    controller.close();
    await handed;
    expect(sink.ended[0]).toMatchObject({ endTime, outputs: '{"done":true}' });
    expect(sink.ended[0]?.attachments).toEqual([
      { name: 'log', bytes: new Uint8Array([1, 2]), mimeType: 'application/octet-stream' },
    ]);
  });

  test('that fails is left out with one line, and the run is kept, with its other streams [fault 116]', async () => {
    const lines = told();
    const { run, sink, handed } = watchedRun();
    const bad = fedStream();
    run.attach('bad', bad.stream);
    run.attach('good', Readable.from(['x']));
    run.fail(new Error('of the run'));
    bad.controller.error(new Error('wire cut'));
    await handed;
    expect(sink.ended).toHaveLength(1);
    expect(names(sink.ended[0])).toEqual(['good']);
    expect(lines).toEqual([
      expect.stringMatching(/stream could not be read: wire cut; the attachment was left out\.$/),
    ]);
  });

  test.each([
    [19, ['log']],
    [20, ['log']],
    [21, undefined],
  ])('with %i bytes at a limit of 20 leaves %j [fault 116]', async (size, kept) => {
    told();
    const { run, sink, handed } = watchedRun({ attachmentBytes: 20 });
    run.attach('log', Readable.from([Buffer.alloc(15), Buffer.alloc(size - 15)]));
    run.end();
    await handed;
    expect(names(sink.ended[0])).toEqual(kept);
  });

  test('that was too large leaves its room to others', async () => {
    told();
    const { run, sink } = makeRun({}, { attachmentBytes: 20 });
    run.attach('log', Readable.from([Buffer.alloc(15), Buffer.alloc(6)]));
    await new Promise((resolve) => setImmediate(resolve));
    run.attach('photo', new Uint8Array(20));
    expect(names(sink.started[0])).toEqual(['photo']);
  });

  test.each<[string, RegExp, (folder: string) => string]>([
    ['a file that is gone', /ENOENT/, (folder) => join(folder, 'gone')],
    ['a folder', /EISDIR/, (folder) => folder],
  ])('of %s is left out with one line [fault 116]', async (_, complaint, pathIn) => {
    const lines = told();
    const folder = temporaryFolder();
    onTestFinished(folder.remove);
    const { run, sink, handed } = watchedRun();
    run.attach('log', createReadStream(pathIn(folder.path)));
    run.attach('good', ONE);
    run.end();
    await handed;
    expect(names(sink.ended[0])).toEqual(['good']);
    expect(lines).toEqual([expect.stringMatching(complaint)]);
  });

  test('that does not end is waited for no longer than the limit, and cancelled [fault 116]', async () => {
    const lines = told();
    const record = makeRecord();
    const attachments = new RunAttachments(record, { attachmentBytes: 1_000, payload: LIMITS }, 1);
    const { stream, seen } = fedStream();
    attachments.attach('log', stream, undefined);
    await attachments.streamsRead();
    expect(record.attachments).toBeUndefined();
    expect(seen.cancelled).toBe(true);
    expect(lines).toEqual([expect.stringContaining('it was not at its end 1 ms after its run')]);
  });

  test('warns of nothing on standard error, however many there are', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on('warning', note);
    const { run, sink, handed } = watchedRun();
    for (let n = 0; n < 50; n++) run.attach(`n${n}`, Readable.from(['x']));
    run.end();
    await handed;
    process.off('warning', note);
    expect(sink.ended[0]?.attachments).toHaveLength(50);
    expect(warnings).toEqual([]);
  });

  test.each<[string, (run: Run) => void]>([
    ['the run has ended', (run) => run.end()],
    ['its name is taken', (run) => run.attach('log', ONE)],
    [
      'there is no room',
      (run) => {
        for (let n = 0; n < ATTACHMENTS_MAX; n++) run.attach(`n${n}`, ONE);
      },
    ],
  ])('is closed unread when %s', (_, before) => {
    told();
    const { run } = makeRun();
    before(run);
    const { stream, seen } = fedStream();
    run.attach('log', stream);
    expect(seen.cancelled).toBe(true);
  });

  test('is closed unread when the run is not recorded', () => {
    const sink = makeSink({}, () => true);
    const { run } = makeRun({ exporter: sink });
    const { stream, seen } = fedStream();
    run.attach('log', stream);
    expect(seen.cancelled).toBe(true);
  });
});

function transferred(): ArrayBuffer {
  const buffer = new ArrayBuffer(8);
  structuredClone(buffer, { transfer: [buffer] });
  return buffer;
}
