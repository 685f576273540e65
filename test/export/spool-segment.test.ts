import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeRecord } from '../../src/export/spool-record.ts';
import { frame, PAYLOAD_BYTES_MAX, scan } from '../../src/export/spool-segment.ts';
import { root } from '../support/folders.ts';

const fixture = (name: string) => readFileSync(join(root, 'test/fixtures/spool', name));

/** Twenty payloads of other lengths and contents, some of which hold the magic. */
const PAYLOADS = Array.from({ length: 20 }, (_, index) =>
  Buffer.concat([
    Buffer.from(`{"number":${index}}`),
    index % 3 === 0 ? Buffer.from([0xff, 0x52, 0x53, 0x50, 9, 0, 0, 0]) : Buffer.alloc(index * 7, index),
  ]),
);
const FRAMES = PAYLOADS.map((payload) => frame(payload) as Buffer);
const FILE = Buffer.concat(FRAMES);

/** The numbers of those payloads that were read; each has to be whole. */
function numbersIn(file: Buffer): number[] {
  return scan(file).payloads.map((payload) => PAYLOADS.findIndex((one) => one.equals(payload)));
}

/** A file that says the same with another version, flags or length. */
function altered(payload: Buffer, change: (framed: Buffer) => void): Buffer {
  const framed = Buffer.from(frame(payload) as Buffer);
  change(framed);
  framed.writeUInt32BE(crc32(framed.subarray(16), crc32(framed.subarray(0, 12))), 12);
  return framed;
}

describe('a frame', () => {
  it('is magic, version, flags, two bytes of nothing, length, checksum, payload', () => {
    // Laid and summed by a program of another language.
    expect(frame(Buffer.from('ab'))?.toString('hex')).toBe('ff525350010000000000000287a2a3b66162');
    expect(frame(new Uint8Array(0))?.toString('hex')).toBe('ff525350010000000000000081c5af4c');
  });

  it('takes payloads to the limit and no further', () => {
    const payload = Buffer.alloc(PAYLOAD_BYTES_MAX + 1);
    expect(frame(payload)).toBeUndefined();
    for (const length of [PAYLOAD_BYTES_MAX - 1, PAYLOAD_BYTES_MAX]) {
      const framed = frame(payload.subarray(0, length)) as Buffer;
      expect(framed).toHaveLength(length + 16);
      expect(scan(framed).payloads[0]).toHaveLength(length);
    }
  });
});

