import { openAsBlob } from 'node:fs';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { configure, flush, startRun } from '#src/index.ts';
import { createReceiver, DEFAULT_SCOPE, MemoryStore, type Receiver, type Store } from '#src/receiver.ts';
import { forAllAsync } from './support/campaign.ts';
import { codePoint } from './support/code-point.ts';
import { ingestServer } from './support/ingest-server.ts';
import { logLines } from './support/log-lines.ts';
import { readParts } from './support/multipart-reader.ts';

const png = (length: number) => `data:image/png;base64,${Buffer.alloc(length, 7).toString('base64')}`;

async function receiving(): Promise<{ receiver: Receiver; store: Store }> {
  const store = new MemoryStore();
  const receiver = await createReceiver({ strict: true, store });
  configure({ endpoint: receiver.url });
  return { receiver, store };
}

async function attachedTo(id: string, store: Store): Promise<Record<string, string>> {
  const run = await store.details(DEFAULT_SCOPE, id);
  const found: Record<string, string> = {};
  for (const { name, size } of run?.attachments ?? []) {
    const attachment = await store.attachment(DEFAULT_SCOPE, id, name);
    expect(attachment?.bytes).toHaveLength(size);
    found[name] = `${attachment?.mimeType} ${Buffer.from(attachment?.bytes ?? '')
      .toString('latin1')
      .slice(0, 20)}`;
  }
  return found;
}

afterEach(() => {
  configure({ tracing: false });
});

describe('attachments', () => {
  it.each([false, true])('of every kind arrive, with a separate post: %s', async (isApart) => {
    const { receiver, store } = await receiving();
    const run = startRun({
      name: 'all',
      inputs: { image: png(3_000), file: new File(['in'], 'x', { type: 'text/csv' }) },
    });
    if (isApart) await flush();
    run.attach('bytes', Buffer.from('bytes'), 'text/plain');
    run.attach('blob', await openAsBlob(import.meta.filename, { type: 'text/x-typescript' }));
    run.end({ drawn: Buffer.alloc(2_000, 'drawn') });
    expect(await flush()).toEqual({ ok: true, pending: 0 });
    const found = await attachedTo(run.id, store);
    await receiver.close();

    expect(found).toEqual({
      inputs_1: `image/png ${'\x07'.repeat(20)}`,
      inputs_2: 'text/csv in',
      bytes: 'text/plain bytes',
      blob: 'text/x-typescript import { openAsBlob ',
      outputs_1: `application/octet-stream ${'drawn'.repeat(4)}`,
    });
  });

  it('of inputs are sent with the post, those of outputs with the patch', async () => {
    await using server = await ingestServer();
    configure({ endpoint: server.url });
    const run = startRun({ name: 'apart', inputs: { image: png(3_000) } });
    await flush();
    run.end({ image: png(4_000) });
    await flush();
    const names = server.received.map((request) => readParts(request).map(({ name }) => name.replace(run.id, '*')));

    expect(names).toEqual([
      ['post.*', 'post.*.inputs', 'attachment.*.inputs_1'],
      ['patch.*', 'patch.*.outputs', 'attachment.*.outputs_1'],
    ]);
  });

  it('arrive under any name without a dot, with any bytes, and lose no run', async () => {
    const { receiver, store } = await receiving();
    logLines();
    const content = fc.uint8Array({ maxLength: 50 });
    const texts = fc.oneof(
      fc.string({ unit: codePoint, minLength: 1, maxLength: 256 }),
      fc.constantFrom('"', '%22', '\0', '\r\n--'),
    );
    await forAllAsync(60, [fc.array(fc.tuple(texts, content), { maxLength: 5 })], async (given) => {
      const run = startRun({ name: 'any' });
      const expected = new Map<string, Uint8Array>();
      for (const [name, bytes] of given) {
        run.attach(name, bytes, 'image/png');
        // An escape is read back as what it stands for (HTML standard, "Multipart form data"), but for two of our own.
        const read = Buffer.from(name)
          .toString()
          .replaceAll('\0', '%00')
          .replace(/\\+$/, (atEnd) => '%5C'.repeat(atEnd.length))
          .replaceAll(/%(22|0D|0A)/g, (code) => decodeURIComponent(code));
        if (!name.includes('.') && !expected.has(read)) expected.set(read, bytes);
      }
      run.end();
      expect(await flush()).toEqual({ ok: true, pending: 0 });
      for (const [name, bytes] of expected) {
        expect(await store.attachment(DEFAULT_SCOPE, run.id, name)).toEqual({ name, bytes, mimeType: 'image/png' });
      }
      expect((await receiver.trace(run.id))[0]?.attachments ?? []).toHaveLength(expected.size);
    });
    await receiver.close();
  });

  it('are left out in simple ingestion, and the rest of the run arrives', async () => {
    await using server = await ingestServer(({ path }) => ({ status: path === '/runs/multipart' ? 404 : 202 }));
    configure({ endpoint: server.url });
    const lines = logLines();
    startRun({ name: 'simple', inputs: { image: png(900) } }).end({ ok: true });
    await flush();
    const [, post] = server.received;

    expect(JSON.parse(String(post?.body)).inputs).toEqual({ image: '[Attachment inputs_1: image/png, 900 bytes]' });
    expect(lines).toContainEqual(expect.stringMatching(/^warn: .*attachments are not sent$/));
  });
});
