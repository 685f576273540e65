// Files of earlier processes that are damaged or written by another version.
import '../support/virtual-timers.ts';

import { basename, dirname } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addsUp } from '../support/adds-up.ts';
import { cases, forAllAsync } from '../support/campaign.ts';
import { advance, settle } from '../support/delivery.ts';
import { machine, type Process } from '../support/processes.ts';
import { changeRecord, HEAD_BYTES, laterVersion, recordStarts } from '../support/spool.ts';

const BAD_BYTES_MAX = 10 * 1024 * 1024;

/**
 * Damages the file that a process leaves after `record`, and starts the process that delivers the rest. With
 * `write-ahead`, the process is killed.
 */
async function afterDamage(
  record: (process: Process) => void,
  harm: (bytes: Buffer) => Buffer,
  durability: 'spill' | 'write-ahead' = 'spill',
) {
  const made = machine();
  const first = await made.start({ options: { durability }, reply: () => 'hold' });
  record(first);
  await settle();
  if (durability === 'write-ahead') first.kill();
  else first.exit();
  const requests = first.service.requests.length;
  const [path = ''] = made.segments();
  made.disk.damage(path, harm);
  const last = await made.deliverRest();
  const arrived = last.service.requests.slice(requests).flatMap(({ arrivals }) => arrivals);
  return { ...made, path, last, arrived: arrived.filter(({ name }) => name !== 'last') };
}

function flipCanary(bytes: Buffer): Buffer {
  const at = bytes.indexOf('canary');
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return bytes;
}

const RUNS = 12;
const ALL = Array.from({ length: RUNS }, (_, number) => number);

/** Damages a file. Returns the numbers of the runs that are intact, and how many others are known to be missing. */
type Harm = (bytes: Buffer, starts: readonly number[]) => { file: Buffer; kept: number[]; corrupt: number };

const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

function flip(bytes: Buffer, at: number, bit: number): number {
  const place = Math.floor(at * bytes.length);
  bytes.writeUInt8(bytes.readUInt8(place) ^ (1 << bit), place);
  return place;
}

/** Flips bits, at most one in each head. A head with two flipped bits is lost, with the id of its run. */
function flipApart(bytes: Buffer, places: readonly (readonly [at: number, bit: number])[]): Buffer {
  const starts = recordStarts(bytes);
  const flipped = new Set<number>();
  for (const [at, bit] of places) {
    const place = Math.floor(at * bytes.length);
    const start = starts.findLast((one) => one <= place) ?? 0;
    const isHead = place - start < HEAD_BYTES;
    if (isHead && flipped.has(start)) continue;
    if (isHead) flipped.add(start);
    flip(bytes, at, bit);
  }
  return bytes;
}

/** One flipped bit in a head costs nothing. A damaged payload costs its run. */
const flipped = fc.tuple(share, fc.nat(7)).map(
  ([at, bit]): Harm =>
    (bytes, starts) => {
      const place = flip(bytes, at, bit);
      const index = starts.findLastIndex((start) => start <= place);
      const isHead = place - (starts[index] ?? 0) < HEAD_BYTES;
      const kept = ALL.filter((number) => number !== index || isHead);
      return { file: bytes, kept, corrupt: RUNS - kept.length };
    },
);

/** A cut counts as one missing run. Zeros at the end count as none, and may be equal to the bytes that were cut off. */
const cut = fc.tuple(share, fc.nat(5_000)).map(
  ([at, zeros]): Harm =>
    (bytes, starts) => {
      const length = 1 + Math.floor(at * bytes.length);
      const ends = [...starts.slice(1), bytes.length];
      const whole = ends.filter((end) => end <= length).length;
      const missing = bytes.subarray(length, ends[whole]);
      const isPadded = missing.length <= zeros && missing.every((byte) => byte === 0);
      const corrupt = isPadded || ends.includes(length) ? 0 : 1;
      const file = Buffer.concat([bytes.subarray(0, length), Buffer.alloc(zeros)]);
      return { file, kept: ALL.slice(0, isPadded ? whole + 1 : whole), corrupt };
    },
);

