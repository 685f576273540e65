import '../support/virtual-timers.ts';

import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BAD_BYTES_MAX, destinationHash } from '../../src/export/spool/directory.ts';
import type { ReadSegment, Segment, SpooledRecord } from '../../src/export/spool/spool.ts';
import { drain, filesBelow, killOwners, makeRecord, numberOf, segmentsBelow, spoolFolder } from '../support/spool.ts';
import { told } from '../support/told.ts';
import { virtualClock } from '../support/virtual-timers.ts';

const HASH = 'b624a4b961284970e3b222ad615e9d4b';

/** Bytes that a record takes on disk. */
function sizeOf(number: number, padding = 0): number {
  const { dir, open } = spoolFolder();
  open().append(makeRecord(number, padding));
  return statSync(join(dir, segmentsBelow(dir)[0] as string)).size;
}

const numbersOf = (read: ReadSegment | undefined) => read?.records.map(numberOf);

describe('a spool', () => {
  it('makes nothing before something is written', () => {
    const { dir, open } = spoolFolder();
    const spool = open();
    expect(spool.takeOver()).toBe(0);
    expect(spool.next()).toBeUndefined();
    spool.close();
    expect(existsSync(dir)).toBe(false);
  });

  it('lays out its folder by destination and owner, for this user alone', () => {
    const { dir, open } = spoolFolder();
    const spool = open();
    spool.append(makeRecord(1));
    const [segment = '', owner = ''] = filesBelow(dir);
    expect(segment).toMatch(/^v1\/[0-9a-f]{32}\/\d+-[0-9a-z]+-([0-9a-f]{16})\/000000000001-\1\.seg$/);
    expect(owner).toBe(join(dirname(segment), 'owner.json'));
    for (const path of [segment, owner]) expect(lstatSync(join(dir, path)).mode & 0o777).toBe(0o600);
    for (let path = join(dir, dirname(segment)); path !== dirname(dir); path = dirname(path)) {
      expect(lstatSync(path).mode & 0o777).toBe(0o700);
    }
  });

  it('deletes a segment with its last record, and leaves nothing when it closes', () => {
    const { dir, open } = spoolFolder();
    const spool = open();
    const segments = [1, 2].map((number) => spool.append(makeRecord(number)) as Segment);
    expect(segments[1]).toBe(segments[0]);
    spool.release(segments[0] as Segment);
    expect(segmentsBelow(dir)).toHaveLength(1);
    spool.release(segments[1] as Segment);
    expect(segmentsBelow(dir)).toHaveLength(0);
    expect(spool.bytes).toBe(0);
    // One release too many is none.
    spool.release(segments[1] as Segment);
    const next = spool.append(makeRecord(3)) as Segment;
    expect(basename(next.path)).toMatch(/^000000000002-/);
    spool.release(next);
    spool.close();
    expect(readdirSync(dirname(dirname(next.path)))).toEqual([]);
  });

  it('goes on in another file at 4 MiB, and deletes each when its own records are done', () => {
    const { dir, open } = spoolFolder();
    const spool = open();
    const padding = 4 * 1024 * 1024 - sizeOf(1);
    // One byte below, at it, one above.
    const paths = [padding - 1, padding, padding + 1].map((more) => {
      const segment = spool.append(makeRecord(1, more)) as Segment;
      const after = spool.append(makeRecord(1)) as Segment;
      const isSame = after === segment;
      spool.release(after);
      expect(existsSync(segment.path)).toBe(true);
      spool.release(segment);
      expect(existsSync(segment.path)).toBe(false);
      return isSame;
    });
    expect(paths).toEqual([true, false, false]);
    expect(segmentsBelow(dir)).toEqual([]);
  });

  it('hands out what was spilled, oldest first, each once', () => {
    const { dir, open } = spoolFolder();
    const spool = open();
    for (const numbers of [[1, 2], [3], [4, 5]]) spool.spill(numbers.map((number) => makeRecord(number)));
    const one = spool.next() as ReadSegment;
    const two = spool.next() as ReadSegment;
    expect([numbersOf(one), numbersOf(two)]).toEqual([[1, 2], [3]]);
    expect(one).toMatchObject({ damagedRuns: [], isExpired: false, segment: { isForeign: false } });
    expect(drain(spool)).toEqual([4, 5]);
    expect(spool.hasNext).toBe(false);
    expect(segmentsBelow(dir)).toHaveLength(2);
    for (const { segment } of [one, two, one]) spool.done(segment);
    expect(spool.bytes).toBe(0);
    expect(segmentsBelow(dir)).toEqual([]);
    expect(spool.next()).toBeUndefined();
  });

  it('keeps the order of what was spilled when the clock goes back', () => {
    const { time, open } = spoolFolder();
    const spool = open();
    for (const number of [1, 2, 3]) {
      spool.spill([makeRecord(number)]);
      time.wallMs -= 5_000;
    }
    expect(drain(spool)).toEqual([1, 2, 3]);
  });

  it('hands out nothing that was written ahead: the process has that itself', () => {
    const { open } = spoolFolder();
    const spool = open();
    spool.append(makeRecord(1));
    expect(spool.hasNext).toBe(false);
    expect(spool.next()).toBeUndefined();
  });

  it('counts its bytes as the disk does', () => {
    const { dir, open } = spoolFolder();
    const spool = open();
    spool.append(makeRecord(1, 1_000));
    const segment = spool.spill([makeRecord(2), makeRecord(3)]) as Segment;
    const onDisk = () => segmentsBelow(dir).reduce((sum, path) => sum + statSync(join(dir, path)).size, 0);
    expect(spool.bytes).toBe(onDisk());
    spool.done(segment);
    expect(spool.bytes).toBe(onDisk());
  });

  it('takes records to its limit of bytes and no further, and again when some are done', () => {
    const lines = told();
    const bytes = sizeOf(1);
    for (const [bytesMax, isTaken] of [
      [2 * bytes - 1, false],
      [2 * bytes, true],
      [2 * bytes + 1, true],
    ] as const) {
      const { dir, open } = spoolFolder();
      const spool = open({ bytesMax });
      const first = spool.append(makeRecord(1)) as Segment;
      expect(spool.spill([makeRecord(1)]) !== undefined).toBe(isTaken);
      if (isTaken) continue;
      expect(spool.append(makeRecord(1))).toBeUndefined();
      expect(segmentsBelow(dir)).toHaveLength(1);
      expect(lines).toEqual([expect.stringMatching(/^warn: spool: \S+ is at its limit of \d+ bytes; runs are kept/)]);
      spool.release(first);
      expect(spool.append(makeRecord(1))).toBeDefined();
    }
  });

  it('spills all records or none', () => {
    const { dir, open } = spoolFolder();
    const spool = open();
    const record = makeRecord(1);
    const broken = {
      ...record,
      run: { ...record.run, attachments: [{ name: 'a', mimeType: 'a/b', bytes: null as never }] },
    };
    expect(spool.spill([])).toBeUndefined();
    expect(spool.spill([record, broken])).toBeUndefined();
    expect(spool.append(broken)).toBeUndefined();
    expect(segmentsBelow(dir)).toEqual([]);
    expect(spool.spill([record, record])).toBeDefined();
    expect(drain(spool)).toEqual([1, 1]);
  });

  it('gives the age of its own segments by the monotonic clock, whatever happens to the wall clock', () => {
    const { time, open } = spoolFolder();
    const spool = open({ ageMaxMs: 1_000 });
    for (const [ageMs, isExpired] of [
      [1_000, false],
      [1_001, true],
    ] as const) {
      spool.spill([makeRecord(1)]);
      time.wallMs += 90_000_000;
      time.monotonicMs += ageMs;
      expect(spool.next()).toMatchObject({ ageMs, isExpired });
    }
  });

  it('gives the age of foreign segments by their time, and none of them is expired before it was sent', () => {
    const { dir, time, open } = spoolFolder();
    const { path } = open().spill([makeRecord(1)]) as Segment;
    for (const ageMs of [1_001, 0, -1_000_000]) {
      const writtenAtMs = time.wallMs - ageMs;
      const [file = path] = segmentsBelow(dir).map((name) => join(dir, name));
      utimesSync(file, writtenAtMs / 1_000, writtenAtMs / 1_000);
      killOwners(dir);
      const spool = open({ ageMaxMs: 1_000 });
      spool.takeOver();
      const read = spool.next();
      expect(read?.isExpired).toBe(false);
      expect(Math.abs((read?.ageMs ?? -1) - Math.max(0, ageMs))).toBeLessThan(1);
    }
  });

  it('keeps destinations, workspaces and keys apart', () => {
    const base = { endpoint: new URL('https://traces.example/api/'), workspaceId: undefined, apiKey: 'key-1' };
    // The hash of "https://traces.example/api\nkey <SHA-256 of key-1>", summed by another program.
    expect(destinationHash(base)).toBe(HASH);
    const same = [
      'https://user:secret@traces.example/api',
      'HTTPS://Traces.example:443/api//',
      'https://traces.example/api?x=1#y',
    ];
    for (const endpoint of same) expect(destinationHash({ ...base, endpoint: new URL(endpoint) })).toBe(HASH);
    const inWorkspace = { ...base, workspaceId: 'w' };
    expect(destinationHash({ ...inWorkspace, apiKey: 'key-2' })).toBe(destinationHash(inWorkspace));
    const others = [
      { ...base, apiKey: 'key-2' },
      { ...base, apiKey: undefined },
      { ...base, endpoint: new URL('https://traces.example') },
      { ...base, endpoint: new URL('http://traces.example/api') },
      inWorkspace,
      { ...inWorkspace, workspaceId: 'v' },
    ].map(destinationHash);
    expect(new Set([HASH, ...others]).size).toBe(7);
  });

  it('has no key and no password on disk, neither in files nor in their names', () => {
    const { dir, open } = spoolFolder();
    const spool = open({ apiKey: 'canary-key', endpoint: new URL('http://canary-user:canary-word@127.0.0.1/canary') });
    spool.append(makeRecord(1));
    for (const path of filesBelow(dir)) {
      expect(path).not.toMatch(/canary/);
      expect(readFileSync(join(dir, path), 'latin1')).not.toMatch(/canary/);
    }
  });
});

