import type { OpenAnswer } from '../http/client.ts';
import { DeadlineError, failureOf } from '../http/errors.ts';
import { type CallFacts, ConnectionError, InvalidAnswerError, TimeoutError } from './api-error.ts';
import type { Call } from './call.ts';
import type { CallOptions, RequestEvent } from './client-options.ts';
import type { AttemptFailure } from './retry-delay.ts';
import type { Secrets } from './secrets.ts';

/** The head of an answer, without keys and secrets. */
export type Head = Pick<OpenAnswer, 'status' | 'headers'>;

/** An attempt to send a call, and what it has to know. */
export interface Attempt {
  readonly call: Call;
  /** The body as JSON, made once. */
  readonly body: string | undefined;
  readonly options: CallOptions;
  /** Of the whole call. */
  readonly timeoutMs: number;
  readonly leftMs: () => number;
  readonly facts: CallFacts;
  readonly secrets: Secrets;
}

/** What is made of a successful answer. */
export type Take<Result> = (attempt: Attempt, answer: OpenAnswer, head: Head) => Promise<Result>;

/** An attempt that came to nothing: what the caller is told, and what decides on another. */
export class FailedAttempt extends Error {
  readonly error: Error;
  readonly failure: AttemptFailure;

  constructor(error: Error, failure: AttemptFailure) {
    super(error.message);
    this.error = error;
    this.failure = failure;
  }
}

/** What is thrown of an attempt: whatever it is not tried again for as it is, the rest with what decides on that. */
export function failedAttempt(thrown: unknown, { facts, timeoutMs }: Attempt): unknown {
  if (thrown instanceof FailedAttempt || thrown instanceof InvalidAnswerError) return thrown;
  // By now the time for further attempts is over as well.
  if (thrown instanceof DeadlineError) return new TimeoutError(facts, timeoutMs);
  const { detail, code, isLasting, isUnsent } = failureOf(thrown);
  const error = new ConnectionError(facts, detail, !isUnsent);
  return new FailedAttempt(error, { kind: 'no answer', code, isLasting });
}

/** What hooks are told of an attempt. */
export function eventOf({ call, facts }: Attempt): RequestEvent {
  return { call: call.name, method: facts.method, url: facts.url, attempt: facts.attempts };
}
