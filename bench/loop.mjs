/** How turns follow each other. Each loop does `count` of them from number `first`, and puts the time of each into `turnMs`, if given. */
import { setTimeout as sleep } from 'node:timers/promises';

/** The loop gives the event loop its turn after so many runs, as a program does that waits for its clients. */
const RUNS_PER_YIELD = 12;

export function runLoop(work, { runsPerSecond, isOverlapping }, first, count, turnMs) {
  if (runsPerSecond === undefined) return closedLoop(work, first, count, turnMs);
  const turnsPerMs = runsPerSecond / work.runsPerTurn / 1_000;
  return (isOverlapping ? overlappingLoop : openLoop)(work, turnsPerMs, first, count, turnMs);
}

/** One after the other, as fast as they go. The yields lie outside of the times. */
async function closedLoop(work, first, count, turnMs) {
  for (let at = 0; at < count; at++) {
    const startMs = performance.now();
    await work.turn(first + at);
    if (turnMs !== undefined) turnMs[at] = performance.now() - startMs;
    await yieldAfter(work, first + at);
  }
}

/**
 * One after the other, each due at its time: one that comes late because another was slow, or because the loop was held up,
 * counts from when it was due. Else the slow ones would keep the others from being measured.
 */
async function openLoop(work, turnsPerMs, first, count, turnMs) {
  const startMs = performance.now();
  for (let at = 0; at < count; ) {
    const due = dueNow(startMs, turnsPerMs, count);
    for (; at < due; at++) {
      await work.turn(first + at);
      if (turnMs !== undefined) turnMs[at] = performance.now() - startMs - at / turnsPerMs;
      await yieldAfter(work, first + at);
    }
    await sleep(1);
  }
}

/** Each begins when it is due, beside those that are under way, and counts from then, like the others at a rate. */
async function overlappingLoop(work, turnsPerMs, first, count, turnMs) {
  const startMs = performance.now();
  const turns = [];
  for (let at = 0; at < count; ) {
    const due = dueNow(startMs, turnsPerMs, count);
    for (; at < due; at++) turns.push(turnFrom(startMs + at / turnsPerMs, at));
    await sleep(1);
  }
  await Promise.all(turns);

  async function turnFrom(dueMs, at) {
    await work.turn(first + at);
    if (turnMs !== undefined) turnMs[at] = performance.now() - dueMs;
  }
}

function dueNow(startMs, turnsPerMs, count) {
  return Math.min(count, Math.floor((performance.now() - startMs) * turnsPerMs) + 1);
}

async function yieldAfter({ runsPerTurn }, number) {
  const turnsPerYield = Math.max(1, Math.round(RUNS_PER_YIELD / runsPerTurn));
  if (number % turnsPerYield === 0) await new Promise(setImmediate);
}
