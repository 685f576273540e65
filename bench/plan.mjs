/**
 * What a driver is to do. The orchestrator makes a plan and gives it to the process of the driver.
 *
 * - `workload`, how many `turns` of it are measured, and how many `warmupTurns` come before.
 * - `runsPerSecond`: turns are due at that rate, whether or not the one before is done; undefined is as fast as they go.
 * - `isOverlapping`: turns that are due begin at once, beside those that are under way.
 * - `heldRuns` are open while the turns are done, and end after them.
 * - `isDelivered`: the clock runs until everything has arrived.
 * - `takesGzip`: bodies are compressed.
 * - `limits`, for runspan alone.
 */
const USUAL = {
  workload: 'agent',
  turns: 1,
  warmupTurns: 0,
  runsPerSecond: undefined,
  isOverlapping: false,
  heldRuns: 0,
  isDelivered: true,
  takesGzip: false,
  limits: {},
};

export function planOf(given) {
  return { ...USUAL, ...given };
}

/** The plan of this process. */
export function givenPlan() {
  return planOf(JSON.parse(process.argv[2]));
}
