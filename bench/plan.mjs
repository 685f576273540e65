/**
 * A driver's work, which the orchestrator passes to the driver's process.
 *
 * - `workload`, its measured `turns`, and the `warmupTurns` before them.
 * - `runsPerSecond`: turns are due at this rate. If undefined, each turn follows the previous one.
 * - `isOverlapping`: a due turn starts at once, concurrently with open ones.
 * - `isDelivered`: the clock stops when the service has received everything. Otherwise, it stops after the last turn.
 * - `encoding`: the encoding of request bodies that the service accepts, `gzip` or `zstd`. Undefined if it accepts none.
 * - `hasRoom`: runspan's queue holds all runs.
 * - `watchesLoop`: measures the delay of timers, which costs CPU time while the process waits.
 */
const DEFAULTS = {
  workload: 'agent',
  turns: 1,
  warmupTurns: 0,
  runsPerSecond: undefined,
  isOverlapping: false,
  isDelivered: true,
  encoding: undefined,
  hasRoom: false,
  watchesLoop: true,
};

export function planOf(given) {
  return { ...DEFAULTS, ...given };
}

/** The plan of this process. */
export function givenPlan() {
  return planOf(JSON.parse(process.argv[2]));
}
