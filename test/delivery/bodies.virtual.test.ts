// The bytes of a request body. `wire.test.ts` compares them with the interface.
import '../support/virtual-timers.ts';

import { execFileSync } from 'node:child_process';
import { openAsBlob } from 'node:fs';
import { rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { delivery, finished, onFlush, until } from '../support/delivery.ts';
import { readParts } from '../support/multipart-reader.ts';
import type { IngestRequest } from '../support/scripted-service.ts';
import { testFolder } from '../support/test-folder.ts';

const first = ({ requests }: { requests: readonly IngestRequest[] }): IngestRequest => requests[0] as IngestRequest;

describe('a multipart body', () => {
  it('contains the main part, the inputs and the outputs of a run, each with its length', async () => {
    const { whole, flush, service } = await delivery({ options: { project: 'docs' } });
    const { id } = whole('ask', { inputs: { q: 'ä' } }, { a: 1 });
    await flush();
    const { headers, body } = first(service);
    const boundary = /boundary=(.*)$/.exec(headers['content-type'] ?? '')?.[1];
    const [main] = readParts({ headers, body });
    const part = (name: string, text: string) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}\r\n`;

    expect(body.toString()).toBe(
      part(`post.${id}`, main?.body.toString() ?? '') +
        part(`post.${id}.inputs`, '{"q":"ä"}') +
        part(`post.${id}.outputs`, '{"a":1}') +
        `--${boundary}--\r\n`,
    );
    expect(JSON.parse(main?.body.toString() ?? '')).toMatchObject({ id, trace_id: id, session_name: 'docs' });
    expect(headers['content-length']).toBe(String(body.length));
  });

  it('has no part for empty payloads, and contains error, tags and metadata in the main part', async () => {
    const { start, flush, service } = await delivery();
    const run = start('ask', { tags: ['a'], metadata: { 'k"ey': { n: 1 } } });
    run.fail(new Error('"no"'));
    await flush();

    expect(readParts(first(service)).map(({ name }) => name)).toEqual([`post.${run.id}`]);
    expect(service.arrivals('ask')[0]?.fields).toMatchObject({
      error: expect.stringContaining('Error: "no"'),
      tags: ['a'],
      extra: { metadata: { 'k"ey': { n: 1 } } },
    });
  });

  it('is encoded in a separate turn of the event loop', async () => {
    let turn = 0;
    let isOver = false;
    const count = (): void => {
      turn++;
      if (!isOver) setImmediate(count);
    };
    const turns: number[] = [];
    const dispatcher = {
      request: ({ path }: { path: string }) => {
        if (path.endsWith('multipart')) turns.push(turn);
        return Promise.reject(new Error('away'));
      },
    } as never;
    const inputs = { text: 'x'.repeat(500_000) };
    const { whole } = await delivery({ limits: { batchRuns: 2, batchBytes: 1e9 }, options: { dispatcher } });
    for (let runs = 0; runs < 8; runs++) whole('r', { inputs });
    count();
    await until(() => turns.length >= 4);
    isOver = true;

    expect(new Set(turns.slice(0, 4)).size).toBe(4);
  });
});

describe('an attachment', () => {
  async function temporaryFile(content: string): Promise<string> {
    const path = join(testFolder(), 'file');
    await writeFile(path, content);
    return path;
  }

  it.each<[string, (path: string) => Promise<void>]>([
    ['has changed', (path) => writeFile(path, 'much longer')],
    ['has shrunk', (path) => truncate(path, 1)],
    ['is gone', (path) => rm(path)],
    ['is a folder', async () => {}],
  ])('is left out and reported if its file %s, and the others arrive', async (what, change) => {
    const path = what === 'is a folder' ? tmpdir() : await temporaryFile('file');
    const { start, exporter, service, lines } = await delivery({
      limits: onFlush,
      reply: (_, at) => (at > 0 ? 202 : 429),
    });
    const run = start('ask');
    run.attach('a', Buffer.from('a'), 'text/plain');
    run.attach('file', await openAsBlob(path), 'text/plain');
    run.attach('c', new Blob(['c']), 'text/plain');
    await change(path);
    run.end();
    await finished(exporter.flush());
    const arrivals = service.arrivals('ask');

    expect(arrivals.length).toBeGreaterThan(1);
    for (const { attachments } of arrivals) expect([...attachments.keys()]).toEqual(['a', 'c']);
    expect(arrivals.at(-1)?.fields.extra?.metadata?.dropped_attachments).toBe(1);
    expect(lines.filter((line) => line.includes('could not be read and is not sent'))).toHaveLength(1);
  });

  it.skipIf(process.platform === 'win32')('that is a FIFO without a writer does not block the process', async () => {
    const path = join(testFolder(), 'fifo');
    execFileSync('mkfifo', [path]);
    const { start, flush, stats } = await delivery({ limits: onFlush });
    const run = start('ask');
    run.attach('fifo', await openAsBlob(path), 'text/plain');
    run.end();
    await flush();

    expect(stats()).toMatchObject({ sent: 1, dropped: 0 });
  });
});