describe('a second exporter of the process', () => {
  it('has a folder of its own, and leaves that of the first alone while it is open', () => {
    const { dir, open } = spoolFolder();
    const [one, two] = [open(), open()];
    one.append(makeRecord(1));
    two.append(makeRecord(2));
    one.spill([makeRecord(3)]);
    expect(new Set(segmentsBelow(dir).map(dirname)).size).toBe(2);
    expect(two.takeOver()).toBe(0);
    one.close();
    expect(two.takeOver()).toBe(2);
    expect(drain(two).sort()).toEqual([1, 3]);
  });
});

describe('taking over', () => {
  it('finds everything that a killed process had written, once', () => {
    const { dir, open } = spoolFolder();
    const killed = open();
    for (const number of [1, 2]) killed.append(makeRecord(number));
    killed.spill([makeRecord(3), makeRecord(4)]);
    killOwners(dir);
    const [one, two] = [open(), open()];
    expect([one.takeOver(), two.takeOver()]).toEqual([2, 0]);
    const read = one.next() as ReadSegment;
    expect(read.segment.isForeign).toBe(true);
    one.done(read.segment);
    expect([...read.records.map(numberOf), ...drain(one)].sort()).toEqual([1, 2, 3, 4]);
    one.close();
    two.close();
    expect(filesBelow(dir)).toEqual([]);
    expect(readdirSync(join(dir, 'v1'), { recursive: true })).toHaveLength(1);
  });

  it('keeps a segment until its runs are settled, regardless of how many processes are killed meanwhile', () => {
    const { dir, open } = spoolFolder();
    open().spill([makeRecord(1)]);
    for (let restarts = 0; restarts < 10; restarts++) {
      killOwners(dir);
      const spool = open();
      expect(spool.takeOver()).toBe(1);
      expect(numbersOf(spool.next())).toEqual([1]);
    }
  });

  it.each([1, 5])('reads a file whose name, given by an earlier version, counts %i deaths', (deaths) => {
    const { dir, open } = spoolFolder();
    const { path } = open().spill([makeRecord(1)]) as Segment;
    renameSync(path, path.replace(/\.seg$/, `.a${deaths}.seg`));
    killOwners(dir);
    const spool = open();
    expect(spool.takeOver()).toBe(1);
    expect(drain(spool)).toEqual([1]);
    expect(segmentsBelow(dir)).toEqual([]);
  });

  it('keeps the order in which one process wrote, whatever the times of its files', () => {
    const { dir, open } = spoolFolder();
    const killed = open();
    const paths = [1, 2, 3].map((number) => (killed.spill([makeRecord(number)]) as Segment).path);
    paths.forEach((path, index) => {
      utimesSync(path, 2_000_000_000 - index * 100, 2_000_000_000 - index * 100);
    });
    killOwners(dir);
    const spool = open();
    spool.takeOver();
    expect(drain(spool)).toEqual([1, 2, 3]);
  });

  it('comes before what this process has spilled later', () => {
    const { dir, time, open } = spoolFolder();
    open().spill([makeRecord(1)]);
    killOwners(dir);
    time.wallMs += 60_000;
    const spool = open();
    spool.spill([makeRecord(2)]);
    spool.takeOver();
    expect(drain(spool)).toEqual([1, 2]);
  });

  it('drains more than the limit allows, and writes nothing until there is room', () => {
    const { dir, open } = spoolFolder();
    const killed = open();
    for (const number of [1, 2, 3]) killed.spill([makeRecord(number, 5_000)]);
    killOwners(dir);
    told();
    const spool = open({ bytesMax: 6_000 });
    expect(spool.takeOver()).toBe(3);
    expect(spool.bytes).toBeGreaterThan(15_000);
    expect(spool.append(makeRecord(4))).toBeUndefined();
    expect(drain(spool)).toEqual([1, 2, 3]);
    expect(spool.append(makeRecord(4))).toBeDefined();
  });

  it('takes nothing of another destination', () => {
    const { dir, open } = spoolFolder();
    open({ apiKey: 'one' }).spill([makeRecord(1)]);
    killOwners(dir);
    expect(open({ apiKey: 'two' }).takeOver()).toBe(0);
    expect(open({ apiKey: 'one' }).takeOver()).toBe(1);
  });

  it('makes its own folder again when somebody has deleted it', () => {
    const { dir, open } = spoolFolder();
    const spool = open();
    const segment = spool.append(makeRecord(1)) as Segment;
    spool.release(segment);
    open().spill([makeRecord(2)]);
    killOwners(dir);
    rmSync(dirname(segment.path), { recursive: true });
    expect(spool.takeOver()).toBe(1);
    expect(drain(spool)).toEqual([2]);
  });

  it('leaves files of another kind alone, and their folder', () => {
    const { dir, open } = spoolFolder();
    const { path } = open().spill([makeRecord(1)]) as Segment;
    const foreign = ['notes.txt', '1.seg', `${basename(path)}.tmp`, basename(path).replace('.seg', '.a0.seg')];
    for (const name of foreign) writeFileSync(join(dirname(path), name), 'mine');
    mkdirSync(join(dirname(path), basename(path).replace('000001', '000002')));
    killOwners(dir);
    const spool = open();
    expect(spool.takeOver()).toBe(1);
    expect(drain(spool)).toEqual([1]);
    for (const name of foreign) expect(readFileSync(join(dirname(path), name), 'utf8')).toBe('mine');
  });
});

