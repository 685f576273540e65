import { RunspanError } from '../base/errors.ts';
import type { ApiError } from './api-error.ts';

/** Why feedback was not taken. */
export type FeedbackRefusal = 'unknown' | 'expired' | 'invalid';

/** A service does not take feedback: it does not know the address, its time is over, or what is said does not hold. */
export class FeedbackError extends RunspanError {
  override readonly name: string = 'FeedbackError';
  readonly reason: FeedbackRefusal;
  declare readonly cause: ApiError;

  private constructor(reason: FeedbackRefusal, message: string, cause: ApiError) {
    super('RUNSPAN_FEEDBACK_REFUSED', message, { cause });
    this.reason = reason;
  }

  /** @internal Undefined where the answer says nothing of the feedback. */
  static of(answer: ApiError): FeedbackError | undefined {
    const known = REFUSALS[answer.status];
    if (known === undefined) return undefined;
    const [reason, message] = known;
    return new FeedbackError(
      reason,
      `${message} (${answer.status}${answer.detail === undefined ? '' : `: ${answer.detail}`})`,
      answer,
    );
  }
}

const EXPIRED = ['expired', 'The address for feedback has expired'] as const;
const INVALID = ['invalid', 'The service does not take this feedback'] as const;

const REFUSALS: Readonly<Record<number, readonly [reason: FeedbackRefusal, message: string]>> = {
  400: INVALID,
  403: EXPIRED,
  404: ['unknown', 'The service does not know the address for feedback, or its run'],
  410: EXPIRED,
  422: INVALID,
};
