/** How turns follow each other, and how long each takes. */

/** The loop gives the event loop its turn after so many runs, as a program does that waits for its clients. */
const RUNS_PER_YIELD = 12;

/** One after the other, as fast as they go. `turnMs`, where it is given, takes the time of each; the yields lie outside of it. */
export async function closedLoop({ turn, runsPerTurn }, first, count, turnMs) {
  const turnsPerYield = Math.max(1, Math.round(RUNS_PER_YIELD / runsPerTurn));
  for (let at = 0; at < count; at++) {
    const startMs = performance.now();
    await turn(first + at);
    if (turnMs !== undefined) turnMs[at] = performance.now() - startMs;
    if ((first + at) % turnsPerYield === 0) await new Promise(setImmediate);
  }
}
