import fc from 'fast-check';
import { expect, test } from 'vitest';
import { completeUsage, type UsageMetadata } from '#src/payload/usage.ts';
import { cases } from '../support/campaign.ts';

test('counts without details give the same usage as counts beside a cost', () => {
  const count = fc.constantFrom<unknown>(0, 1, 7, 8, 5e8, 1e9, 1e9 + 1, -1, 1.5, Number.NaN, '7', null, undefined);
  const counts = fc.record({ input_tokens: count, output_tokens: count, total_tokens: count }, { requiredKeys: [] });
  const property = fc.property(counts, fc.constantFrom(undefined, 'flex', 'default'), (given, tier) => {
    const { total_cost, ...usage } = completeUsage({ ...given, total_cost: 1 } as UsageMetadata, tier);
    expect(completeUsage(given as UsageMetadata, tier)).toEqual(usage);
  });
  fc.assert(property, { numRuns: cases(5_000) });
});
