import '../support/virtual-timers.ts';

import { afterAll, afterEach, expect, test } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import { liveAll } from './model/liveness.ts';

afterEach(() => diagnostics.setLog('warn'));
// Exporters of dead processes of the model still exist when the tests end.
afterAll(() => diagnostics.setLog('silent'));

const FIRST = Number(process.env.LIVENESS_SEED ?? 0);
const COUNT = Number(process.env.LIVENESS_SEEDS ?? 20);

test.each([
  ['runs', COUNT],
  ['otlp-json', Math.ceil(COUNT / 4)],
] as const)(
  'with %s every run that the service accepts arrives, whatever happens to other runs and to the key',
  { timeout: 600_000 },
  async (protocol, count) => {
    const { failures, steps } = await liveAll(FIRST, (scenarios) => scenarios === count, { protocol });
    console.log(steps, 'steps');
    expect(failures).toEqual([]);
  },
);
