import { readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sendSpool } from '#src/cli/spool/send.ts';
import { type ConfigureOptions, createExporter, startRun } from '#src/index.ts';
import { environmentOf } from '../support/environment.ts';
import { ingestServerInTest, type Received, type Reply } from '../support/ingest-server.ts';
import { logLines } from '../support/log-lines.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { runRunspan, startRunspan } from '../support/program.ts';
import { killOwners, makeRecord, segmentsBelow, silenceOwners, spoolFolder } from '../support/spool.ts';

const HOUR_MS = 3_600_000;

/** Creates a service, and a spool in which a process with the key `key-before` left two segments with two runs each. */
async function rotated({
  isAlive = false,
  ageMs = 0,
  reply,
}: {
  isAlive?: boolean;
  ageMs?: number;
  reply?: (request: Received) => Reply;
} = {}) {
  environmentOf();
  const lines = logLines();
  const server = await ingestServerInTest(reply);
  const { dir, time, open } = spoolFolder();
  const before = open({ endpoint: new URL(server.url), apiKey: 'key-before' });
  const records = [1, 2, 3, 4].map((number) => makeRecord(number));
  before.spill(records.slice(0, 2));
  before.spill(records.slice(2));
  if (!isAlive) {
    killOwners(dir);
    // The spool is still open, and its heartbeats must not revive the owner in a slow test.
    time.wallMs -= 30_000;
  }
  const writtenAt = new Date(Date.now() - ageMs);
  for (const path of segmentsBelow(dir)) utimesSync(join(dir, path), writtenAt, writtenAt);
  const ids = records.map(({ run }) => run.id);
  /** Records a run with the key `key-after`, and closes the exporter after its delivery. */
  const work = async (options: ConfigureOptions = {}) => {
    const exporter = createExporter({
      endpoint: server.url,
      apiKey: 'key-after',
      durability: 'spill',
      spoolDir: dir,
      ...options,
    });
    startRun({ name: 'work', exporter }).end();
    await exporter.flush();
    await exporter.close();
    return exporter.stats();
  };
  const arrived = () =>
    server.received.flatMap((request) =>
      [...readJsonParts(request).values()].map(({ id }) => [id, request.headers['x-api-key']]),
    );
  return { dir, server, lines, ids, work, arrived };
}

const warnings = (lines: readonly string[]) => lines.filter((line) => !line.startsWith('debug: '));
const reports = (lines: readonly string[]) => lines.filter((line) => line.includes('another'));

describe('runs that wait on disk for another key', () => {
  it('are reported in one line, with the command that delivers them', async () => {
    const { dir, server, lines, ids, work, arrived } = await rotated();
    await work();
    await work();
    expect(reports(lines)).toHaveLength(1);
    const [, count, command = ''] =
      /files .* \((\d+)\).* `runspan (spool send [^`]*)`/.exec(reports(lines)[0] as string) ?? [];
    expect(count).toBe('2');
    expect(reports(lines)[0]).toContain(
      `sends the runs to ${server.url} with RUNSPAN_API_KEY and RUNSPAN_WORKSPACE_ID.`,
    );
    expect(reports(lines)[0]).toContain(`set RUNSPAN_ENDPOINT to ${server.url} and run \`runspan spool send `);
    expect(command).toContain(`--dir ${dir} --endpoint ${server.url} --from `);
    expect(segmentsBelow(dir)).toHaveLength(2);

    const { code, stdout, stderr } = await runRunspan(command.split(' '), {
      RUNSPAN_ENDPOINT: server.url,
      RUNSPAN_API_KEY: 'key-after',
    });
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: `delivered 4 of 4 runs to ${server.url}\n`,
      stderr: '',
    });
    const key = 'key-after';
    expect(arrived().filter(([id]) => ids.includes(id as string))).toEqual(ids.map((id) => [id, key]));
    expect(segmentsBelow(dir)).toEqual([]);
  });

  it.each(['is rejected', 'gets no response before it is killed'])(
    'remain with their destination after a `spool send --from` that %s',
    async (failure) => {
      const isKilled = failure !== 'is rejected';
      const { dir, server, ids, work, arrived } = await rotated({
        reply: ({ headers }) => {
          if (headers['x-api-key'] === 'key-before') return { status: 202 };
          return isKilled ? 'hold' : { status: 401 };
        },
      });
      const [from = ''] = readdirSync(join(dir, 'v1'));
      if (isKilled) {
        const argv = ['spool', 'send', '--dir', dir, '--endpoint', server.url, '--from', from];
        const command = startRunspan(argv, { RUNSPAN_API_KEY: 'key-mistyped' });
        await server.arrived(1);
        command.child.kill('SIGKILL');
        await command.ended;
        silenceOwners(dir, 30_000);
      } else {
        environmentOf({ RUNSPAN_API_KEY: 'key-mistyped' });
        const endpoint = new URL(server.url);
        let text = '';
        const print = (more: string): void => {
          text += `${more}\n`;
        };
        const code = await sendSpool({ dir, endpoint, from: [from] }, print, 500);
        expect(code).toBe(1);
        expect(text).toMatch(/^delivered 0 of 4 runs to \S+\nthe other runs remain on disk: .*\n$/);
      }

      environmentOf();
      expect(await work({ apiKey: 'key-before' })).toMatchObject({ recovered: 4, sent: 5, dropped: 0 });
      expect(arrived()).toEqual(expect.arrayContaining(ids.map((id) => [id, 'key-before'])));
      expect(segmentsBelow(dir)).toEqual([]);
    },
  );

  it('are dropped after `limits.spoolAgeMs`, each counted and reported', async () => {
    const { dir, lines, ids, work } = await rotated({ ageMs: HOUR_MS + 1 });
    const dropped: unknown[] = [];
    const stats = await work({
      limits: { spoolAgeMs: HOUR_MS },
      onDrop: (reason, { id }) => dropped.push([reason, id]),
    });
    expect(dropped).toEqual(ids.map((id) => ['expired', id]));
    expect(stats).toMatchObject({ created: 1, recovered: 4, sent: 1, dropped: 4, droppedByReason: { expired: 4 } });
    const counts = warnings(lines).map((line) => Number(/(\d+) runs? w\w+ dropped \(expired\)/.exec(line)?.[1]));
    expect(counts.reduce((sum, count) => sum + count)).toBe(4);
    expect(segmentsBelow(dir)).toEqual([]);
  });

  it('are not reported while a process with that key is alive', async () => {
    const { dir, lines, work } = await rotated({ isAlive: true, ageMs: 48 * HOUR_MS });
    expect(await work()).toMatchObject({ recovered: 0, dropped: 0 });
    expect(warnings(lines)).toEqual([]);
    expect(segmentsBelow(dir)).toHaveLength(2);
  });
});
