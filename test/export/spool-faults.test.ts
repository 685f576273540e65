import { existsSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type SpoolFs, systemFs } from '../../src/export/spool/fs.ts';
import type { Segment, Spool, SpooledRecord } from '../../src/export/spool/spool.ts';
import { root } from '../support/folders.ts';
import { drain, filesBelow, killOwners, makeRecord, numberOf, segmentsBelow, spoolFolder } from '../support/spool.ts';
import { told } from '../support/told.ts';

type Fault = 'ENOSPC' | 'EIO' | 'EACCES' | 'EMFILE' | 'ENOENT' | 'EROFS' | 'short write';
const FAULTS: readonly Fault[] = ['ENOSPC', 'EIO', 'EACCES', 'EMFILE', 'ENOENT', 'EROFS', 'short write'];

/**
 * A file system of which some calls fail. A write fails half-way; one that is short says so, and no more. To close always
 * closes, as Linux does, also when it fails.
 */
function failing(fault: Fault, isFailing: (call: number, name: keyof SpoolFs) => boolean) {
  let calls = 0;
  const reached: string[] = [];
  const wrapped = Object.fromEntries(
    (Object.keys(NAMES) as (keyof SpoolFs)[]).map((name) => [
      name,
      (...args: unknown[]) => {
        const call = systemFs[name] as (...args: unknown[]) => unknown;
        const isShort = fault === 'short write';
        if (!isFailing(++calls, name) || (isShort && name !== 'writeSync')) return call(...args);
        reached.push(name);
        if (name === 'closeSync') call(...args);
        if (name === 'writeSync') {
          const [fd, bytes] = args as [number, Uint8Array];
          const written = systemFs.writeSync(fd, bytes.subarray(0, bytes.length >> 1));
          if (isShort) return written;
        }
        throw Object.assign(new Error(`${fault}: planted`), { code: fault });
      },
    ]),
  );
  return { fs: wrapped as unknown as SpoolFs, reached, calls: () => calls };
}

const NAMES: Record<keyof SpoolFs, true> = {
  closeSync: true,
  fdatasync: true,
  fstatSync: true,
  ftruncateSync: true,
  lstatSync: true,
  mkdirSync: true,
  openSync: true,
  readFileSync: true,
  readdirSync: true,
  readlinkSync: true,
  renameSync: true,
  rmdirSync: true,
  unlinkSync: true,
  utimesSync: true,
  writeSync: true,
};

/** What a scenario was promised to find again, and what it may find besides: what was refused, or is done with. */
interface Promised {
  readonly kept: Set<number>;
  readonly given: Set<number>;
}

/** Everything that a spool can do, once; an owner that is dead is there, and a damaged file. */
function scenario(spool: Spool, promised: Promised, time: { monotonicMs: number }): void {
  const written = (record: SpooledRecord, segment: Segment | undefined): Segment | undefined => {
    promised.given.add(numberOf(record));
    if (segment !== undefined) promised.kept.add(numberOf(record));
    return segment;
  };
  const append = (number: number): Segment | undefined => {
    const record = makeRecord(number, number * 10);
    return written(record, spool.append(record));
  };
  const released = append(1);
  append(2);
  if (released !== undefined) {
    spool.release(released);
    promised.kept.delete(1);
  }
  const many = [3, 4].map((number) => makeRecord(number));
  const spilled = spool.spill(many);
  for (const record of many) written(record, spilled);
  spool.takeOver();
  // What waits until a disk has recovered is tried again.
  for (const _ of [1, 2]) {
    for (let read = spool.next(); read !== undefined; read = spool.next()) {
      const numbers = read.records.map(numberOf);
      // The segment of 4 is not delivered.
      if (numbers.includes(4)) continue;
      spool.done(read.segment);
      for (const number of numbers) promised.kept.delete(number);
    }
    time.monotonicMs += 60_000;
  }
  append(5);
  spool.close();
}

/** A folder with what three dead owners have left: numbers 100 to 103, and a file that is damaged. */
function withHistory() {
  const { dir, time, open } = spoolFolder(existsSync('/dev/shm') ? '/dev/shm' : undefined);
  open().append(makeRecord(100));
  open().spill([makeRecord(101), makeRecord(102)]);
  const damaged = open();
  writeFileSync((damaged.spill([makeRecord(104)]) as Segment).path, 'rubbish');
  damaged.spill([makeRecord(103)]);
  killOwners(dir);
  const promised: Promised = { kept: new Set([100, 101, 102, 103]), given: new Set([100, 101, 102, 103]) };
  return { dir, time, open, promised };
}

/** Numbers that somebody finds who comes later, on a disk that works. */
function foundLater({ dir, time, open }: ReturnType<typeof withHistory>): number[] {
  killOwners(dir);
  // An owner that could not say who it is, is held for dead when it has been silent for long.
  time.wallMs += 120_000;
  const spool = open();
  spool.takeOver();
  const numbers = drain(spool);
  spool.close();
  return numbers;
}