describe('damage', () => {
  it('costs the damaged record alone, and the file is set aside when the others are delivered', () => {
    const lines = told();
    const { dir, open } = spoolFolder();
    const killed = open();
    const records = [1, 2, 3].map((number) => makeRecord(number));
    const [path = ''] = records.map((record) => (killed.append(record) as Segment).path);
    const bytes = readFileSync(path);
    const place = bytes.indexOf('"number":2');
    bytes[place] = (bytes[place] as number) ^ 1;
    writeFileSync(path, bytes);
    killOwners(dir);
    const spool = open();
    spool.takeOver();
    const read = spool.next() as ReadSegment;
    expect(numbersOf(read)).toEqual([1, 3]);
    const { id } = (records[1] as SpooledRecord).run;
    expect(read.damagedRuns).toEqual([{ id, traceId: '', name: '' }]);
    expect(filesBelow(dir).some((name) => name.includes('/bad/'))).toBe(false);
    spool.done(read.segment);
    const [bad = ''] = segmentsBelow(dir);
    expect(bad).toMatch(/^v1\/[0-9a-f]{32}\/bad\/000000000001-/);
    expect(readFileSync(join(dir, bad))).toEqual(bytes);
    expect(lstatSync(join(dir, dirname(bad))).mode & 0o777).toBe(0o700);
    expect(spool.bytes).toBe(0);
    expect(lines).toEqual([expect.stringMatching(/^warn: spool: \S+\.seg is damaged; what could be read of it/)]);
  });

  it('of whole files is passed over, and empty ones are deleted', () => {
    told();
    const { dir, open } = spoolFolder();
    const killed = open();
    const paths = [1, 2, 3, 4, 5].map((number) => (killed.spill([makeRecord(number)]) as Segment).path);
    truncateSync(paths[0] as string, 0);
    writeFileSync(paths[1] as string, 'rubbish');
    writeFileSync(paths[2] as string, Buffer.alloc(10_000));
    rmSync(paths[3] as string);
    killOwners(dir);
    const spool = open();
    spool.takeOver();
    expect(drain(spool)).toEqual([5]);
    const bad = segmentsBelow(dir).map((path) => [basename(dirname(path)), basename(path).slice(0, 12)]);
    expect(bad).toEqual([
      ['bad', '000000000002'],
      ['bad', '000000000003'],
    ]);
  });

  it('keeps damaged files to 10 MiB, the newest of them', () => {
    told();
    const { dir, open } = spoolFolder();
    const killed = open();
    const third = Math.ceil(BAD_BYTES_MAX / 3);
    [1, 2, 3, 4].forEach((number) => {
      const { path } = killed.spill([makeRecord(number)]) as Segment;
      writeFileSync(path, Buffer.alloc(number === 1 ? third - 2 : third));
      utimesSync(path, number, number);
    });
    killOwners(dir);
    const spool = open();
    spool.takeOver();
    expect(drain(spool)).toEqual([]);
    // The last two thirds fit with the one that is two bytes smaller, but not the three that are newest.
    expect(segmentsBelow(dir).map((path) => basename(path).slice(0, 12))).toEqual(['000000000003', '000000000004']);
  });
});

