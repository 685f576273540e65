/**
 * A driver's work. A workload has `runsPerTurn`, the number of traced calls in a turn, and `make(wrap)`, which passes
 * every function through the driver's `wrap(fn, name, runType)` and returns a function that does turn `n`.
 */
import { agent } from './agent.mjs';
import { conversation } from './conversation.mjs';
import { errors } from './errors.mjs';
import { fanOut } from './fan-out.mjs';
import { large } from './large.mjs';
import { mixed } from './mixed.mjs';
import { modelCall } from './model-call.mjs';
import { nested } from './nested.mjs';
import { stream } from './stream.mjs';
import { tiny } from './tiny.mjs';

const WORKLOADS = {
  agent,
  tiny,
  'fan-out': fanOut,
  nested,
  large,
  conversation,
  stream,
  errors,
  mixed,
  'model-call': modelCall,
};

export function workloadOf(name) {
  return WORKLOADS[name];
}

/** Returns the number of runs in a plan, without its warm-up. */
export function runsOf({ workload, turns }) {
  return turns * WORKLOADS[workload].runsPerTurn;
}