/** The number of the next record tells how many runs were in the zeroed part. */
const zeroed = fc.tuple(fc.nat(10), fc.integer({ min: 1, max: 11 })).map(
  ([first, count]): Harm =>
    (bytes, starts) => {
      const last = Math.min(first + count, 11);
      const file = bytes.fill(0, starts[first], starts[last]);
      return { file, kept: ALL.filter((number) => number < first || number >= last), corrupt: last - first };
    },
);

const replaced = fc.constant<Harm>(() => ({ file: Buffer.from('rubbish'), kept: [], corrupt: 1 }));

const harms = fc.oneof(
  { weight: 4, arbitrary: flipped },
  { weight: 4, arbitrary: cut },
  { weight: 2, arbitrary: zeroed },
  replaced,
);

describe('a file', () => {
  const one = ({ whole }: Process): void => void whole();

  it('with a valid checksum and a time that would break a request counts as damaged', async () => {
    const { last } = await afterDamage(one, (bytes) => {
      changeRecord(bytes, 0, (_, payload) => void payload.write('"\r\n', payload.indexOf('"start_time":"') + 14));
      return bytes;
    });
    expect(last.service.arrivals('run')).toEqual([]);
    expect(last.stats()).toMatchObject({ recovered: 1, droppedByReason: { corrupt: 1 } });
  });

  it('of a later version is not changed, and one line reports it', async () => {
    const { path, disk, last, segments, deliverRest } = await afterDamage(({ wholes }) => void wholes(2), laterVersion);
    const later = disk.read(segments()[0] ?? '');
    for (const { lines, stats } of [last, await deliverRest(), await deliverRest()]) {
      expect(stats()).toMatchObject({ recovered: 0, sent: 1, dropped: 0 });
      expect(lines[0]).toContain('was written by a later version of runspan and is not read; upgrade');
    }
    const [kept = ''] = segments();
    expect(basename(kept)).toBe(basename(path));
    expect(disk.read(kept)).toEqual(later);
  });

  it('that is damaged loses only the affected runs, and counts them as corrupt', async () => {
    await forAllAsync(60, [harms], async (harm) => {
      let expected = { kept: ALL, corrupt: 0 };
      const damage = (bytes: Buffer): Buffer => {
        const starts = recordStarts(bytes);
        expect(starts).toHaveLength(RUNS);
        const { file, ...rest } = harm(bytes, starts);
        expected = rest;
        return file;
      };
      const record = ({ whole }: Process): void => {
        for (const number of ALL) whole(`r${number}`, { inputs: { number, padding: '.'.repeat(number * 7) } });
      };
      const { last, segments, arrived } = await afterDamage(record, damage);
      const { stats, drops } = last;
      const { kept, corrupt } = expected;

      expect(arrived.map(({ fields }) => fields.inputs?.number)).toEqual(kept);
      expect(stats()).toMatchObject({ recovered: kept.length + corrupt, droppedByReason: { corrupt } });
      expect(addsUp(stats())).toBe(true);
      expect(drops).toHaveLength(corrupt);
      expect(segments().filter((file) => !file.includes('/bad/'))).toEqual([]);
    });
  });

  it.each([
    ['spill', 20],
    ['write-ahead', 1],
    ['write-ahead', 20],
  ] as const)(
    'of %s loses at most one of 200 runs for each flipped bit, and counts each lost run once, with %i bits',
    async (durability, bits) => {
      const flips = fc.array(fc.tuple(share, fc.nat(7)), { minLength: bits, maxLength: bits });
      const property = fc.asyncProperty(flips, async (places) => {
        const harm = (bytes: Buffer): Buffer => flipApart(bytes, places);
        const { last, arrived } = await afterDamage(({ wholes }) => void wholes(200), harm, durability);
        const { stats, drops } = last;
        const ended = arrived.filter(({ isEnded }) => isEnded);
        expect(new Set(ended.map(({ id }) => id)).size).toBe(200 - drops.length);
        if (bits === 1) expect(new Set(arrived.map(({ id }) => id)).size).toBe(200);
        expect(drops.length).toBeLessThanOrEqual(bits);
        expect(stats()).toMatchObject({ recovered: 200, droppedByReason: { corrupt: drops.length } });
        expect(addsUp(stats())).toBe(true);
      });
      await fc.assert(property, { numRuns: cases(bits === 1 ? 20 : 10) });
    },
  );

  it('in which every record is damaged counts each of them once', async () => {
    const everyPayload = (bytes: Buffer): Buffer => {
      for (const start of recordStarts(bytes)) bytes.fill(0, start + 20, start + HEAD_BYTES + 20);
      return bytes;
    };
    for (const runs of [1, 5]) {
      const { stats, drops } = (await afterDamage(({ wholes }) => void wholes(runs), everyPayload)).last;
      expect(stats()).toMatchObject({ created: 1, recovered: runs, sent: 1, droppedByReason: { corrupt: runs } });
      expect(drops).toHaveLength(runs);
      expect(addsUp(stats())).toBe(true);
    }
  });

  it('that is damaged is set aside after its intact runs are delivered, and reported in one line', async () => {
    let bytes: Buffer = Buffer.alloc(0);
    // A journal of names alone leaves the length of a file, and zeros where nothing was written yet.
    const harm = (whole: Buffer): Buffer => {
      bytes = whole.fill(0, whole.length - 40);
      return bytes;
    };
    const { last, disk, segments } = await afterDamage(({ wholes }) => void wholes(3), harm);

    expect(last.stats()).toMatchObject({ recovered: 3, sent: 3, droppedByReason: { corrupt: 1 } });
    const [bad = ''] = segments();
    expect(dirname(bad)).toMatch(/\/bad$/);
    expect(disk.read(bad)).toEqual(bytes);
    expect(last.lines.filter((line) => line.includes('is damaged'))).toHaveLength(1);
  });

  it('that is damaged is kept within 10 MiB for all damaged files', async () => {
    const { disk, start, deliverRest, segments } = machine();
    for (let count = 0; count < 4; count++) {
      const process = await start({ reply: () => 'hold' });
      process.whole();
      process.exit();
    }
    expect(segments()).toHaveLength(4);
    for (const path of segments()) disk.damage(path, () => Buffer.alloc(Math.ceil(BAD_BYTES_MAX / 3) + 1));
    await deliverRest();
    const kept = segments();

    expect(kept.length).toBeGreaterThan(0);
    expect(kept.reduce((sum, path) => sum + disk.read(path).length, 0)).toBeLessThanOrEqual(BAD_BYTES_MAX);
  });

  it('with a damaged start record loses nothing if the end record is intact', async () => {
    const record = ({ start }: Process): void => start('ask', { inputs: { text: 'canary' } }).end({ a: 1 });
    const { last } = await afterDamage(record, flipCanary, 'write-ahead');

    expect(last.stats()).toMatchObject({ recovered: 1, sent: 2, dropped: 0 });
    expect(last.service.arrivals('ask').at(-1)?.isEnded).toBe(true);
  });

  it('with a damaged end record loses that run once, even if the start record is intact', async () => {
    const record = ({ start }: Process): void => start('ask').end({ text: 'canary' });
    const { last } = await afterDamage(record, flipCanary, 'write-ahead');

    expect(last.drops).toHaveLength(1);
    expect(last.stats()).toMatchObject({ recovered: 1, sent: 1, spooled: 0, droppedByReason: { corrupt: 1 } });
  });

  it('that is damaged is counted only by the process that sets the file aside', async () => {
    const { disk, start, deliverRest, segments } = machine();
    const first = await start({ reply: () => 'hold' });
    first.wholes(3);
    first.exit();
    disk.damage(segments()[0] ?? '', (bytes) => bytes.subarray(0, -1));
    const second = await start({ reply: () => 'hold' });
    second.start('second');
    await settle();
    await advance(1_000);
    await second.close({ timeoutMs: 0 });
    expect(second.stats()).toMatchObject({ dropped: 0 });
    second.kill();

    expect((await deliverRest()).stats()).toMatchObject({ recovered: 4, droppedByReason: { corrupt: 1 } });
  });
});