describe('a folder that is not ours alone', () => {
  it.each<[string, string, string, 'link' | 'file']>([
    ['the spool’s is a link', '', 'spool', 'link'],
    ['the version’s is a link', 'spool', 'spool/v1', 'link'],
    ['the spool’s is a file', '', 'spool', 'file'],
    ['the version’s is a file', 'spool', 'spool/v1', 'file'],
  ])('is not used: %s', (_, made, planted, kind) => {
    const lines = told();
    const { dir, open } = spoolFolder();
    const elsewhere = join(dirname(dir), 'elsewhere');
    mkdirSync(elsewhere);
    mkdirSync(join(dirname(dir), made), { recursive: true });
    if (kind === 'link') symlinkSync(elsewhere, join(dirname(dir), planted));
    else writeFileSync(join(dirname(dir), planted), '');
    const spool = open();
    expect(spool.append(makeRecord(1))).toBeUndefined();
    expect(spool.spill([makeRecord(1)])).toBeUndefined();
    expect(spool.takeOver()).toBe(0);
    expect(readdirSync(elsewhere)).toEqual([]);
    expect(lines[0]).toMatch(/^warn: spool: .*; runs are kept in memory only, and it is tried again every minute\.$/);
    expect(new Set(lines).size).toBe(lines.length);
  });

  it.runIf(process.getuid?.() === 0)('is not used when it belongs to another user', () => {
    const lines = told();
    const { dir, open } = spoolFolder();
    mkdirSync(dir);
    chownSync(dir, 12_345, 12_345);
    expect(open().append(makeRecord(1))).toBeUndefined();
    expect(lines[0]).toContain('belongs to another user');
  });

  it('is not taken over: neither a link to an owner, nor segments that are links', () => {
    told();
    const { dir, open } = spoolFolder();
    const { path } = open().spill([makeRecord(1)]) as Segment;
    const elsewhere = join(dirname(dir), 'elsewhere');
    renameSync(dirname(path), elsewhere);
    symlinkSync(elsewhere, dirname(path));
    killOwners(dirname(dir));
    const spool = open();
    expect(spool.takeOver()).toBe(0);
    rmSync(dirname(path));
    renameSync(elsewhere, dirname(path));
    renameSync(path, join(dirname(dir), 'segment'));
    symlinkSync(join(dirname(dir), 'segment'), path);
    expect(spool.takeOver()).toBe(0);
    expect(existsSync(join(dirname(dir), 'segment'))).toBe(true);
  });

  it('gives no way to write into a file planted under the name of the next segment', () => {
    const { dir, time, open } = spoolFolder();
    const spool = open();
    const first = spool.append(makeRecord(1)) as Segment;
    const victim = join(dirname(dir), 'victim');
    writeFileSync(victim, 'precious');
    const taken = first.path.replace('000000000001', '000000000002');
    symlinkSync(victim, taken);
    spool.release(first);
    told();
    expect(spool.append(makeRecord(2))).toBeUndefined();
    time.monotonicMs += 60_000;
    expect(basename((spool.append(makeRecord(2)) as Segment).path)).toMatch(/^000000000003-/);
    expect(readFileSync(victim, 'utf8')).toBe('precious');
  });
});

