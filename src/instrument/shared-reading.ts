import type { Method } from './own-method.ts';
import type { Plan } from './plan.ts';
import type { Reading } from './reading.ts';

/** Readings of one result at once. What more calls than these hand out together is a value of theirs, and no work. */
const READINGS_MAX = 16;

/**
 * The readings of one result that several calls have handed out, as those of a function and of the one that called it. The
 * result is changed for the first alone: were its methods replaced for each call, one that is handed out for ever, a bus
 * or a connection, would in the end have more of them upon each other than the stack holds.
 */
export class SharedReading implements Reading {
  isStepping = false;
  #readings = new Map<Plan, Reading>();
  #isOver = false;

  /** False where the result is at its end, is read for the same function already, or for too many. */
  add(plan: Plan, reading: Reading): boolean {
    if (this.#isOver || this.#readings.has(plan) || this.#readings.size >= READINGS_MAX) return false;
    this.#readings.set(plan, reading);
    return true;
  }

  /** The readings that something else tells from now on. */
  takeAll(): ReadonlyMap<Plan, Reading> {
    const taken = this.#readings;
    this.#readings = new Map();
    return taken;
  }

  /** In the context of the run that was first, which is the innermost. */
  step(method: Method, self: unknown, args: unknown[]): unknown {
    this.isStepping = true;
    try {
      for (const reading of this.#readings.values()) return reading.step(method, self, args);
      return Reflect.apply(method, self, args);
    } finally {
      this.isStepping = false;
    }
  }

  took(chunk: unknown): void {
    for (const reading of this.#readings.values()) reading.took(chunk);
  }

  end(): void {
    for (const reading of this.#ended()) reading.end();
  }

  fail(thrown: unknown): void {
    for (const reading of this.#ended()) reading.fail(thrown);
  }

  cancel(): void {
    for (const reading of this.#ended()) reading.cancel();
  }

  watch(object: object): void {
    for (const reading of this.#readings.values()) reading.watch(object);
  }

  leaveUnseen(): void {
    for (const reading of this.#readings.values()) reading.leaveUnseen();
  }

  #ended(): Iterable<Reading> {
    this.#isOver = true;
    return this.takeAll().values();
  }
}
