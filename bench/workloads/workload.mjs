/**
 * The work that every driver does. A workload has `runsPerTurn`, the calls of a turn, each of which is a run where they are
 * traced, and `make(wrap)`, which passes every function through `wrap(fn, name, runType)` and gives back what does the
 * turn of a number. A driver traces by what it wraps them in.
 */
import { agent } from './agent.mjs';

const WORKLOADS = { agent };

export function workloadOf(name) {
  return WORKLOADS[name];
}