describe('a file', () => {
  it('of the first version is read, whatever the version that reads it [fault 60]', () => {
    const { payloads, damaged, isUnknownVersion } = scan(fixture('version-1.seg'));
    const [post, whole, patch] = payloads.map(decodeRecord);
    expect({ count: payloads.length, damaged, isUnknownVersion }).toEqual({
      count: 3,
      damaged: [],
      isUnknownVersion: false,
    });
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
    expect(whole).toMatchObject({
      op: 'post',
      isEnded: true,
      run: {
        parentRunId: '0190a6ba-1c00-7000-8000-000000000001',
        runType: 'llm',
        inputs: '{}',
        outputs: '{"outputs":1}',
        events: '[{"name":"new_token","time":"2026-11-20T07:22:40.200000Z"}]',
        error: 'Error: no\n    at x',
        endTime: '2026-11-20T07:22:41.000000Z',
      },
    });
    expect(patch).toMatchObject({ op: 'patch', isEnded: true, run: { inputs: undefined, outputs: '{"answer":42}' } });
  });

  it.each<[string, Buffer]>([
    ['in the same frames', fixture('version-2.seg')],
    ['with flags that nobody knows yet', altered(Buffer.from('x'), (framed) => framed.writeUInt8(1, 5))],
    ['with another checksum', Buffer.from('ff52535002000000000000020000000061620000', 'hex')],
  ])('of a later version is told from a damaged one, %s', (_, file) => {
    expect(scan(file)).toMatchObject({ payloads: [], isUnknownVersion: true });
  });

  it.each<[string, Buffer, number]>([
    ['that is empty', Buffer.alloc(0), 0],
    ['of zeros', Buffer.alloc(5_000), 1],
    ['that is something else', Buffer.from('{"not":"a segment"}'), 1],
    ['that is nothing but magic', Buffer.from('ff52535001000000'.repeat(10_000), 'hex'), 9_999],
    ['with a length of 4 GB', altered(Buffer.from('x'), (framed) => framed.writeUInt32BE(0xffffffff, 8)), 1],
    ['with a length one too large', altered(Buffer.from('x'), (framed) => framed.writeUInt32BE(2, 8)), 1],
    [
      'with a length over the limit',
      altered(Buffer.from('x'), (framed) => framed.writeUInt32BE(PAYLOAD_BYTES_MAX + 1, 8)),
      1,
    ],
  ])('%s has nothing to read', (_, file, damaged) => {
    const { length } = scan(file).damaged;
    expect({ ...scan(file), damaged: length }).toEqual({ payloads: [], damaged, isUnknownVersion: false });
  });

  it('with zeros or rubbish at its end loses nothing that came before', () => {
    for (const rubbish of [Buffer.alloc(4_096), Buffer.from('rubbish'), FRAMES[0]?.subarray(0, 9) as Buffer]) {
      expect(scan(Buffer.concat([FILE, rubbish]))).toMatchObject({ payloads: PAYLOADS, damaged: [rubbish] });
    }
  });

  it('of heads alone, each with a length up to the end, does not hold the process', () => {
    const heads = Array.from({ length: 200_000 }, (_, index) => {
      const head = Buffer.from('ff525350010000000000000000000000', 'hex');
      head.writeUInt32BE((199_999 - index) * 16, 8);
      return head;
    });
    const startedAtMs = process.cpuUsage().user / 1_000;
    const { payloads, damaged } = scan(Buffer.concat(heads));
    expect(payloads).toEqual([]);
    expect(damaged.length).toBeLessThan(100);
    // Without a bound it takes 320 GB of sums, which is minutes.
    expect(process.cpuUsage().user / 1_000 - startedAtMs).toBeLessThan(10_000);
  });

  it.each([99_999, 100_000, 100_001])('of %i damaged frames without a payload tells 100 000 apart', (count) => {
    const file = Buffer.from('ff525350010000000000000000000000'.repeat(count), 'hex');
    expect(scan(file).damaged).toHaveLength(Math.min(count, 100_000));
  });

  it('that was cut off anywhere keeps every record before the cut [fault 59]', () => {
    const ends: number[] = [];
    FRAMES.reduce((end, framed) => ends.push(end + framed.length) && end + framed.length, 0);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: FILE.length }), (length) => {
        const whole = ends.filter((end) => end <= length).length;
        expect(numbersIn(FILE.subarray(0, length))).toEqual(PAYLOADS.slice(0, whole).map((_, index) => index));
      }),
      { seed: 1, numRuns: 10_000 },
    );
  });

  it('with a flipped byte loses one record at the most [fault 59]', () => {
    const all = PAYLOADS.map((_, index) => index);
    fc.assert(
      fc.property(fc.nat(FILE.length - 1), fc.integer({ min: 1, max: 255 }), (at, mask) => {
        const file = Buffer.from(FILE);
        file[at] = (file[at] as number) ^ mask;
        const { damaged, isUnknownVersion } = scan(file);
        const read = numbersIn(file);
        expect({ damaged: damaged.length, isUnknownVersion }).toEqual({ damaged: 1, isUnknownVersion: false });
        expect(read).toHaveLength(19);
        expect(read).toEqual(all.filter((index) => read.includes(index)));
      }),
      { seed: 2, numRuns: 3_000 },
    );
  });

  it('with several damaged frames tells them apart by what is left of their heads [fault 59]', () => {
    // Without the magic in the payloads, by which reading goes on as well.
    const plain = FRAMES.filter((_, index) => index % 3 !== 0);
    // Not the length, by which a frame is found of which the magic is damaged.
    const places = fc.constantFrom(...[0, 3, 4, 7, 12, 15, 16]);
    fc.assert(
      fc.property(fc.array(fc.option(places), { minLength: plain.length, maxLength: plain.length }), (damage) => {
        const frames = plain.map((framed) => Buffer.from(framed));
        frames.forEach((framed, index) => {
          const at = damage[index] ?? undefined;
          if (at !== undefined) framed[at] = (framed[at] as number) ^ 0x11;
        });
        const { payloads, damaged } = scan(Buffer.concat(frames));
        expect([...payloads, ...damaged]).toHaveLength(plain.length);
        expect(damaged).toEqual(frames.filter((_, index) => damage[index] !== null));
      }),
      { seed: 5, numRuns: 1_000 },
    );
  });

  it('with damaged frames of which no length is possible tells them apart [fault 59]', () => {
    const frames = FRAMES.map((framed) => Buffer.from(framed).fill(0xff, 8, 12));
    expect(scan(Buffer.concat(frames)).damaged).toHaveLength(frames.length);
  });

  it('is read to its end whatever it holds [fault 59]', () => {
    const pieces = fc.array(fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.constantFrom(...FRAMES.slice(0, 4))));
    fc.assert(
      fc.property(pieces, (parts) => {
        const file = Buffer.concat(parts);
        const { payloads } = scan(file);
        expect(payloads.reduce((sum, payload) => sum + 16 + payload.length, 0)).toBeLessThanOrEqual(file.length);
        for (const payload of payloads) decodeRecord(payload);
      }),
      { seed: 3, numRuns: 2_000 },
    );
  });
});

describe('the bytes of a record', () => {
  it('are read or refused, never more, when one of them is another [fault 59]', () => {
    const [payload] = scan(fixture('version-1.seg')).payloads;
    fc.assert(
      fc.property(fc.nat((payload as Uint8Array).length - 1), fc.nat(255), (at, byte) => {
        const bytes = Buffer.from(payload as Uint8Array);
        bytes[at] = byte;
        const read = decodeRecord(bytes);
        expect(read === undefined || read.run.id.length === 36).toBe(true);
      }),
      { seed: 4, numRuns: 3_000 },
    );
  });
});
