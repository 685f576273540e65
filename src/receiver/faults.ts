import { type Checks, checkedOptions, WHOLE_FROM_1, wholeFrom } from '../base/options.ts';
import { setTimer } from '../base/timers.ts';
import { Findings, Refusal } from './refusal.ts';
import type { RunOperation } from './store/store.ts';

/**
 * What goes wrong at a receiver, for tests of what sends to it. It is about requests that bring runs and are well-formed; what is
 * read of the receiver, `GET /info` included, is answered as ever. A request that meets a fault leaves nothing behind.
 */
export interface ReceiverFaults {
  /** Answers with an error. */
  fail?: ReceiverFailure;
  /** Milliseconds by which every answer comes later, 60 000 at most. @default 0 */
  delayMs?: number;
  /**
   * Called with each run that a request brings, as a post or a patch of it; where one is true the request is refused with 422,
   * as if the run were invalid, and the answer names those. What it throws is answered with 500.
   */
  reject?: (operation: RunOperation) => boolean;
}

/** An answer in the place of the usual one. */
export interface ReceiverFailure {
  /** From 400 to 599. */
  status: number;
  /** So many requests are answered like that, and then no more. @default all */
  times?: number;
  /** Seconds, for the header `Retry-After`. @default there is none */
  retryAfterSeconds?: number;
}

const DELAY_MS_MAX = 60_000;

const CHECKS: Checks<ReceiverFaults> = {
  fail: ['an object with a `status`', (value) => (value as ReceiverFailure | null)?.status !== undefined],
  delayMs: wholeFrom(0, DELAY_MS_MAX),
  reject: ['a function', (value) => typeof value === 'function'],
};

const FAILURE_CHECKS: Checks<ReceiverFailure> = {
  status: wholeFrom(400, 599),
  times: WHOLE_FROM_1,
  retryAfterSeconds: wholeFrom(0, 86_400),
};

/** The faults of one receiver. */
export class Faults {
  #given: Omit<ReceiverFaults, 'fail'> = {};
  #failure: ReceiverFailure | undefined;
  #failuresLeft = 0;

  /** Takes the place of what was set before; a RunspanError names what cannot be used, and nothing is changed then. */
  set(faults: ReceiverFaults): void {
    const { fail, ...given } = checkedOptions('the faults', faults, CHECKS);
    const failure = fail && { ...checkedOptions('`fail`', fail, FAILURE_CHECKS), status: fail.status };
    this.#given = given;
    this.#failure = failure;
    this.#failuresLeft = failure?.times ?? Number.POSITIVE_INFINITY;
  }

  /** Called when a request has been read and before anything of it is applied; throws a Refusal where it meets a fault. */
  async meet(operations: readonly RunOperation[]): Promise<void> {
    const { delayMs = 0, reject } = this.#given;
    const failure = this.#failuresLeft > 0 ? this.#failure : undefined;
    if (failure !== undefined) this.#failuresLeft--;
    if (delayMs > 0) await new Promise<void>((resolve) => void setTimer(resolve, delayMs));
    if (failure !== undefined) {
      const { status, retryAfterSeconds } = failure;
      const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
      throw new Refusal(status, 'A fault that was set: `fail`', headers);
    }
    const findings = new Findings();
    for (const operation of operations) {
      if (reject?.(operation)) findings.add(['body', operation.id], 'fault', 'A fault that was set: `reject`');
    }
    findings.refuseIfAny();
  }
}
