import '../support/virtual-timers.ts';

import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import { liveAll } from './model/liveness.ts';

vi.mock('#src/delivery/loop.ts', () => import('#src/delivery/loop.edge.ts'));

const FIRST = Number(process.env.LIVENESS_SEED ?? 0);
const COUNT = Number(process.env.LIVENESS_SEEDS ?? 8);

afterEach(() => diagnostics.setLog('warn'));
// Exporters of the model still exist when the tests end.
afterAll(() => diagnostics.setLog('silent'));

test.each([
  ['runs', 2_000, COUNT],
  ['runs', 0, COUNT],
  ['otlp-json', 2_000, Math.ceil(COUNT / 4)],
] as const)(
  'on edge runtimes every run that the service accepts arrives with later flushes, with %s and starts after %i ms',
  {
    timeout: 600_000,
  },
  async (protocol, startDelayMs, count) => {
    const given = { protocol, durability: 'memory', hasRestarts: false, isEdge: true, startDelayMs } as const;
    const { failures } = await liveAll(FIRST, (scenarios) => scenarios === count, given);
    expect(failures).toEqual([]);
  },
);
