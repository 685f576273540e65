import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ReadSegment, Segment, Spool, SpooledRecord } from '../../src/export/spool/spool.ts';
import type { EncodedRun } from '../../src/run/encoded-run.ts';
import { ended, makeRun } from '../support/encoded-run.ts';
import { root } from '../support/folders.ts';
import { drain, filesBelow, killOwners, makeRecord, numberOf, segmentsBelow, spoolFolder } from '../support/spool.ts';
import { told } from '../support/told.ts';

const HEAD_BYTES = 60;

/** A file system in memory where there is one: these tests write thousands of files. */
const MEMORY = existsSync('/dev/shm') ? '/dev/shm' : undefined;

/** Reads what a killed process left in this folder, as the next process does. */
function readLater({ dir, open }: ReturnType<typeof spoolFolder>): { spool: Spool; reads: ReadSegment[] } {
  killOwners(dir);
  const spool = open();
  spool.takeOver();
  const reads: ReadSegment[] = [];
  for (let read = spool.next(); read !== undefined; read = spool.next()) reads.push(read);
  return { spool, reads };
}

/** A segment with these records, and the position at which each frame begins and the last one ends. */
function segmentOf(records: readonly SpooledRecord[]) {
  const folder = spoolFolder(MEMORY);
  const spool = folder.open();
  const bounds = [0];
  let path = '';
  for (const record of records) {
    path = (spool.append(record) as Segment).path;
    bounds.push(spool.bytes);
  }
  return { folder, path, bounds, bytes: readFileSync(path) };
}

const json = fc.json().filter((text) => /^[^"0-9tfn-]/.test(text));
const objectJson = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value));
const text = fc.string({ unit: 'grapheme' });
const runs: fc.Arbitrary<EncodedRun> = fc
  .record({
    name: text,
    runType: text,
    project: fc.oneof(
      text,
      text.map((id) => ({ id })),
    ),
    tags: fc.option(fc.array(text), { nil: undefined }),
    metadata: fc.option(
      fc.array(fc.tuple(fc.oneof(text, fc.constant('__proto__')), json)).map((entries) => new Map(entries)),
      { nil: undefined },
    ),
    runtime: fc.option(objectJson, { nil: undefined }),
    inputs: fc.option(objectJson, { nil: undefined }),
    outputs: fc.option(objectJson, { nil: undefined }),
    events: fc.option(
      fc.array(fc.jsonValue()).map((value) => JSON.stringify(value)),
      { nil: undefined },
    ),
    error: fc.option(text, { nil: undefined }),
    attachments: fc.option(
      fc.array(
        fc.record({
          name: fc.stringMatching(/^[^.]{1,9}$/).filter((name) => name.isWellFormed()),
          mimeType: fc.constantFrom('text/plain', 'image/png; q=1'),
          bytes: fc.uint8Array(),
        }),
        { minLength: 1, maxLength: 3 },
      ),
      { nil: undefined },
    ),
  })
  .map((fields) => ended(makeRun(fields), fields));

describe('a record', () => {
  it('is read by the next process as it was written', () => {
    const folder = spoolFolder(MEMORY);
    fc.assert(
      fc.property(runs, fc.constantFrom('post', 'patch'), (run, op) => {
        const record = { op, isEnded: true, run } as const;
        const spool = folder.open();
        spool.append(record);
        const later = readLater(folder);
        expect(later.reads).toMatchObject([{ damagedRuns: [] }]);
        expect(later.reads[0]?.records).toEqual([record]);
        later.spool.done((later.reads[0] as ReadSegment).segment);
      }),
      { numRuns: 150 },
    );
    expect(({} as Record<string, unknown>).isAdmin).toBeUndefined();
  });

  it('of a start has nothing of the end, and an error is stored as its text', () => {
    const run = ended(makeRun({ inputs: '{"a":1}' }), {
      outputs: '{"b":1}',
      events: '[1]',
      error: 'RangeError: too far',
    });
    const { folder } = segmentOf([
      { op: 'post', isEnded: false, run },
      { op: 'post', isEnded: true, run },
    ]);
    const [start, end] = readLater(folder).reads[0]?.records ?? [];
    expect(start?.run).toMatchObject({ outputs: undefined, events: undefined, error: undefined, endTime: undefined });
    expect(end?.run.error).toBe('RangeError: too far');
  });

  it('counts the blobs that are left out, and the run stays as it is', () => {
    const kept = { name: 'kept', mimeType: 'text/plain', bytes: Buffer.from('x') };
    const attachments = [{ name: 'blob', mimeType: 'text/plain', bytes: new Blob(['y']) }, kept];
    const metadata = new Map([['dropped_attachments', '2']]);
    const run = ended(makeRun({ attachments, metadata }));
    const read = readLater(segmentOf([{ op: 'post', isEnded: true, run }]).folder).reads[0]?.records[0]?.run;
    expect(read?.attachments).toEqual([{ ...kept, bytes: Uint8Array.from(Buffer.from('x')) }]);
    expect(read?.attachments?.[0]?.bytes).toHaveProperty('buffer.byteLength', 1);
    expect([...(read?.metadata ?? [])]).toEqual([['dropped_attachments', '3']]);
    expect(run.attachments).toBe(attachments);
  });

  it('with values that requests contain unescaped is damaged if these could end their place', () => {
    told();
    const run = ended(makeRun());
    for (const field of ['traceId', 'dottedOrder', 'startTime', 'parentRunId', 'endTime'] as const) {
      const { folder } = segmentOf([{ op: 'post', isEnded: true, run: { ...run, [field]: '1"\r\n' } }]);
      expect(readLater(folder).reads).toMatchObject([{ records: [], damagedRuns: [{ id: run.id }] }]);
    }
  });
});

