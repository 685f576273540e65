import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { clock } from '#src/base/clock.ts';
import { isRunId, newRunId, runIdAt, runIdFrom, spanRunId } from '#src/run/ids.ts';
import { logLines } from '../support/log-lines.ts';

/** RFC 9562, 5.7: 48 bits of milliseconds, version 7, variant 10. */
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const hex = (id: string) => id.replaceAll('-', '');
const timeMs = (id: string) => Number.parseInt(hex(id).slice(0, 12), 16);

describe('the id of a live run', () => {
  test('is a UUIDv7 with the millisecond of its start', () => {
    const startUs = clock.nowUs() + 1_000_000;
    const id = newRunId(startUs);
    expect(id).toMatch(UUID_V7);
    expect(timeMs(id)).toBe(Math.floor(startUs / 1_000));
  });

  test('is greater than every earlier id, also within a millisecond', () => {
    const startUs = clock.nowUs() + 2_000_000;
    const ids = Array.from({ length: 5_000 }, (_, index) => newRunId(startUs + Math.floor(index / 1_000) * 1_000));
    expect(ids.every((id) => UUID_V7.test(id))).toBe(true);
    expect(new Set(ids).size).toBe(5_000);
    expect(ids.toSorted()).toEqual(ids);
  });

  test('is greater than the id before it, unless the clock goes back by more than 5 s', () => {
    const stepUs = fc.oneof(fc.integer({ min: -4_990_000, max: 2_000 }), fc.integer({ min: 0, max: 3 }));
    let startUs = clock.nowUs() + 3_000_000;
    fc.assert(
      fc.property(fc.array(stepUs, { maxLength: 200 }), (steps) => {
        startUs += 10_000_000;
        let before = newRunId(startUs);
        for (const step of steps) {
          const id = newRunId(startUs + step);
          expect(id > before).toBe(true);
          before = id;
        }
      }),
      { numRuns: 50 },
    );
  });

  test.each([
    [4_999, 0],
    [5_000, 0],
    [5_001, -5_001],
  ])('follows a clock that goes back by %i ms as %i ms', (backMs, expectedMs) => {
    const startMs = Math.floor(clock.nowUs() / 1_000) + 1_000_000 + backMs * 10_000;
    expect(timeMs(newRunId(startMs * 1_000))).toBe(startMs);
    expect(timeMs(newRunId((startMs - backMs) * 1_000))).toBe(startMs + expectedMs);
  });
});

test('the id of a run that began in the past is a UUIDv7 with the millisecond of its start, and greater than earlier ids of the same start', () => {
  const startUs = 1_700_000_000_123_456;
  const ids = Array.from({ length: 5_000 }, () => runIdAt(startUs));
  expect(ids.every((id) => UUID_V7.test(id) && timeMs(id) === 1_700_000_000_123)).toBe(true);
  expect(ids.toSorted()).toEqual(ids);
});

describe('the id of a span', () => {
  // The ids of the example in W3C Trace Context, 3.2.
  const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
  const SPAN_ID = '00f067aa0ba902b7';

  test('has the documented layout', () => {
    // 1 700 000 000 123 ms is 0x018bcfe5687b; '7' & 3 is 3, so the variant is b; 36 are the last bits of the trace id.
    expect(spanRunId(1_700_000_000_123_456, TRACE_ID, SPAN_ID)).toBe('018bcfe5-687b-700f-b360-67aa0ba902b7');
  });

  test('is a UUIDv7 that contains the start and the span id', () => {
    const word = (length: number) => fc.stringMatching(new RegExp(`^[0-9a-f]{${length}}$`));
    const moment = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
    fc.assert(
      fc.property(moment, word(32), word(16), (us, traceId, spanId) => {
        const id = spanRunId(us, traceId, spanId);
        expect(id).toMatch(UUID_V7);
        expect(timeMs(id)).toBe(Math.floor(us / 1_000));
        expect(hex(id).slice(13, 16) + hex(id).slice(19)).toBe(spanId);
        expect(hex(id).slice(17, 19)).toBe(traceId.slice(30));
      }),
      { numRuns: 500 },
    );
  });
});

test('a run id is a UUID in lower case', () => {
  const id = '018bcfe5-687b-700f-b360-67aa0ba902b7';
  expect([id, '00000000-0000-0000-0000-000000000000'].every(isRunId)).toBe(true);
  const others = [id.toUpperCase(), id.replaceAll('-', ''), id.slice(1), `${id}7`, id.replace('0', 'g'), `${id}\n`, ''];
  expect(others.filter(isRunId)).toEqual([]);
});

describe('the run id of an application id', () => {
  // Made with Python's uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_DNS, 'runspan'), …).
  test.each([
    ['order-17', '5d83051b-33e8-5117-9a55-f3fe7aad19c6'],
    ['', '41ef3a80-c842-58f7-93f8-7b9c1c5a17dc'],
    ['Käse 🧀', 'c41fc85c-b49e-5875-a507-2ee48011f36b'],
  ])('%j is %s, the same in every process', (key, id) => {
    expect(runIdFrom(key)).toBe(id);
    expect(isRunId(runIdFrom(key))).toBe(true);
  });

  test('of a number is the id of its text', () => {
    const lines = logLines();
    expect([runIdFrom(17 as never), runIdFrom(17n as never)]).toEqual([runIdFrom('17'), runIdFrom('17')]);
    expect(lines).toEqual([]);
  });

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['no number', Number.NaN],
    ['an object', {}],
    ['a symbol', Symbol('s')],
    ['an object without text', Object.create(null)],
  ])('is new each time for %s', (_, key) => {
    const lines = logLines();
    const ids = [runIdFrom(key as never), runIdFrom(key as never)];
    expect(ids.map(isRunId)).toEqual([true, true]);
    expect(ids[0]).not.toBe(ids[1]);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^warn: runIdFrom\(key\): expected `key` to be a string, got .+; a random id is returned/);
  });
});
