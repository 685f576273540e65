import { execFileSync } from 'node:child_process';
import { openAsBlob } from 'node:fs';
import { rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { attachmentFrames, readAttachments } from '../../src/export/attachment-parts.ts';
import { ended, makeItem, makeRun } from '../support/encoded-run.ts';
import { temporaryFolder } from '../support/folders.ts';
import { told } from '../support/told.ts';

const never = new AbortController().signal;

async function temporaryFile(content: string): Promise<string> {
  const { path: folder, remove } = temporaryFolder();
  onTestFinished(remove);
  const path = join(folder, 'file');
  await writeFile(path, content);
  return path;
}

const itemWith = (...contents: (Uint8Array | Blob)[]) =>
  makeItem(
    ended(makeRun({ attachments: contents.map((bytes, at) => ({ name: `n${at}`, bytes, mimeType: 'text/plain' })) })),
  );

describe('readAttachments', () => {
  it('gives bytes as they are, and reads Blobs and files', async () => {
    const bytes = Buffer.from('bytes');
    const item = itemWith(bytes, new Blob(['bl', 'ob']), await openAsBlob(await temporaryFile('file')));
    const parts = await readAttachments([item], never);

    expect(parts.map((part) => Buffer.from(part.bytes).toString())).toEqual(['bytes', 'blob', 'file']);
    expect(parts[0]?.bytes).toBe(bytes);
    expect(parts.map(({ partName }) => partName)).toEqual(
      ['n0', 'n1', 'n2'].map((name) => `attachment.${item.delivery.run.id}.${name}`),
    );
  });

  it.each<[string, (path: string) => Promise<void>]>([
    ['has changed', (path) => writeFile(path, 'much longer')],
    ['has shrunk', (path) => truncate(path, 1)],
    ['is gone', (path) => rm(path)],
  ])(
    'leaves out a file that %s, for good, tells it in one line and in the metadata, and reads the rest [fault 116]',
    async (_, change) => {
      const lines = told();
      const path = await temporaryFile('file');
      const item = itemWith(Buffer.from('a'), await openAsBlob(path), new Blob(['c']));
      await change(path);
      const first = await readAttachments([item], never);
      const again = await readAttachments([item], never);

      for (const parts of [first, again]) expect(parts.map(({ name }) => name)).toEqual(['n0', 'n2']);
      expect(item.attachments.map(({ name }) => name)).toEqual(['n0', 'n2']);
      expect(item.delivery.run.attachments?.map(({ name }) => name)).toEqual(['n0', 'n2']);
      expect(item.delivery.run.metadata?.get('dropped_attachments')).toBe('1');
      expect(lines).toEqual([expect.stringMatching(/^warn: an attachment could not be read and is left out: /)]);
    },
  );

  it('leaves out a folder [fault 116]', async () => {
    const lines = told();
    const item = itemWith(await openAsBlob(tmpdir()), new Blob(['c']));

    expect((await readAttachments([item], never)).map(({ name }) => name)).toEqual(['n1']);
    expect(lines).toHaveLength(1);
  });

  it.skipIf(process.platform === 'win32')('does not wait for the writer of a FIFO [fault 116]', async () => {
    const path = `${await temporaryFile('')}.fifo`;
    execFileSync('mkfifo', [path]);

    const [part] = await readAttachments([itemWith(await openAsBlob(path))], never);
    expect(part?.bytes).toHaveLength(0);
  });

  it('does not call what a subclass makes of its methods', async () => {
    class Odd extends Blob {
      override arrayBuffer(): Promise<ArrayBuffer> {
        throw new Error('never');
      }
    }
    expect(
      (await readAttachments([itemWith(new Odd(['x']))], never)).map(({ bytes }) => `${Buffer.from(bytes)}`),
    ).toEqual(['x']);
  });

  it('rejects when it is told to stop, and leaves nothing out', async () => {
    const stop = new AbortController();
    const item = itemWith(new Blob([Buffer.alloc(1_000_000)]));
    const reading = readAttachments([item], stop.signal);
    stop.abort(new Error('closed'));

    await expect(reading).rejects.toThrow('closed');
    expect(item.attachments).toHaveLength(1);
  });
});

describe('attachmentFrames', () => {
  it('does not copy the bytes', async () => {
    const bytes = Buffer.alloc(100_000, 7);
    const parts = [{ name: 'a', bytes, mimeType: 'image/png', partName: 'attachment.x.a' }];

    expect(await attachmentFrames(parts, 'boundary')).toContain(bytes);
  });
});
