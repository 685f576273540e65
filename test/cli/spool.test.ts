import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { spool } from '../../src/cli/spool.ts';
import type { SpoolInvocation } from '../../src/cli/spool-arguments.ts';
import { destinationHash } from '../../src/export/spool/directory.ts';
import type { ReadSegment, Segment } from '../../src/export/spool/spool.ts';
import { runRunspan } from '../support/program.ts';
import { drain, filesBelow, killOwners, makeRecord, segmentsBelow, spoolFolder } from '../support/spool.ts';
import { told } from '../support/told.ts';

const ONE = { endpoint: new URL('http://127.0.0.1:4777'), workspaceId: undefined, apiKey: undefined };
const TWO = { endpoint: new URL('https://traces.example'), workspaceId: 'w', apiKey: 'canary-key' };

function run(dir: string, fields: Partial<SpoolInvocation> = {}): { code: number; text: string } {
  let text = '';
  const code = spool(
    {
      kind: 'spool',
      action: 'list',
      dir,
      endpoint: undefined,
      from: [],
      includesBad: false,
      isConfirmed: false,
      isAll: false,
      ...fields,
    },
    (more) => {
      text += more;
    },
  );
  return { code, text };
}

/** A dead process and one that is alive for one destination, for another a dead one, and a damaged file. */
function makeSpool() {
  told();
  const { dir, open } = spoolFolder();
  const dead = open();
  const record = makeRecord(1);
  dead.append(record);
  dead.append({ ...record, op: 'patch' });
  dead.spill([makeRecord(2)]);
  writeFileSync((dead.spill([makeRecord(3)]) as Segment).path, 'rubbish');
  open(TWO).spill([makeRecord(4, 3_000), makeRecord(5)]);
  killOwners(dir);
  const alive = open();
  alive.takeOver();
  const read = [alive.next(), alive.next(), alive.next()].filter((one) => one !== undefined) as ReadSegment[];
  for (const { segment, records } of read) if (records.length === 0) alive.done(segment);
  alive.close();
  const living = open();
  living.append(makeRecord(6));
  const writtenAt = new Date('2026-11-17T18:30:00Z');
  for (const path of segmentsBelow(dir)) utimesSync(join(dir, path), writtenAt, writtenAt);
  return { dir, open, living };
}

describe('runspan spool list', () => {
  it('says what waits, for whom and since when', () => {
    const { dir } = makeSpool();
    const [one, two] = [destinationHash(ONE), destinationHash(TWO)];
    const { code, text } = run(dir);
    expect(code).toBe(0);
    const lines = text.replaceAll(/\d+(\.\d)? (bytes|KiB)/g, 'SIZE').split('\n');
    expect(lines.slice(0, 2)).toEqual([dir, '']);
    const blocks = new Map(
      lines
        .slice(2, -1)
        .join('\n')
        .split('\n\n')
        .map((block) => [block.slice(0, 32), block]),
    );
    const ofOne = (blocks.get(one) as string).split('\n').slice(1).sort();
    const since = 'SIZE, oldest 2026-11-17T18:30:00Z';
    expect(ofOne).toEqual([
      `  damaged, set aside: 1 file, ${since}`,
      `  process ${process.pid}, alive: 1 run in 1 file, ${since}`,
      `  process ${process.pid}, dead: 2 runs in 2 files, ${since}`,
    ]);
    expect(blocks.get(two)).toBe(`${two}\n  process ${process.pid}, dead: 2 runs in 1 file, ${since}`);
    expect(text).not.toMatch(/canary|question/);
  });

  it('shows one destination alone, by the endpoint and the workspace or key of the environment', () => {
    const { dir } = makeSpool();
    vi.stubEnv('RUNSPAN_WORKSPACE_ID', 'w');
    const { text } = run(dir, { endpoint: TWO.endpoint });
    vi.unstubAllEnvs();
    expect(text).toContain(destinationHash(TWO));
    expect(text).not.toContain(destinationHash(ONE));
  });

  it('says for whom nothing waits, and that something does for others', () => {
    const { dir } = makeSpool();
    expect(run(dir, { endpoint: new URL('https://traces.example/api/') })).toEqual({
      code: 0,
      text:
        `nothing waits for https://traces.example/api without a key in ${dir}\n` +
        'there are runs for 2 other endpoints, workspaces or keys\n',
    });
    vi.stubEnv('RUNSPAN_API_KEY', 'canary-other');
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(run(dir, { endpoint: TWO.endpoint }).text).toContain('for https://traces.example with this key in ');
    vi.stubEnv('RUNSPAN_WORKSPACE_ID', 'canary-other');
    expect(run(dir, { endpoint: TWO.endpoint }).text).toContain('for https://traces.example with this workspace in ');
    expect(run(dir, { action: 'purge', endpoint: TWO.endpoint }).text).toBe(
      'nothing to delete\nthere are runs for 2 other endpoints, workspaces or keys\n',
    );
  });

  it('says so when nothing waits, and makes no folder', () => {
    const { dir } = spoolFolder();
    expect(run(dir)).toEqual({ code: 0, text: `nothing waits in ${dir}\n` });
    expect(existsSync(dir)).toBe(false);
  });

  it('changes nothing', () => {
    const { dir } = makeSpool();
    const before = filesBelow(dir);
    run(dir);
    expect(filesBelow(dir)).toEqual(before);
  });

  it('looks into no folder that is a link', () => {
    const { dir } = spoolFolder();
    mkdirSync(join(dirname(dir), 'elsewhere'));
    symlinkSync(join(dirname(dir), 'elsewhere'), dir);
    expect(() => run(dir)).toThrow('is a symbolic link');
  });
});

