import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { destinationHash } from '#src/delivery/spool/directory.ts';
import type { ReadSegment, Segment } from '#src/delivery/spool/spool.ts';
import { runMain } from '../support/command.ts';
import { logLines } from '../support/log-lines.ts';
import { drain, filesBelow, killOwners, makeRecord, segmentsBelow, spoolFolder } from '../support/spool.ts';

const ONE = { endpoint: new URL('http://127.0.0.1:4777'), workspaceId: undefined, apiKey: undefined };
const TWO = { endpoint: new URL('https://traces.example'), workspaceId: 'w', apiKey: 'canary-key' };
const WORKSPACE = { RUNSPAN_WORKSPACE_ID: 'w' };

const list = (dir: string, args: string[] = [], env = {}) => runMain(['spool', 'list', '--dir', dir, ...args], env);
const purge = (dir: string, args: string[] = [], env = {}) => runMain(['spool', 'purge', '--dir', dir, ...args], env);

/** Creates the files of dead processes for two destinations, of a running process, and a damaged file. */
function makeSpool() {
  logLines();
  const { dir, open } = spoolFolder();
  const dead = open();
  const record = makeRecord(1);
  dead.append(record);
  dead.append({ ...record, op: 'patch' });
  dead.spill([makeRecord(2)]);
  writeFileSync((dead.spill([makeRecord(3)]) as Segment).path, 'rubbish');
  open(TWO).spill([makeRecord(4, 3_000), makeRecord(5)]);
  killOwners(dir);
  const next = open();
  next.takeOver();
  const read = [next.next(), next.next(), next.next()].filter((one) => one !== undefined) as ReadSegment[];
  for (const { segment, records } of read) if (records.length === 0) next.done(segment);
  next.close();
  const running = open();
  running.append(makeRecord(6));
  const writtenAt = new Date('2026-11-17T18:30:00Z');
  for (const path of segmentsBelow(dir)) utimesSync(join(dir, path), writtenAt, writtenAt);
  return { dir, open, running };
}

describe('runspan spool list', () => {
  it('prints the processes and files of each destination, and no content', async () => {
    const { dir } = makeSpool();
    const before = filesBelow(dir);
    const { code, stdout, stderr } = await runMain(['spool', 'list'], { RUNSPAN_SPOOL_DIR: dir });
    expect([code, stderr]).toEqual([0, '']);
    const [head, ...blocks] = stdout
      .replaceAll(/\d+(\.\d)? (bytes|KiB)/g, 'SIZE')
      .trimEnd()
      .split('\n\n');
    const since = 'SIZE, oldest 2026-11-17T18:30:00Z';
    const sorted = blocks.map((block) => block.split('\n').sort()).sort();
    expect(head).toBe(dir);
    expect(sorted).toEqual(
      [
        [
          `  damaged, set aside: 1 file, ${since}`,
          `  process ${process.pid}, alive: 1 run in 1 file, ${since}`,
          `  process ${process.pid}, dead: 2 runs in 2 files, ${since}`,
          destinationHash(ONE),
        ],
        [`  process ${process.pid}, dead: 2 runs in 1 file, ${since}`, destinationHash(TWO)],
      ].sort(),
    );
    expect(stdout).not.toMatch(/canary|question/);
    expect(filesBelow(dir)).toEqual(before);
  });

  it('prints the files of each process as one line of JSON with --json', async () => {
    const { dir } = makeSpool();
    const { code, stdout, stderr } = await list(dir, ['--json']);
    expect([code, stderr]).toEqual([0, '']);
    const lines = stdout.trimEnd().split('\n');
    const [one, two] = [destinationHash(ONE), destinationHash(TWO)];
    const files = { bytes: expect.any(Number), oldest: '2026-11-17T18:30:00Z' };
    const rows = [
      { destination: one, state: 'alive', process: process.pid, runs: 1, files: 1, ...files },
      { destination: one, state: 'damaged', files: 1, ...files },
      { destination: one, state: 'dead', process: process.pid, runs: 2, files: 2, ...files },
      { destination: two, state: 'dead', process: process.pid, runs: 2, files: 1, ...files },
    ];
    const printed = lines.map((line) => JSON.parse(line)).sort((a, b) => a.state.localeCompare(b.state));
    expect(printed).toHaveLength(rows.length);
    expect(printed).toEqual(expect.arrayContaining(rows));
    expect((await list(spoolFolder().dir, ['--json'])).stdout).toBe('');
  });

  it.runIf(process.platform === 'linux')('knows at once that a process has ended', async () => {
    const { dir, open } = spoolFolder();
    open().spill([makeRecord(1)]);
    killOwners(dir, Date.now() + 30_000);
    const before = filesBelow(dir);
    const closed = open();
    closed.spill([makeRecord(2)]);
    // As if the disk had been full.
    for (const name of filesBelow(dir)) if (name.endsWith('.json') && !before.includes(name)) await rm(join(dir, name));
    closed.close();
    expect((await list(dir)).stdout.match(/(?<=\d, )[a-z]+(?=:)/g)?.sort()).toEqual(['dead', 'ended']);
  });

  it('selects a destination by the endpoint and by the workspace or key of the environment', async () => {
    const { dir } = makeSpool();
    const { stdout } = await list(dir, ['--endpoint', TWO.endpoint.href], WORKSPACE);
    expect(stdout).toContain(destinationHash(TWO));
    expect(stdout).not.toContain(destinationHash(ONE));
  });

  it.each<[Record<string, string>, string]>([
    [{}, 'without a key'],
    [{ RUNSPAN_API_KEY: 'canary-other' }, 'with this key'],
    [{ RUNSPAN_API_KEY: 'canary-other', RUNSPAN_WORKSPACE_ID: 'canary-other' }, 'with this workspace'],
  ])('names a destination without runs, and counts the others: %j', async (env, credentials) => {
    const { dir } = makeSpool();
    const others = 'the folder has runs for 2 other endpoints, workspaces or keys\n';
    const endpoint = ['--endpoint', 'https://traces.example/api/'];
    expect(await list(dir, endpoint, env)).toEqual({
      code: 0,
      stderr: '',
      stdout: `no runs for https://traces.example/api ${credentials} in ${dir}\n${others}`,
    });
    expect((await purge(dir, endpoint, env)).stdout).toBe(`nothing to delete\n${others}`);
  });

  it('creates no folder', async () => {
    const { dir } = spoolFolder();
    expect(await list(dir)).toEqual({ code: 0, stderr: '', stdout: `no runs in ${dir}\n` });
    expect(existsSync(dir)).toBe(false);
  });

  it('follows no link', async () => {
    const { dir } = spoolFolder();
    mkdirSync(join(dirname(dir), 'elsewhere'));
    symlinkSync(join(dirname(dir), 'elsewhere'), dir);
    expect(await list(dir)).toMatchObject({ code: 1, stderr: expect.stringContaining('is a symbolic link') });
  });

  it('reports a folder that it cannot read on one line', async () => {
    const { dir } = spoolFolder();
    mkdirSync(dir);
    writeFileSync(join(dir, 'v1'), '');
    expect(await list(dir)).toEqual({ code: 1, stdout: '', stderr: `runspan: ${dir}/v1 is not a folder\n` });
  });
});