describe('a disk on which one call fails', () => {
  /** The calls of the scenario on a disk that works; a failure adds some of its own. */
  const calls: (keyof SpoolFs)[] = [];

  it('is one on which the scenario does all that a spool can do', () => {
    told();
    const history = withHistory();
    const { fs } = failing('EIO', (_, name) => calls.push(name) === 0);
    scenario(history.open({ fs }), history.promised, history.time);
    // `syncEveryMs` is not set, and only a failure truncates.
    expect(Object.keys(NAMES).filter((name) => !calls.includes(name as keyof SpoolFs))).toEqual([
      'fdatasync',
      'ftruncateSync',
    ]);
    expect([...history.promised.kept].sort()).toEqual([2, 3, 4, 5]);
    // The first is in the file of the second.
    expect(foundLater(history).sort()).toEqual([1, 2, 3, 4, 5]);
  });

  it.each<Fault>(['ENOSPC', 'EACCES', 'EROFS', 'EMFILE', 'EIO', 'short write', 'ENOENT'])(
    '(%s) loses nothing that it took, and throws nothing',
    (fault) => {
      told();
      const reached = new Set<string>();
      for (const [index, call] of calls.entries()) {
        if (fault === 'short write' && call !== 'writeSync') continue;
        // By its name and number, since dead owners come in any order.
        let left = calls.slice(0, index + 1).filter((name) => name === call).length;
        const history = withHistory();
        const { fs, reached: names } = failing(fault, (_, name) => name === call && --left === 0);
        scenario(history.open({ fs }), history.promised, history.time);
        for (const name of names) reached.add(name);
        const found = foundLater(history);
        const missing = [...history.promised.kept].filter((number) => !found.includes(number));
        expect({ index, call, missing }).toEqual({ index, call, missing: [] });
        expect(found.filter((number) => !history.promised.given.has(number))).toEqual([]);
      }
      expect([...reached].sort()).toEqual(fault === 'short write' ? ['writeSync'] : [...new Set(calls)].sort());
    },
  );

  it('and every one after it loses nothing that it took, and throws nothing', () => {
    told();
    for (const fault of FAULTS) {
      for (let nth = 1; nth <= calls.length; nth += 10) {
        const history = withHistory();
        const { fs } = failing(fault, (call) => call >= nth);
        scenario(history.open({ fs }), history.promised, history.time);
        const found = foundLater(history);
        expect([...history.promised.kept].filter((number) => !found.includes(number))).toEqual([]);
      }
    }
  });
});

describe('a disk that is full', () => {
  it('is told of once, left alone for a minute, and tried again', () => {
    const lines = told();
    const { dir, time, open } = spoolFolder();
    let isFull = false;
    const { fs, calls } = failing('ENOSPC', (_, name) => isFull && name === 'writeSync');
    const spool = open({ fs });
    const kept = spool.append(makeRecord(1)) as Segment;
    const { size } = statSync(kept.path);
    isFull = true;
    expect(spool.append(makeRecord(2))).toBeUndefined();
    // The half that was written is gone.
    expect(statSync(kept.path).size).toBe(size);
    const before = calls();
    time.monotonicMs = 59_999;
    expect(spool.append(makeRecord(3))).toBeUndefined();
    expect(spool.spill([makeRecord(3)])).toBeUndefined();
    expect(calls()).toBe(before);
    time.monotonicMs = 60_000;
    expect(spool.append(makeRecord(4))).toBeUndefined();
    isFull = false;
    time.monotonicMs = 120_000;
    const next = spool.append(makeRecord(5)) as Segment;
    expect(next).toBeDefined();
    // The file goes with its one record.
    spool.release(kept);
    expect(segmentsBelow(dir)).toHaveLength(1);
    expect(lines).toEqual([
      `warn: spool: cannot write in ${dir} (ENOSPC); runs are kept in memory only, and it is tried again every minute.`,
    ]);
  });

  it('is told of by the same code where it takes a part and says nothing', () => {
    const lines = told();
    const { dir, open } = spoolFolder();
    const { fs } = failing('short write', (_, name) => name === 'writeSync' && segmentsBelow(dir).length > 0);
    expect(open({ fs }).append(makeRecord(1))).toBeUndefined();
    expect(lines).toEqual([expect.stringMatching(/cannot write in \S+ \(ENOSPC\); runs are kept in memory only/)]);
  });

  it('is emptied without a byte of room', () => {
    told();
    const { dir, open } = spoolFolder();
    let isFull = false;
    const needRoom = new Set<keyof SpoolFs>(['writeSync', 'mkdirSync', 'openSync']);
    const { fs } = failing('ENOSPC', (_, name) => isFull && needRoom.has(name) && name !== 'openSync');
    const spool = open({ fs });
    const ahead = spool.append(makeRecord(1)) as Segment;
    spool.spill([makeRecord(2), makeRecord(3)]);
    isFull = true;
    expect(drain(spool)).toEqual([2, 3]);
    spool.release(ahead);
    expect(segmentsBelow(dir)).toEqual([]);
    spool.close();
    expect(existsSync(dirname(ahead.path))).toBe(false);
  });
});