describe('a damaged segment', () => {
  const RECORDS = Array.from({ length: 12 }, (_, number) => makeRecord(number, number * 7));
  const IDS = RECORDS.map(({ run }) => run.id);

  it('loses one record if a bit of a payload flips, and the later ones if a bit of a head flips', () => {
    told();
    const { folder, path, bounds, bytes } = segmentOf(RECORDS);
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(7), (at, bit) => {
        const index = bounds.findLastIndex((start) => start <= at);
        const file = Buffer.from(bytes);
        file[at] = (file[at] as number) ^ (1 << bit);
        const read = readAlone(folder, path, file);
        const isHead = at - (bounds[index] as number) < HEAD_BYTES;
        const expected = isHead ? IDS.slice(0, index) : IDS.toSpliced(index, 1);
        expect(read?.records.map(({ run }) => run.id)).toEqual(expected);
        const lost = isHead ? ['', ...IDS.slice(index + 1)] : [IDS[index]];
        expect(read?.damagedRuns.map(({ id }) => id)).toEqual(lost);
      }),
      { numRuns: 400 },
    );
  });

  it('that is cut off anywhere keeps every record before the cut, and counts the one that is cut', () => {
    told();
    const { folder, path, bounds, bytes } = segmentOf(RECORDS);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: bytes.length }), fc.nat(5_000), (length, zeros) => {
        const cut = bounds.findLastIndex((end) => end <= length);
        const missing = bytes.subarray(length, bounds[cut + 1]);
        // Zeros may be just what was cut off.
        const isWhole = missing.length <= zeros && missing.every((byte) => byte === 0);
        const whole = isWhole ? cut + 1 : cut;
        const read = readAlone(folder, path, Buffer.concat([bytes.subarray(0, length), Buffer.alloc(zeros)]));
        expect(read?.records.map(numberOf)).toEqual(RECORDS.slice(0, whole).map(numberOf));
        expect(read?.damagedRuns.length).toBe(isWhole || bounds.includes(length) ? 0 : 1);
      }),
      { numRuns: 300 },
    );
  });

  it('counts the records of a part that was zeroed, by the ordinal of the next one', () => {
    told();
    const { folder, path, bounds, bytes } = segmentOf(RECORDS);
    fc.assert(
      fc.property(fc.nat(10), fc.integer({ min: 1, max: 11 }), (first, count) => {
        const end = Math.min(first + count, 11);
        fc.pre(end > first);
        const read = readAlone(folder, path, Buffer.from(bytes).fill(0, bounds[first], bounds[end]));
        expect(read?.records.map(numberOf)).toEqual(RECORDS.slice(0, first).map(numberOf));
        expect(read?.damagedRuns.map(({ id }) => id)).toEqual([...Array(end - first).fill(''), ...IDS.slice(end)]);
      }),
      { numRuns: 100 },
    );
  });

  it('is read to its end whatever it contains, and is never taken for one of a later version', () => {
    told();
    const { folder, path, bounds, bytes } = segmentOf(RECORDS);
    const frame = fc.nat(11).map((index) => bytes.subarray(bounds[index], bounds[index + 1]));
    const head = frame.map((one) => one.subarray(0, HEAD_BYTES));
    const pieces = fc.array(fc.oneof(fc.uint8Array({ maxLength: 90 }), frame, head), { minLength: 1 });
    fc.assert(
      fc.property(pieces, (parts) => {
        const file = Buffer.concat(parts);
        fc.pre(file.length > 0);
        const read = readAlone(folder, path, file);
        const found = (read?.records.length ?? 0) + (read?.damagedRuns.length ?? 0);
        expect(found).toBeGreaterThan(0);
        expect(found).toBeLessThanOrEqual(1 + file.length / HEAD_BYTES);
      }),
      { numRuns: 300 },
    );
  });

  /** Reads a file with these bytes. The folder has no other segment. */
  function readAlone({ open }: ReturnType<typeof spoolFolder>, path: string, bytes: Buffer): ReadSegment | undefined {
    const spool = open({ spoolDir: `${path}-${Math.random()}` });
    const { path: own } = spool.spill([RECORDS[0] as SpooledRecord]) as Segment;
    writeFileSync(own, bytes);
    const read = spool.next();
    if (read !== undefined) spool.done(read.segment);
    spool.close();
    return read;
  }
});