describe('runspan spool purge', () => {
  it('deletes nothing without --yes', async () => {
    const { dir } = makeSpool();
    const before = filesBelow(dir);
    const { code, stdout } = await purge(dir);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^dry run: would delete 4 runs in 3 files, \S+ KiB and 1 damaged file, 7 bytes, in \S+; pass --yes to delete\nthe runs of 1 process that may be running are kept; pass --all to delete them\n$/,
    );
    expect(filesBelow(dir)).toEqual(before);
  });

  it('deletes the files of dead processes and damaged files', async () => {
    const { dir, running } = makeSpool();
    const { code, stdout } = await purge(dir, ['--yes']);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^deleted 4 runs in 3 files, .* and 1 damaged file, .*\nthe runs of 1 process that may be running are kept; pass --all to delete them\n$/,
    );
    expect(segmentsBelow(dir)).toHaveLength(1);
    expect(running.append(makeRecord(7))).toBeDefined();
    expect(segmentsBelow(dir)).toHaveLength(1);
    expect((await purge(dir, ['--yes'])).stdout).toMatch(/^nothing to delete\n/);
  });

  it('does not count the runs of damaged files, because the readable ones were delivered', async () => {
    const { dir, open } = spoolFolder();
    logLines();
    const { path } = open().spill([makeRecord(1), makeRecord(2)]) as Segment;
    writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.from('rubbish')]));
    killOwners(dir);
    const next = open();
    next.takeOver();
    expect(drain(next)).toEqual([1, 2]);
    expect((await list(dir)).stdout).toMatch(/\n {2}damaged, set aside: 1 file, [^\n]*\n$/);
    expect((await purge(dir, ['--yes'])).stdout).toMatch(/^deleted 1 damaged file, \d+ bytes, in /);
    expect(segmentsBelow(dir)).toEqual([]);
  });

  it('deletes only the runs of the selected destination', async () => {
    const { dir } = makeSpool();
    expect((await purge(dir, ['--yes', '--endpoint', ONE.endpoint.href])).stdout).toMatch(/^deleted 2 runs/);
    expect((await list(dir)).stdout).toContain(destinationHash(TWO));
  });

  it('selects the endpoint of the environment', async () => {
    const { dir } = makeSpool();
    const env = { RUNSPAN_ENDPOINT: TWO.endpoint.href, ...WORKSPACE };
    expect((await purge(dir, ['--yes'], env)).stdout).toMatch(/^deleted 2 runs in 1 file, /);
    const { stdout } = await list(dir);
    expect(stdout).toContain(destinationHash(ONE));
    expect(stdout).not.toContain(destinationHash(TWO));
    expect(await purge(dir, ['--yes'], { RUNSPAN_ENDPOINT: 'traces.example' })).toMatchObject({
      code: 1,
      stderr: 'runspan: the settings are invalid; run runspan doctor for details\n',
    });
  });

  it('deletes the files of running processes with --all, and the processes go on', async () => {
    const { dir, running, open } = makeSpool();
    const [segment = ''] = segmentsBelow(dir);
    writeFileSync(join(dir, dirname(segment), 'notes.txt'), 'mine');
    expect((await purge(dir, ['--yes', '--all'])).stdout).toMatch(
      /^deleted 5 runs in 4 files, \S+ KiB and 1 damaged file/,
    );
    expect(segmentsBelow(dir)).toEqual([]);
    expect(readdirSync(join(dir, dirname(segment)))).toContain('notes.txt');
    expect(running.spill([makeRecord(7)])).toBeDefined();
    killOwners(dir);
    const next = open();
    next.takeOver();
    expect(drain(next)).toEqual([7]);
  });
});
