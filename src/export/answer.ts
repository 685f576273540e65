import { diagnostics } from '../base/diagnostics.ts';
import type { HttpAnswer } from '../http/client.ts';
import { failureOf } from '../http/failure.ts';
import { isTransient, parseRetryAfter } from '../http/retry-policy.ts';
import type { Outcome } from './transport.ts';

/** What the answer to an ingestion request means for the records in it. */
export function outcomeOf(answer: HttpAnswer, nowMs: number): Outcome {
  const { status } = answer;
  const detail = `status ${status}`;
  if (status >= 200 && status < 300) return { kind: 'accepted' };
  // The service has them from an earlier attempt whose answer was lost.
  if (status === 409) return { kind: 'accepted', isRepetition: true };
  if (status === 413) return { kind: 'too_large', detail };
  if (status === 400 || status === 422) return { kind: 'invalid', detail };
  if (status === 401 || status === 403) {
    const why =
      answer.isKeyless === true ? 'the service asks for an API key, and none is sent' : 'the API key was rejected';
    return { kind: 'misconfigured', detail: `${detail}: ${why}` };
  }
  if (status === 404 || status === 405 || status === 415 || status === 501) return { kind: 'unsupported', detail };
  if (status === 407) return { kind: 'misconfigured', detail: `${detail}: the proxy asks for authentication` };
  if (status >= 300 && status < 400) {
    return { kind: 'misconfigured', detail: `${detail}: redirects are not followed, check the endpoint` };
  }
  if (isTransient(status)) {
    const afterMs = parseRetryAfter(header(answer, 'retry-after'), nowMs, header(answer, 'date'));
    return { kind: 'failed', detail, afterMs, isSuspect: status >= 500 && afterMs === undefined };
  }
  return { kind: 'dropped', reason: 'rejected', detail };
}

/** What it means that no answer came. */
export function outcomeOfError(thrown: unknown): Outcome {
  const { detail, isLasting, mayHaveArrived } = failureOf(thrown);
  return isLasting ? { kind: 'misconfigured', detail } : { kind: 'failed', detail, isSuspect: mayHaveArrived };
}

/**
 * The records that an accepting answer makes exceptions of, by the id of their run. No interface that we know has such; it
 * is read where a body says `{ "errors": [{ "id", "status"? }] }`, and anything else means that all were accepted.
 */
export function exceptionsOf(answer: HttpAnswer): ReadonlyMap<string, Outcome> {
  const exceptions = new Map<string, Outcome>();
  for (const error of errorsIn(answer.text)) {
    const { id, status } = (error ?? {}) as { id?: unknown; status?: unknown };
    if (typeof id !== 'string') continue;
    exceptions.set(id, outcomeOfOne(Number.isInteger(status) ? (status as number) : 400));
  }
  return exceptions;
}

function errorsIn(text: string): readonly unknown[] {
  if (!text.includes('"errors"')) return [];
  try {
    const { errors } = JSON.parse(text);
    return Array.isArray(errors) ? errors : [];
  } catch {
    return [];
  }
}

/** What is said of one record says nothing of the key, the address or the way: those have let the others pass. */
function outcomeOfOne(status: number): Outcome {
  const outcome = outcomeOf({ status, headers: {}, text: '' }, 0);
  const { kind } = outcome;
  if (kind === 'accepted' || kind === 'too_large' || kind === 'failed') return outcome;
  return { kind: 'invalid', detail: `status ${status} for one record` };
}

/** A page for people in place of an answer: a login, or the address of a site and not of its interface. */
export function noteWebPage(answer: HttpAnswer): void {
  if (answer.status >= 300 || !/^text\/html\b/.test(header(answer, 'content-type') ?? '')) return;
  diagnostics.warnOnce('web page', 'the endpoint answers with a web page; check that it is the address of the service');
}

function header(answer: HttpAnswer, name: string): string | undefined {
  const value = answer.headers[name];
  return Array.isArray(value) ? value[0] : value;
}