describe('any sequence of appends, spills, releases and kills', () => {
  const steps = fc.array(fc.constantFrom('append', 'spill', 'release', 'deliver', 'kill', 'torn'), { maxLength: 40 });

  it('loses no record that was written and is still needed, and delivers those of one process in order', () => {
    told();
    fc.assert(
      fc.property(steps, (names) => {
        const { dir, open } = spoolFolder(MEMORY);
        const needed = new Set<number>();
        const isDelivered = new Set<number>();
        let appended: { number: number; segment: Segment }[] = [];
        let spool = open();
        let number = 0;
        const deliver = (): void => {
          const read = spool.next();
          const numbers = read?.records.map(numberOf) ?? [];
          expect(numbers).toEqual(numbers.toSorted((one, other) => one - other));
          for (const one of numbers) {
            needed.delete(one);
            isDelivered.add(one);
          }
          if (read !== undefined) spool.done(read.segment);
        };
        for (const name of names) {
          if (name === 'append') {
            const segment = spool.append(makeRecord(++number)) as Segment;
            appended.push({ number, segment });
            needed.add(number);
          } else if (name === 'spill') {
            expect(spool.spill([makeRecord(++number), makeRecord(++number)])).toBeDefined();
            needed.add(number - 1).add(number);
          } else if (name === 'release') {
            const { number: released, segment } = appended.pop() ?? {};
            if (segment !== undefined) spool.release(segment);
            needed.delete(released ?? 0);
          } else if (name === 'deliver') {
            deliver();
          } else {
            // The last record may be half written when the machine loses power. Its call has not returned.
            const last = appended.at(-1)?.segment.path;
            if (name === 'torn' && last !== undefined) {
              spool.append(makeRecord(0, 100));
              truncateSync(last, readFileSync(last).length - 50);
            }
            killOwners(dir);
            appended = [];
            spool = open();
            spool.takeOver();
          }
        }
        killOwners(dir);
        spool = open();
        spool.takeOver();
        while (!spool.isDrained) deliver();
        expect([...needed]).toEqual([]);
        spool.close();
        expect(filesBelow(dir).filter((path) => !path.includes('/bad/'))).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });
});

describe('a segment of another version', () => {
  const fixture = (name: string) => readFileSync(join(root, 'test/fixtures/spool', name));

  it('of version 1 is read: starts, ends, attachments, and what comes before damage', () => {
    told();
    const folder = spoolFolder();
    const { path } = folder.open().spill([makeRecord(1)]) as Segment;
    const file = fixture('version-1.seg');
    writeFileSync(path, file);
    const [read] = readLater(folder).reads;
    const [post, whole, patch] = read?.records ?? [];
    expect(read).toMatchObject({ damagedRuns: [], records: [{ op: 'post' }, { op: 'post' }, { op: 'patch' }] });
    expect(post).toEqual({
      op: 'post',
      isEnded: false,
      run: {
        id: '0190a6ba-1c00-7000-8000-000000000001',
        traceId: '0190a6ba-1c00-7000-8000-000000000001',
        dottedOrder: '20261120T072240123456Z0190a6ba-1c00-7000-8000-000000000001',
        parentRunId: undefined,
        startTime: '2026-11-20T07:22:40.123456Z',
        project: 'shop',
        refused: false,
        name: 'ask über 😀',
        runType: 'chain',
        tags: ['a', 'b'],
        metadata: new Map([
          ['user', '"u1"'],
          ['n', '{"deep":[1,null]}'],
        ]),
        runtime: '{"sdk":"runspan"}',
        inputs: '{"question":"wie groß?"}',
        outputs: undefined,
        events: undefined,
        error: undefined,
        endTime: undefined,
        attachments: [
          { name: 'page', mimeType: 'image/png', bytes: Uint8Array.from(Buffer.from('89504e47ff52535000', 'hex')) },
        ],
      },
    });
    expect(whole?.run).toMatchObject({ outputs: '{"outputs":1}', error: 'Error: no\n    at x', runType: 'llm' });
    expect(patch?.run).toMatchObject({ inputs: undefined, outputs: '{"answer":42}' });

    const cut = spoolFolder();
    writeFileSync((cut.open().spill([makeRecord(1)]) as Segment).path, file.subarray(0, -1));
    expect(readLater(cut).reads).toMatchObject([{ records: [{}, {}], damagedRuns: [{ id: '' }] }]);
  });

  it('of a later version is left as it is, from process to process', () => {
    const lines = told();
    const folder = spoolFolder();
    writeFileSync((folder.open().spill([makeRecord(1)]) as Segment).path, fixture('version-3.seg'));
    for (let restarts = 0; restarts < 3; restarts++) {
      const { spool, reads } = readLater(folder);
      expect(reads).toEqual([]);
      expect([spool.bytes, drain(spool)]).toEqual([0, []]);
      const [kept = ''] = segmentsBelow(folder.dir);
      expect(readFileSync(join(folder.dir, kept))).toEqual(fixture('version-3.seg'));
    }
    expect(lines[0]).toMatch(
      /^warn: spool: \S+ was written by a later version of runspan and is left as it is; upgrade/,
    );
  });
});
