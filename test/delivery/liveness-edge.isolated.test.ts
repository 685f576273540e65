import '../support/virtual-timers.ts';

import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import { sample } from '../support/campaign.ts';
import { liveAll } from './model/liveness.ts';

vi.mock('#src/delivery/loop.ts', () => import('#src/delivery/loop.edge.ts'));

afterEach(() => diagnostics.setLog('warn'));
// Exporters of the model still exist when the tests end.
afterAll(() => diagnostics.setLog('silent'));

test.each([
  ['runs', 2_000, 8],
  ['runs', 0, 8],
  ['otlp-json', 2_000, 2],
] as const)(
  'on edge runtimes every run that the service accepts arrives with later flushes, with %s and starts after %i ms',
  { timeout: 600_000 },
  async (protocol, startDelayMs, count) => {
    const given = { protocol, durability: 'memory', hasRestarts: false, isEdge: true, startDelayMs } as const;
    const { failures } = await liveAll(sample([...Array(count).keys()]), given);
    expect(failures).toEqual([]);
  },
);