describe('runspan spool purge', () => {
  it('deletes nothing before it is told to', () => {
    const { dir } = makeSpool();
    const before = filesBelow(dir);
    const { code, text } = run(dir, { action: 'purge' });
    expect(code).toBe(1);
    expect(text).toMatch(
      /^would delete 4 runs in 3 files, \S+ KiB and 1 damaged file, 7 bytes, in \S+; nothing was deleted; add --yes to delete it\nthe runs of 1 living process are kept; --all/,
    );
    expect(filesBelow(dir)).toEqual(before);
  });

  it('deletes what dead processes have left and what is damaged, and no more', () => {
    const { dir, living } = makeSpool();
    const { code, text } = run(dir, { action: 'purge', isConfirmed: true });
    expect(code).toBe(0);
    expect(text).toMatch(
      /^deleted 4 runs in 3 files, .* and 1 damaged file, .*\nthe runs of 1 living process are kept; --all deletes them too\n$/,
    );
    expect(segmentsBelow(dir)).toHaveLength(1);
    expect(living.append(makeRecord(7))).toBeDefined();
    expect(segmentsBelow(dir)).toHaveLength(1);
    expect(run(dir, { action: 'purge', isConfirmed: true }).text).toMatch(/^nothing to delete\n/);
  });

  it('counts no run of a damaged file: what could be read of it is delivered', () => {
    const { dir, open } = spoolFolder();
    told();
    const { path } = open().spill([makeRecord(1), makeRecord(2)]) as Segment;
    writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.from('rubbish')]));
    killOwners(dir);
    const next = open();
    next.takeOver();
    expect(drain(next)).toEqual([1, 2]);
    expect(run(dir).text).toMatch(/\n {2}damaged, set aside: 1 file, [^\n]*\n$/);
    expect(run(dir, { action: 'purge', isConfirmed: true }).text).toMatch(/^deleted 1 damaged file, \d+ bytes, in /);
    expect(segmentsBelow(dir)).toEqual([]);
  });

  it('keeps to one destination', () => {
    const { dir } = makeSpool();
    expect(run(dir, { action: 'purge', isConfirmed: true, endpoint: ONE.endpoint }).text).toMatch(/^deleted 2 runs/);
    expect(run(dir).text).toContain(destinationHash(TWO));
  });

  it('keeps to the endpoint of the environment', () => {
    const { dir } = makeSpool();
    vi.stubEnv('RUNSPAN_ENDPOINT', TWO.endpoint.href);
    vi.stubEnv('RUNSPAN_WORKSPACE_ID', 'w');
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(run(dir, { action: 'purge', isConfirmed: true }).text).toMatch(/^deleted 2 runs in 1 file, /);
    const listed = run(dir).text;
    expect(listed).toContain(destinationHash(ONE));
    expect(listed).not.toContain(destinationHash(TWO));
    vi.stubEnv('RUNSPAN_ENDPOINT', 'traces.example');
    expect(() => run(dir, { action: 'purge', isConfirmed: true })).toThrow('expected RUNSPAN_ENDPOINT to be an http');
  });

  it('deletes what living processes have when it is told to, and they go on', () => {
    const { dir, living, open } = makeSpool();
    expect(run(dir, { action: 'purge', isConfirmed: true, isAll: true }).text).toMatch(
      /^deleted 5 runs in 4 files, \S+ KiB and 1 damaged file/,
    );
    expect(segmentsBelow(dir)).toEqual([]);
    expect(living.spill([makeRecord(7)])).toBeDefined();
    killOwners(dir);
    const next = open();
    next.takeOver();
    expect(drain(next)).toEqual([7]);
  });

  it('leaves files of another kind alone', () => {
    const { dir } = makeSpool();
    const [segment = ''] = segmentsBelow(dir);
    writeFileSync(join(dir, dirname(segment), 'notes.txt'), 'mine');
    run(dir, { action: 'purge', isConfirmed: true, isAll: true });
    expect(readdirSync(join(dir, dirname(segment)))).toContain('notes.txt');
  });
});

describe('the command', () => {
  it('lists the folder that the environment names, and ends with 0', async () => {
    const { dir } = makeSpool();
    const { code, stdout, stderr } = await runRunspan(['spool', 'list'], { RUNSPAN_SPOOL_DIR: dir });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(run(dir).text);
  });

  it.each([
    [['list', '-x'], 'list [--dir folder] [--endpoint url]'],
    [['send', '--yes'], 'send [--dir folder] [--endpoint url] [--from destination] [--bad]'],
    [['--dir', '/x', 'purge', '-x'], 'purge [--dir folder] [--endpoint url] [--all] --yes'],
    [['drain'], 'list [--dir folder] [--endpoint url]'],
  ])('after a mistake in %j says how it is called', async (argv, call) => {
    const { code, stderr } = await runRunspan(['spool', ...argv]);
    expect([code, stderr.split('\n')[1]]).toEqual([2, `Usage: runspan spool ${call}`]);
  });

  it('says in one line what it cannot read', async () => {
    const { dir } = spoolFolder();
    mkdirSync(dir);
    writeFileSync(join(dir, 'v1'), '');
    const { code, stdout, stderr } = await runRunspan(['spool', 'list', '--dir', dir]);
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: `runspan: ${dir}/v1 is not a folder\n` });
  });
});
