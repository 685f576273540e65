import { type Checks, checkedOptions, FUNCTION, WHOLE_FROM_1, wholeFrom } from '../../../config/checker.ts';
import { setTimer } from '../../../platform/timers.ts';
import type { RunOperation } from '../../domain/run-message.ts';
import { HttpError, ValidationIssues } from '../http-error.ts';

/**
 * Faults that the receiver simulates to test clients. Faults apply only to valid requests that contain runs. Requests
 * without runs, such as `GET /info`, get normal responses. If a fault makes a request fail, the receiver stores nothing
 * from the request.
 */
export interface ReceiverFaults {
  /** Error response to send instead of storing the runs. */
  fail?: ReceiverFailure;
  /** Delay before each response, in milliseconds. Maximum: 60,000. @default 0 */
  delayMs?: number;
  /**
   * Function that is called with each post or patch in a request. If `reject` returns true, the request fails with
   * status 422, as for an invalid run. The 422 response contains the run's id. If `reject` throws, the request fails
   * with status 500.
   */
  reject?: (operation: RunOperation) => boolean;
}

/** An error response to simulate. */
export interface ReceiverFailure {
  /** HTTP status code, from 400 to 599. */
  status: number;
  /** Number of requests that get the error response. @default all */
  times?: number;
  /** Value of the `Retry-After` header, in seconds. @default no header */
  retryAfterSeconds?: number;
}

const DELAY_MS_MAX = 60_000;

const CHECKS: Checks<ReceiverFaults> = {
  fail: ['an object with a `status`', (value) => (value as ReceiverFailure | null)?.status !== undefined],
  delayMs: wholeFrom(0, DELAY_MS_MAX),
  reject: FUNCTION,
};

const FAILURE_CHECKS: Checks<ReceiverFailure> = {
  status: wholeFrom(400, 599),
  times: WHOLE_FROM_1,
  retryAfterSeconds: wholeFrom(0, 86_400),
};

export class Faults {
  #given: Omit<ReceiverFaults, 'fail'> = {};
  #failure: ReceiverFailure | undefined;
  #failuresLeft = 0;

  /** Replaces the current faults. If a fault is invalid, throws a RunspanError and keeps the previous faults. */
  set(faults: ReceiverFaults): void {
    const { fail, ...given } = checkedOptions('the faults', faults, CHECKS);
    const failure = fail && { ...checkedOptions('`fail`', fail, FAILURE_CHECKS), status: fail.status };
    this.#given = given;
    this.#failure = failure;
    this.#failuresLeft = failure?.times ?? Number.POSITIVE_INFINITY;
  }

  async apply(operations: readonly RunOperation[]): Promise<void> {
    const { delayMs = 0, reject } = this.#given;
    const failure = this.#failuresLeft > 0 ? this.#failure : undefined;
    if (failure !== undefined) this.#failuresLeft--;
    if (delayMs > 0) await new Promise<void>((resolve) => void setTimer(resolve, delayMs));
    if (failure !== undefined) {
      const { status, retryAfterSeconds } = failure;
      const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
      throw new HttpError(status, 'The fault `fail`', headers);
    }
    const issues = new ValidationIssues();
    for (const operation of operations) {
      if (reject?.(operation)) issues.add(['body', operation.id], 'fault', 'The fault `reject`');
    }
    issues.throwIfAny();
  }
}
