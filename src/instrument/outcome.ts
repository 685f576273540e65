import type { Run } from '../run/run.ts';
import { followEmitter } from './emitter.ts';
import { endWith, type Plan } from './plan.ts';
import { followWaiting, type Settlement, thenOf } from './promise.ts';
import { followSequence } from './sequence.ts';

/**
 * Ends the run when the result has come to its end, and gives back what the caller gets in place of the result. An `async`
 * function makes a new promise for each call; what another one returns it may return again.
 */
export function followResult(result: unknown, run: Run, plan: Plan, isAsync: boolean): unknown {
  if (!isObject(result)) {
    endWith(run, plan, result);
    return result;
  }
  if (plan.follow?.(result, run, plan) === true) return result;
  const then = thenOf(result);
  if (then !== undefined) {
    const idleMaxMs = run.sink?.capture.streamIdleMs;
    const waiting = followWaiting(result, then, new RunSettlement(run, plan), idleMaxMs, !isAsync);
    if (waiting !== undefined) return waiting;
  }
  if (!followSequence(result, run, plan) && !followEmitter(result, run, plan)) endWith(run, plan, result);
  return result;
}

/** What a promise comes to may itself come in pieces. An emitter that has been waited for is a value, a connection perhaps. */
class RunSettlement implements Settlement {
  readonly #run: Run;
  readonly #plan: Plan;

  constructor(run: Run, plan: Plan) {
    this.#run = run;
    this.#plan = plan;
  }

  fulfilled(value: unknown): void {
    if (!isObject(value) || !followSequence(value, this.#run, this.#plan)) endWith(this.#run, this.#plan, value);
  }

  rejected(error: unknown): void {
    this.#run.fail(error);
  }

  abandoned(reason: string): void {
    this.#run.interrupt(reason);
  }
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}
