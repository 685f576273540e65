import { diagnostics } from '../base/diagnostics.ts';
import type { HttpAnswer } from '../http/client.ts';
import { isTransient, parseRetryAfter } from '../http/retry-policy.ts';
import type { Outcome } from './transport.ts';

/** What the answer to an ingestion request means for the records in it. */
export function outcomeOf(answer: HttpAnswer, nowMs: number): Outcome {
  const { status } = answer;
  const detail = `status ${status}`;
  // 409: the service has them from an earlier attempt whose answer was lost.
  if ((status >= 200 && status < 300) || status === 409) return { kind: 'accepted' };
  if (status === 413) return { kind: 'too_large', detail };
  if (status === 400 || status === 422) return { kind: 'invalid', detail };
  if (status === 401 || status === 403) return { kind: 'misconfigured', detail: `${detail}: the API key was rejected` };
  if (status === 404 || status === 405 || status === 415 || status === 501) return { kind: 'unsupported', detail };
  if (status === 407) return { kind: 'misconfigured', detail: `${detail}: the proxy asks for authentication` };
  if (status >= 300 && status < 400) {
    return { kind: 'misconfigured', detail: `${detail}: redirects are not followed, check the endpoint` };
  }
  if (isTransient(status)) {
    return {
      kind: 'failed',
      detail,
      afterMs: parseRetryAfter(header(answer, 'retry-after'), nowMs, header(answer, 'date')),
    };
  }
  return { kind: 'dropped', reason: 'rejected', detail };
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
