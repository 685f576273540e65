import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { startRun } from '../../src/run/start-run.ts';
import { addsUp } from '../support/adds-up.ts';
import { exporterTo, record } from '../support/delivering.ts';
import { temporaryFolder } from '../support/folders.ts';
import { ingestServer } from '../support/ingest-server.ts';
import { readParts } from '../support/multipart-reader.ts';
import { told } from '../support/told.ts';

beforeEach(() => void told());

function spoolDir(): string {
  const { path: dir, remove } = temporaryFolder();
  onTestFinished(remove);
  return dir;
}

test('what a wrong key kept from delivery stays on disk from start to start, and arrives with the right one [fault 110]', async () => {
  let status = 401;
  await using server = await ingestServer(() => ({ status }));
  const options = { durability: 'spill', spoolDir: spoolDir(), apiKey: 'key', workspaceId: 'w' } as const;
  const recorded: string[] = [];
  for (const _ of ['first', 'second']) {
    const exporter = exporterTo(server.url, {}, options);
    recorded.push(...record(exporter, 2));
    await exporter.close({ timeoutMs: 500 });
    expect(exporter.stats()).toMatchObject({ sent: 0, dropped: 0, queued: 0, inFlight: 0 });
    expect(addsUp(exporter.stats())).toBe(true);
  }
  status = 202;
  const received = server.received.length;
  const last = exporterTo(server.url, {}, options);
  recorded.push(...record(last, 1));
  last.recover();
  await last.finish({ timeoutMs: 20_000 });

  const names = server.received.slice(received).flatMap((request) => readParts(request).map(({ name }) => name));
  const ids = names.flatMap((name) => /^post\.([^.]+)$/.exec(name)?.[1] ?? []);
  expect(ids.sort()).toEqual(recorded.sort());
  expect(last.stats()).toMatchObject({ created: 2, recovered: 8, sent: 10, dropped: 0 });
  await last.close();
});

test.each([
  ['memory', false],
  ['spill', true],
  ['write-ahead', true],
] as const)(
  'with %s what is on disk is redacted, holds no key, and is for its owner alone [security 18]',
  async (durability, isKept) => {
    await using server = await ingestServer(() => 'hold');
    const dir = join(spoolDir(), 'spool');
    const exporter = exporterTo(server.url, {}, { durability, spoolDir: dir, apiKey: 'canary-key' });
    startRun({ name: 'ask', exporter, root: true, inputs: { question: 'kept', password: 'canary-input' } }).end({
      ok: true,
    });
    await exporter.close({ timeoutMs: 50 });

    const paths = existsSync(dir)
      ? readdirSync(dir, { recursive: true, encoding: 'utf8' }).map((path) => join(dir, path))
      : [];
    const files = paths.filter((path) => statSync(path).isFile());
    const written = files.map((path) => readFileSync(path, 'latin1')).join('\n');
    expect(written.includes('kept')).toBe(isKept);
    expect(written).not.toContain('canary');
    expect(written).not.toContain(Buffer.from('canary').toString('base64').slice(0, 6));
    for (const path of paths) expect(statSync(path).mode & 0o077).toBe(0);
  },
);
