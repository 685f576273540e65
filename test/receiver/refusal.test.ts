import { describe, expect, test } from 'vitest';
import { Findings, type Location } from '../../src/receiver/refusal.ts';

function detailOf(...locs: Location[]): unknown {
  const findings = new Findings();
  for (const loc of locs) findings.add(loc, 'type', 'msg');
  try {
    findings.refuseIfAny();
    return undefined;
  } catch (error) {
    expect(error).toMatchObject({ status: 422 });
    return (error as { detail: unknown }).detail;
  }
}

describe('findings', () => {
  test('refuse nothing when there are none', () => {
    expect(detailOf()).toBeUndefined();
  });

  test('name at most 100 places', () => {
    const locs = (count: number) => Array.from({ length: count }, (_, index) => ['body', index]);
    for (const count of [99, 100]) expect(detailOf(...locs(count))).toHaveLength(count);
    expect(detailOf(...locs(101))).toHaveLength(100);
  });

  test('name places by at most 120 characters', () => {
    const names = [119, 120, 121, 1_000_000].map((length) => 'n'.repeat(length));
    const cut = `${'n'.repeat(120)}…`;
    expect(detailOf(['body', 5, ...names])).toEqual([
      { loc: ['body', 5, names[0], names[1], cut, cut], type: 'type', msg: 'msg' },
    ]);
  });
});
