import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SharedLimit } from '#src/receiver/domain/shared-limit.ts';
import '../support/seeded.ts';
import { forAll } from '../support/campaign.ts';

const MAX = 10;

interface Step {
  readonly tenant: string;
  readonly amount: number;
  readonly afterMs: number;
  readonly isRelease: boolean;
}
const steps = fc.array(
  fc.record<Step>({
    tenant: fc.constantFrom('acme', 'bolt', 'cobalt', ''),
    amount: fc.integer({ min: 1, max: 7 }),
    afterMs: fc.constantFrom(0, 0, 1_000, 30_000),
    isRelease: fc.boolean(),
  }),
  { maxLength: 60 },
);

test('a tenant gets all that is free, or at most half while another uses some or was refused in the last minute', () => {
  forAll(100, [steps], (all) => {
    let nowMs = 0;
    const limit = new SharedLimit(MAX, () => nowMs);
    const used = new Map<string, number>();
    const refusals: { tenant: string; ms: number }[] = [];
    for (const { tenant, amount, afterMs, isRelease } of all) {
      nowMs += afterMs;
      const own = used.get(tenant) ?? 0;
      const total = [...used.values()].reduce((sum, one) => sum + one, 0);
      if (isRelease) {
        limit.add(tenant, -Math.min(own, amount));
        used.set(tenant, own - Math.min(own, amount));
        continue;
      }
      const recent = refusals.filter(({ ms }) => nowMs - ms < 60_000).map((one) => one.tenant);
      const wanting = [...recent, ...[...used].flatMap(([name, some]) => (some > 0 ? name : []))];
      const isWanted = wanting.some((name) => name !== tenant && name !== '');
      const isAdmitted = total + amount <= MAX && (own === 0 || !isWanted || own + amount <= MAX / 2);
      expect(limit.take(tenant, amount)).toBe(isAdmitted);
      if (isAdmitted) used.set(tenant, own + amount);
      else refusals.push({ tenant, ms: nowMs });
      expect(limit.usedBy(tenant)).toBe(used.get(tenant) ?? 0);
    }
  });
});

test('a tenant that was refused gets half once the tenant that has everything has released it and taken it again', () => {
  forAll(100, [fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: MAX })], (sizes) => {
    const limit = new SharedLimit(MAX);
    const held = sizes.filter((size) => limit.take('acme', size));
    while (limit.take('acme', 1)) held.push(1);
    expect(limit.usedBy('acme')).toBe(MAX);
    expect(limit.take('bolt', 1)).toBe(false);
    for (const size of held) {
      limit.add('acme', -size);
      limit.take('acme', size);
      while (limit.take('bolt', 1)) {}
    }
    expect(limit.usedBy('bolt')).toBe(MAX / 2);
  });
});

test("half is rounded up, and a tenant's only request may use more", () => {
  const limit = new SharedLimit(3);
  const taken = (tenant: string) => [limit.take(tenant, 1), limit.take(tenant, 1), limit.take(tenant, 1)];
  expect(taken('acme').concat(taken('bolt'))).toEqual([true, true, true, false, false, false]);
  limit.count(['bolt']);
  expect(taken('acme')).toEqual([true, true, false]);
  const bytes = new SharedLimit(MAX);
  bytes.count(['bolt']);
  expect([bytes.take('acme', 5), bytes.take('acme', 1, 5), bytes.take('acme', 1, 1)]).toEqual([true, true, false]);
});
