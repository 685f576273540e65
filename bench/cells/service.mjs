import { ALL, closedCell, FAST } from './cell.mjs';

/** What peers have by themselves: where nothing is delivered, room would only be filled. */
const OWN_QUEUES = { OTEL_BSP_MAX_QUEUE_SIZE: '2048', BRAINTRUST_QUEUE_DROP_EXCEEDING_MAXSIZE: '15000' };

const cell = (name, title, more) => closedCell(name, 'service', title, more);

/** What a service does that is slow, away, or takes gzip. Turns stay below what fills a queue where all has to arrive. */
export const service = [
  cell('latency-20', 'A service that answers after 20 ms', { plan: { turns: 6_000 }, behaviour: { latencyMs: 20 } }),
  cell('latency-200', 'A service that answers after 200 ms', {
    plan: { turns: 3_000, warmupTurns: 3_000 },
    behaviour: { latencyMs: 200 },
  }),
  cell('down', 'A service that is away', {
    // The limit has nothing for it.
    drivers: ALL.filter((driver) => driver !== 'limit'),
    plan: { turns: 20_000, warmupTurns: 5_000, isDelivered: false },
    behaviour: { isDown: true },
    env: OWN_QUEUES,
  }),
  cell('gzip', 'Bodies compressed', {
    drivers: [...FAST.filter((driver) => driver !== 'langfuse'), 'langsmith'],
    plan: { turns: 6_000, takesGzip: true },
  }),
];
