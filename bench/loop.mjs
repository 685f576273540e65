/**
 * Loops over turns. Each loop does `count` turns starting with number `first`, and writes each turn's time into
 * `turnMs`, if given.
 */
import { setTimeout as sleep } from 'node:timers/promises';

/** Runs between two yields to the event loop. A server yields while it waits for clients. */
const RUNS_PER_YIELD = 12;

export function runLoop(work, { runsPerSecond, isOverlapping }, first, count, turnMs) {
  if (runsPerSecond === undefined) return closedLoop(work, first, count, turnMs);
  const turnsPerMs = runsPerSecond / work.runsPerTurn / 1_000;
  return (isOverlapping ? overlappingLoop : openLoop)(work, turnsPerMs, first, count, turnMs);
}

/** Each turn follows the previous one. The times do not include the yields. */
async function closedLoop(work, first, count, turnMs) {
  for (let at = 0; at < count; at++) {
    const startMs = performance.now();
    await work.turn(first + at);
    if (turnMs !== undefined) turnMs[at] = performance.now() - startMs;
    await yieldAfter(work, first + at);
  }
}

/**
 * Turns run one after another, and each is due at a fixed time. A turn's time counts from when it was due, so a slow
 * turn also delays those that wait behind it.
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

/** Each turn starts when it is due, concurrently with open ones. Its time counts from when it was due. */
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
