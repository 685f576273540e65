import { describe, expect, it } from 'vitest';
import { BatchLimit } from '../../src/export/batch-limit.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const defaults = { runs: 100, bytes: 20 * MIB };

/** A limit after a refusal of so many bytes. */
function refused(bytes: number): BatchLimit {
  const limit = new BatchLimit(defaults);
  limit.refused(bytes);
  return limit;
}

describe('BatchLimit', () => {
  it.each([
    [10 * MIB, 5 * MIB],
    [2 * MIB + 1, MIB],
    [128 * KIB + 2, 64 * KIB + 1],
    [128 * KIB, 64 * KIB],
    [128 * KIB - 2, 64 * KIB],
    [10, 64 * KIB],
  ])('of a service that has refused %i bytes is %i bytes [fault 11]', (bytes, expected) => {
    expect(refused(bytes).size).toEqual({ runs: 100, bytes: expected });
  });

  it('is not raised by a refusal [fault 11]', () => {
    const limit = refused(2 * MIB);
    limit.refused(10 * MIB);
    expect(limit.size.bytes).toBe(MIB);
  });

  it.each([
    [500_000, 1_010_000],
    [499_999, 1_000_000],
    [1_000_000, 1_010_000],
  ])('of 1 000 000 bytes is after an accepted batch of %i bytes %i bytes [fault 11]', (bytes, expected) => {
    const limit = refused(2_000_000);
    limit.accepted(bytes);
    expect(limit.size.bytes).toBe(expected);
  });

  it('is back where it was after 70 full batches, and goes no further than the service says [fault 11]', () => {
    const limit = refused(20 * MIB);
    for (let batch = 0; batch < 69; batch++) limit.accepted(limit.size.bytes);
    expect(limit.size.bytes).toBeLessThan(20 * MIB);
    limit.accepted(limit.size.bytes);
    expect(limit.size).toEqual(defaults);
    limit.accepted(20 * MIB);
    expect(limit.size).toEqual(defaults);
  });

  it.each([
    [50_000, 50_000],
    [5 * MIB, MIB],
  ])('is, lowered to 1 MiB, when the service says %i bytes, %i bytes', (said, expected) => {
    const limit = refused(2 * MIB);
    limit.say({ runs: 7, bytes: said });
    expect(limit.size).toEqual({ runs: 7, bytes: expected });
  });

  it('is what the service says, where nothing was refused, more than the default too', () => {
    const limit = new BatchLimit(defaults);
    limit.say({ runs: 500, bytes: 40 * MIB });
    expect(limit.size).toEqual({ runs: 500, bytes: 40 * MIB });
  });
});
