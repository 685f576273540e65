import '../support/virtual-timers.ts';

import { afterAll, afterEach, expect, test } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import { sample } from '../support/campaign.ts';
import { liveAll } from './model/liveness.ts';

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
