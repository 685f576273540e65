import '../support/virtual-timers.ts';

import { afterAll, afterEach, expect, test } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import { cases, sample } from '../support/campaign.ts';
import { liveAll, lostIn } from './model/liveness.ts';

afterEach(() => diagnostics.setLog('warn'));
// Exporters of dead processes of the model still exist when the tests end.
afterAll(() => diagnostics.setLog('silent'));

test.each([
  ['runs', 20],
  ['otlp-json', 5],
] as const)(
  'with %s every run that the service accepts arrives, whatever happens to other runs and to the key',
  { timeout: 600_000 },
  async (protocol, count) => {
    const { failures } = await liveAll(sample([...Array(count).keys()]), { protocol });
    expect(failures).toEqual([]);
  },
);

test('of a service that refuses half of all requests at random, no more runs are lost with 422 than with 403', async () => {
  const lost = { 403: 0, 422: 0 };
  for (const refusal of [403, 422] as const) {
    for (const [tempo, seeds] of [
      ['quiet', cases(30)],
      ['busy', cases(2)],
    ] as const) {
      for (let seed = 0; seed < seeds; seed++) {
        const fixed = { poisoned: 'none', isSimple: false, hasRestarts: false, startDelayMs: 2_000 } as const;
        lost[refusal] += await lostIn(seed, { ...fixed, durability: 'memory', service: 'half', refusal, tempo });
      }
    }
  }
  expect(lost[422]).toBeGreaterThan(0);
  expect(lost[422]).toBeLessThanOrEqual(lost[403]);
}, 600_000);