describe('what dead processes have left on a disk that is full', () => {
  const dead = (folder: ReturnType<typeof spoolFolder>): void => {
    folder.open().spill([makeRecord(1), makeRecord(2)]);
    folder.open().spill([makeRecord(3)]);
    killOwners(folder.dir);
  };

  it('is delivered where there is no room for the bytes of a file', () => {
    const lines = told();
    const folder = spoolFolder();
    dead(folder);
    const { fs } = failing('ENOSPC', (_, name) => name === 'writeSync');
    const next = folder.open({ fs });
    expect(next.takeOver()).toBe(2);
    expect(drain(next).sort()).toEqual([1, 2, 3]);
    next.close();
    expect(filesBelow(folder.dir)).toEqual([]);
    expect(lines).toEqual([]);
  });

  it('makes the room that the next owner needs to say who it is', () => {
    told();
    const folder = spoolFolder();
    dead(folder);
    let isFull = true;
    const { fs } = failing('ENOSPC', (_, name) => {
      if (name === 'unlinkSync') isFull = false;
      return isFull && (name === 'mkdirSync' || name === 'writeSync');
    });
    const next = folder.open({ fs });
    expect(next.takeOver()).toBe(2);
    // Nobody else takes it from a process that is alive.
    folder.time.wallMs += 120_000;
    expect(folder.open().takeOver()).toBe(0);
    expect(drain(next).sort()).toEqual([1, 2, 3]);
  });

  it('stays where nothing can be renamed, and the log says why', () => {
    const lines = told();
    const folder = spoolFolder();
    dead(folder);
    const needWriting: readonly (keyof SpoolFs)[] = ['mkdirSync', 'writeSync', 'renameSync', 'unlinkSync'];
    const { fs } = failing('EROFS', (_, name) => needWriting.includes(name));
    expect(folder.open({ fs }).takeOver()).toBe(0);
    expect(segmentsBelow(folder.dir)).toHaveLength(2);
    expect(lines).toEqual([expect.stringContaining('(EROFS)')]);
  });
});

describe('a segment that cannot be deleted', () => {
  it('stays, and the next process delivers its records again', () => {
    const { dir, open } = spoolFolder();
    const { fs } = failing('EIO', (_, name) => name === 'unlinkSync');
    const spool = open({ fs });
    spool.release(spool.append(makeRecord(1)) as Segment);
    expect(spool.bytes).toBe(0);
    spool.close();
    killOwners(dir);
    const next = open();
    next.takeOver();
    expect(drain(next)).toEqual([1]);
  });
});

describe('a segment that cannot be read', () => {
  it('stays, and is tried again a minute later', () => {
    const lines = told();
    const { time, open } = spoolFolder();
    let isBroken = false;
    const { fs } = failing('EMFILE', (_, name) => isBroken && name === 'openSync');
    const spool = open({ fs });
    spool.spill([makeRecord(1)]);
    isBroken = true;
    expect(spool.next()).toBeUndefined();
    expect(spool.hasNext).toBe(false);
    isBroken = false;
    time.monotonicMs = 59_999;
    expect(spool.next()).toBeUndefined();
    time.monotonicMs = 60_000;
    expect(spool.hasNext).toBe(true);
    expect(drain(spool)).toEqual([1]);
    expect(lines).toEqual([expect.stringMatching(/cannot read in \S+ \(EMFILE\); what is there is kept, and it is/)]);
  });
});

describe('a path that cannot be a folder', () => {
  it.each<[string, (dir: string) => string]>([
    ['a file stands in its way', () => join(root, 'package.json', 'spool')],
    ['its name is too long', (dir) => `${dir}/${'x'.repeat(300)}`],
    ['the system has no folders there', () => '/proc/1/spool'],
    ['it has a NUL', (dir) => `${dir}\0`],
  ])('keeps runs in memory, after one line: %s', (_, pathOf) => {
    const lines = told();
    const { dir, open } = spoolFolder();
    const spool = open({ spoolDir: pathOf(dir) });
    expect(spool.append(makeRecord(1))).toBeUndefined();
    expect(spool.spill([makeRecord(1)])).toBeUndefined();
    spool.takeOver();
    spool.close();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^warn: spool: cannot write in .* \([A-Z_]+\); runs are kept in memory only/);
  });
});
