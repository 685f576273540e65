import '../support/virtual-timers.ts';

import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import { liveAll } from './model/liveness.ts';

vi.mock('#src/delivery/loop.ts', () => import('#src/delivery/loop.edge.ts'));

afterEach(() => diagnostics.setLog('warn'));
// Exporters of the model still exist when the tests end.
afterAll(() => diagnostics.setLog('silent'));

test.each([2_000, 0])(
  'on edge runtimes every run that the service accepts arrives with later flushes, with starts after %i ms',
  {
    timeout: 600_000,
  },
  async (startDelayMs) => {
    const given = { durability: 'memory', hasRestarts: false, isEdge: true, startDelayMs } as const;
    const [first, count] = [Number(process.env.LIVENESS_SEED ?? 0), Number(process.env.LIVENESS_SEEDS ?? 8)];
    const { failures } = await liveAll(first, (scenarios) => scenarios === count, given);
    expect(failures).toEqual([]);
  },
);
