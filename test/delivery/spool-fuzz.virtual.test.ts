// Segment files with random records and random damage.
import '../support/virtual-timers.ts';

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Spool, type SpooledRecord } from '#src/delivery/spool/spool.ts';
import { cases } from '../support/campaign.ts';
import { ended, makeRun } from '../support/encoded-run.ts';
import { logLines } from '../support/log-lines.ts';
import { MEMORY_SPOOL, MemoryDisk } from '../support/memory-fs.ts';
import { HEAD_BYTES, SPOOL } from '../support/spool.ts';

/** Size of the token, the version and the offset, with which a head starts. */
const START_BYTES = 16;

function spoolOn(disk: MemoryDisk): Spool {
  return new Spool({ ...SPOOL, spoolDir: MEMORY_SPOOL, wallMs: () => disk.nowMs, fs: disk.process().fs });
}

const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

/** Without this limit, the copies would double the file with each record. */
const COPY_BYTES_MAX = 4_000;

/** Returns an attachment for the next record of a file. */
type MakeAttachment = (file: Buffer) => Uint8Array;

const attachment: fc.Arbitrary<MakeAttachment> = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => () => bytes),
  // A copy of records that are already in the file.
  fc.oneof(fc.constant(0), share).map(
    (at): MakeAttachment =>
      (file) => {
        const from = Math.floor(at * file.length);
        return Uint8Array.from(file.subarray(from, from + COPY_BYTES_MAX));
      },
  ),
);

/** A run that is written once, or once at its start and again at its end. */
const runs = fc.array(
  fc.record({
    isWrittenTwice: fc.boolean(),
    padding: fc.oneof(fc.nat(2), fc.nat(300)),
    attachments: fc.array(attachment, { maxLength: 2 }),
  }),
  { minLength: 1, maxLength: 12 },
);

/** Damages a file. `starts` are the starts of its records. */
type Harm = (file: Buffer, starts: readonly number[]) => Buffer;

const flip = fc.tuple(share, fc.nat(7)).map(
  ([at, bit]): Harm =>
    (file) => {
      const place = Math.floor(at * file.length);
      if (place < file.length) file[place] = file.readUInt8(place) ^ (1 << bit);
      return file;
    },
);

const cut = share.map(
  (at): Harm =>
    (file) =>
      file.subarray(0, Math.ceil(at * file.length)),
);

/** Replaces a range by zeros, by other bytes or by a copy of another part of the file. */
const overwrite = fc
  .tuple(share, fc.nat(1_000), fc.oneof(fc.constant(undefined), fc.uint8Array({ minLength: 1, maxLength: 4 }), share))
  .map(
    ([at, length, by]): Harm =>
      (file) => {
        const from = Math.floor(at * file.length);
        if (typeof by === 'number') {
          const source = Math.floor(by * file.length);
          Buffer.from(file.subarray(source, source + length)).copy(file, from);
        } else file.fill(by ?? 0, from, Math.min(from + length, file.length));
        return file;
      },
  );

/** Writes the bytes of one record over another record, as a disk does that mixes up its blocks. */
const misplace = fc.tuple(fc.nat(23), fc.nat(23)).map(
  ([source, target]): Harm =>
    (file, starts) => {
      const [from, to] = [source % starts.length, target % starts.length];
      Buffer.from(file.subarray(starts[from], starts[from + 1])).copy(file, starts[to]);
      return file;
    },
);

const harms = fc.array(fc.oneof({ weight: 4, arbitrary: flip }, cut, overwrite, misplace), {
  minLength: 1,
  maxLength: 20,
});

function contentOf({ op, isEnded, run }: SpooledRecord): string {
  const attachments = run.attachments?.map(
    ({ name, bytes }) => `${name}:${Buffer.from(bytes as Uint8Array).toString('hex')}`,
  );
  const { id, name, startTime, endTime, inputs, outputs } = run;
  return JSON.stringify([op, isEnded, id, name, startTime, endTime, inputs, outputs, attachments]);
}

interface Written {
  readonly id: string;
  readonly content: string;
  readonly start: number;
  readonly end: number;
}

/** Writes the records of the runs to one file, and returns where each record is. */
function write(
  disk: MemoryDisk,
  made: readonly { isWrittenTwice: boolean; padding: number; attachments: MakeAttachment[] }[],
) {
  const spool = spoolOn(disk);
  const written: Written[] = [];
  let path = '';
  const append = (record: SpooledRecord): void => {
    const start = disk.read(path).length;
    path = spool.append(record)?.path ?? '';
    written.push({ id: record.run.id, content: contentOf(record), start, end: disk.read(path).length });
  };
  for (const { isWrittenTwice, padding, attachments } of made) {
    const bytesOf = attachments.map((make) => make(disk.read(path)));
    const run = makeRun({
      inputs: JSON.stringify({ padding: '.'.repeat(padding) }),
      attachments:
        bytesOf.length === 0 ? undefined : bytesOf.map((bytes, at) => ({ name: `a${at}`, mimeType: 'a/b', bytes })),
    });
    if (isWrittenTwice) append({ op: 'post', isEnded: false, run });
    append({ op: 'post', isEnded: true, run: ended(run, { outputs: '{"is":"output"}' }) });
  }
  spool.close();
  return { path, written };
}

it('reading a damaged file returns each record whose bytes are unchanged, once, and nothing else', () => {
  logLines();
  const property = fc.property(runs, harms, (made, damage) => {
    const disk = new MemoryDisk();
    const { path, written } = write(disk, made);
    const before = disk.read(path);
    const starts = written.map(({ start }) => start);
    disk.damage(path, (bytes) => damage.reduce((file, harm) => harm(file, starts), bytes));
    const after = disk.read(path);
    const isSame = (start: number, end: number): boolean =>
      after.length >= end && before.subarray(start, end).equals(after.subarray(start, end));

    const spool = spoolOn(disk);
    spool.takeOver();
    const read = spool.next();
    spool.close();
    const contents = read?.records.map(contentOf) ?? [];
    const lost = read?.damagedRuns.map(({ id }) => id) ?? [];

    // The content of a record contains its id and its stage, so all are different.
    const order = contents.map((content) => written.findIndex((one) => one.content === content));
    expect(order).not.toContain(-1);
    expect(order).toEqual([...new Set(order)].sort((one, other) => one - other));
    for (const [number, one] of written.entries()) if (isSame(one.start, one.end)) expect(order).toContain(number);

    const unread = written.filter((_, number) => !order.includes(number)).map(({ id }) => id);
    for (const id of lost.filter((one) => one !== '')) expect(unread.splice(unread.indexOf(id), 1)).toEqual([id]);
    // An intact head shows how many records are before it, and an intact start of a head is one more record.
    const known = written.findLastIndex(({ start }) => isSame(start, start + HEAD_BYTES)) + 1;
    const started = written.slice(known).filter(({ start }) => isSame(start, start + START_BYTES)).length;
    const least = Math.max(known + started, after.length === 0 ? 0 : 1);
    expect(contents.length + lost.length).toBeGreaterThanOrEqual(least);
    expect(contents.length + lost.length).toBeLessThanOrEqual(written.length);
  });
  fc.assert(property, { numRuns: cases(3_000) });
});