describe('the folder', () => {
  it('is made again at the next heartbeat after it was deleted', async () => {
    const { dir, open } = spoolFolder();
    const spool = open();
    const lost = spool.append(makeRecord(1)) as Segment;
    const spilled = spool.spill([makeRecord(2)]) as Segment;
    rmSync(dir, { recursive: true });
    await virtualClock.advance(5_000);
    expect(spool.append(makeRecord(3))).toBeDefined();
    expect(spool.spill([makeRecord(4)])).toBeDefined();
    // Those that are gone can still be done with, and are not handed out.
    spool.release(lost);
    expect(drain(spool)).toEqual([4]);
    spool.done(spilled);
    killOwners(dir);
    const next = open();
    next.takeOver();
    expect(drain(next)).toEqual([3]);
  });

  it('is made again by a spilled segment before the next heartbeat, which also begins a new file for appended records', async () => {
    const { dir, open } = spoolFolder();
    const spool = open();
    spool.append(makeRecord(1));
    rmSync(dir, { recursive: true });
    spool.spill([makeRecord(2)]);
    await virtualClock.advance(5_000);
    spool.append(makeRecord(3));
    killOwners(dir);
    const next = open();
    next.takeOver();
    expect(drain(next)).toEqual([2, 3]);
  });

  it('may be taken over by a process that counts this one as dead: records after the next heartbeat are kept', async () => {
    const { dir, open } = spoolFolder();
    const suspended = open();
    const one = suspended.append(makeRecord(1)) as Segment;
    killOwners(dir);
    const other = open();
    expect(other.takeOver()).toBe(1);
    const read = other.next() as ReadSegment;
    await virtualClock.advance(5_000);
    expect(suspended.append(makeRecord(2))).toBeDefined();
    other.done(read.segment);
    suspended.release(one);
    killOwners(dir);
    expect(other.takeOver()).toBe(1);
    expect(drain(other)).toEqual([2]);
  });
});
