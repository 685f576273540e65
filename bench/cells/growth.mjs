import { warmupTurnsOf } from '../drivers.mjs';
import { shown } from '../page/scale.mjs';
import { closedCell, FAST } from './cell.mjs';

const cell = (name, title, more) => closedCell(name, 'growth', title, more);
const WARMUP_TURNS = 5_000;

const FEW = ['limit', 'traceable', 'processor', 'otlp-json'];
const COUNTS = [
  { runs: 1_000, drivers: [...FAST, 'braintrust', 'langsmith'], rounds: 5 },
  { runs: 10_000, drivers: [...FAST, 'braintrust', 'langsmith'], rounds: 5 },
  { runs: 100_000, drivers: FAST, rounds: 3 },
  { runs: 1_000_000, drivers: FEW, rounds: 2 },
];
const IN_FLIGHT = [1, 4, 16, 64];
/** As many as leave room for a turn below the limit of 10 000. */
const HELD_RUNS = 9_990;

/** What becomes of the cost of a run when there are many of them, on their way, in the queue, or open. */
export const growth = [
  ...COUNTS.map(({ runs, drivers, rounds }) => ({
    name: `runs-${runs}`,
    group: 'growth',
    title: `${shown(runs)} runs`,
    drivers,
    rounds,
    // All of the turns, of the slow ones too.
    jobOf: (driver) => ({
      plan: { turns: Math.round(runs / 3), warmupTurns: warmupTurnsOf(driver, WARMUP_TURNS) },
    }),
  })),
  ...IN_FLIGHT.map((requestsInFlight) =>
    cell(`in-flight-${requestsInFlight}`, `Requests in flight: ${requestsInFlight}, each answered after 20 ms`, {
      drivers: ['limit', 'traceable'],
      plan: { turns: 6_000, warmupTurns: 3_000, limits: { requestsInFlight } },
      behaviour: { latencyMs: 20 },
    }),
  ),
  cell('queue-full', 'A full queue: the service is away, and runspan has room for 1 000 runs', {
    drivers: ['untraced', 'traceable', 'processor', 'otlp-json', 'langfuse'],
    plan: { turns: 20_000, warmupTurns: 5_000, isDelivered: false, limits: { queueRuns: 1_000 } },
    behaviour: { isDown: true },
    env: { OTEL_BSP_MAX_QUEUE_SIZE: '2048' },
  }),
  cell('held-open', `${shown(HELD_RUNS)} runs stay open meanwhile`, {
    drivers: FAST,
    plan: { turns: 10_000, warmupTurns: 5_000, heldRuns: HELD_RUNS },
  }),
];
