import { RunspanError } from '../base/errors.ts';
import { shareInstances } from '../base/shared.ts';
import { type Checks, checkedOptions, isObject, validOptions } from '../config/checker.ts';
import { Api } from './api.ts';
import {
  type CallOptions,
  type ClientOptions,
  callChecks,
  callOptionsOf,
  clientChecks,
  preSignedUrl,
} from './client-options.ts';
import { ApiError, InvalidRequestError, type ValidationError } from './errors.ts';
import { secretsIn } from './secrets.ts';
import { tracedCall } from './tracing.ts';

/** Feedback from an end user on a run. All fields are optional, but a receiver refuses feedback without content. */
export interface FeedbackSubmission {
  /** Numeric rating, for example 1 or -1. `true` counts as 1 and `false` as 0. `null` withdraws earlier feedback. */
  score?: number | boolean | null;
  /** The user's answer, if a number cannot express it. */
  value?: number | boolean | string | Readonly<Record<string, unknown>> | null;
  /** Text comment from the user. */
  comment?: string | null;
  /** The answer that the run should have given. */
  correction?: Readonly<Record<string, unknown>> | string | null;
  /** Additional data about the feedback, which can be sent only with the method `POST`. */
  metadata?: Readonly<Record<string, unknown>> | null;
}

/** Options for sending feedback. */
export interface SubmitFeedbackOptions
  extends CallOptions,
    Pick<ClientOptions, 'connectTimeoutMs' | 'allowInsecure' | 'dispatcher' | 'hooks'> {
  /** HTTP method. `GET` sends the feedback in the URL's query string. @default 'POST' */
  method?: 'POST' | 'GET';
  /** Required origin of the URL. Set `origin` if the URL comes from an untrusted source. */
  origin?: string;
}

/** Why the service refused the feedback. */
export type FeedbackRefusal = 'unknown' | 'expired' | 'invalid';

const REFUSALS: Readonly<Record<number, FeedbackRefusal>> = {
  400: 'invalid',
  403: 'expired',
  404: 'unknown',
  410: 'expired',
  422: 'invalid',
};

const REFUSAL_TEXTS: Readonly<Record<FeedbackRefusal, string>> = {
  unknown: 'The service does not know the feedback URL or its run',
  expired: 'The feedback URL has expired',
  invalid: 'The service does not accept this feedback',
};

/** Thrown when the service refuses feedback. The URL is unknown or expired, or the feedback is invalid. */
export class FeedbackError extends RunspanError {
  override readonly name: string = 'FeedbackError';
  readonly reason: FeedbackRefusal;
  declare readonly cause: ApiError;

  private constructor(reason: FeedbackRefusal, cause: ApiError) {
    const detail = cause.detail === undefined ? '' : `: ${cause.detail}`;
    super('RUNSPAN_FEEDBACK_REFUSED', `${REFUSAL_TEXTS[reason]} (${cause.status}${detail})`, { cause });
    this.reason = reason;
  }

  /** @internal Converts a refusal by the service to a FeedbackError. Returns any other error unchanged. */
  static of(thrown: unknown): unknown {
    const reason = thrown instanceof ApiError ? REFUSALS[thrown.status] : undefined;
    return reason === undefined ? thrown : new FeedbackError(reason, thrown as ApiError);
  }
}

shareInstances({ FeedbackError });

/**
 * Sends feedback to a pre-signed URL from a run's `feedback` event or from `createFeedbackToken`. No API key is sent,
 * because the URL is the credential. Rejects with a FeedbackError if the service refuses the feedback. To avoid storing
 * feedback twice, a request is retried only if the service cannot have received it.
 */
export async function submitFeedback(
  url: string | URL,
  feedback: FeedbackSubmission,
  options: SubmitFeedbackOptions = {},
): Promise<void> {
  const name = 'submitFeedback';
  const checked = checkedOptions<SubmitFeedbackOptions>(`the options of ${name}`, options, submitChecks);
  const { method = 'POST', origin, connectTimeoutMs, allowInsecure, dispatcher, hooks } = checked;
  const address = feedbackUrl(url, allowInsecure, origin);
  const fields = checkedFields(name, method === 'GET' ? 'query' : 'body', feedback);
  const service = { url: new URL(address.origin), secrets: secretsOf(address) };
  const api = new Api({ ...service, connectTimeoutMs, dispatcher, hooks });
  const call = {
    name,
    method,
    path: address.pathname + (method === 'GET' ? withQuery(address, fields) : address.search),
    // Every request stores the feedback again, even a GET.
    isIdempotent: false,
    options: callOptionsOf(checked),
    ...(method === 'POST' && { body: fields }),
  };
  try {
    await tracedCall({ name, runType: 'tool', inputs: () => fields }, async () => {
      // The response body is ignored. A service may respond to a GET request with a thank-you page.
      const { body } = await api.open(call);
      body.destroy();
    });
  } catch (thrown) {
    throw FeedbackError.of(thrown);
  } finally {
    await api.close();
  }
}

/**
 * Returns a link for an email or chat message, with the feedback in the query string. On a runspan receiver, the link
 * opens a page with a button that stores the feedback. Other services may store the feedback as soon as a link preview
 * or mail scanner opens the link. Throws an InvalidRequestError if the feedback has metadata or an object as its value,
 * because links cannot contain them.
 */
export function feedbackLink(url: string | URL, feedback: FeedbackSubmission): string {
  const address = feedbackUrl(url, true, undefined);
  return address.origin + address.pathname + withQuery(address, checkedFields('feedbackLink', 'query', feedback));
}

const isScalar = (given: unknown): boolean => Number.isFinite(given) || typeof given === 'boolean';
const isText = (given: unknown): boolean => typeof given === 'string';

const BODY_FIELDS: Checks<FeedbackSubmission> = {
  score: ['a finite number, true or false', isScalar],
  value: [
    'a finite number, true, false, a string or an object',
    (given) => isScalar(given) || isText(given) || isObject(given),
  ],
  comment: ['a string', isText],
  correction: ['an object or a string', (given) => isObject(given) || isText(given)],
  metadata: ['an object', isObject],
};

const QUERY_FIELDS: Checks<FeedbackSubmission> = {
  ...BODY_FIELDS,
  value: [
    'a finite number, true, false or a string; only POST can send an object',
    (given) => isScalar(given) || isText(given),
  ],
  metadata: ['no metadata; only POST can send it', () => false],
};

function checkedFields(call: string, place: 'body' | 'query', feedback: FeedbackSubmission): Record<string, unknown> {
  const errors: ValidationError[] = [];
  const checks = place === 'body' ? BODY_FIELDS : QUERY_FIELDS;
  const fields = validOptions(feedback, checks, ({ name, value, check }) => {
    if (check !== undefined && value === null) return;
    const expected = check?.[0] ?? 'an object';
    const isUnknown = name !== undefined && check === undefined;
    const msg = isUnknown ? 'Unknown field, or a field that this request cannot set' : `Expected ${expected}`;
    errors.push({ loc: name === undefined ? [place] : [place, name], msg, type: 'value_error' });
  });
  if (errors.length > 0) throw new InvalidRequestError(call, errors);
  return place === 'body' && feedback.score === null ? { ...fields, score: null } : fields;
}

function withQuery({ searchParams }: URL, fields: Record<string, unknown>): string {
  const query = new URLSearchParams(searchParams);
  // The interface defines `correction` as JSON text. All other fields are plain text.
  for (const [name, given] of Object.entries(fields))
    query.set(name, name === 'correction' ? JSON.stringify(given) : String(given));
  return query.size === 0 ? '' : `?${query}`;
}

/**
 * Parses a feedback URL, which may have a query. Throws a RunspanError if the URL is invalid or does not have the
 * required origin.
 */
function feedbackUrl(given: string | URL, allowInsecure: boolean | undefined, origin: string | undefined): URL {
  const url = preSignedUrl('url', given, allowInsecure);
  const expected = origin === undefined ? url.origin : originOf(origin);
  if (expected === url.origin) return url;
  const message = `Expected \`url\` to be a URL of ${expected}, got one of ${url.origin}`;
  throw new RunspanError('RUNSPAN_INVALID_OPTION', message);
}

/** Returns the origin of a URL, or an empty string if the text is not a URL. */
function originOf(address: string): string {
  return URL.canParse(address) ? new URL(address).origin : '';
}

/** Returns the secret parts of a feedback URL: the last path segment and the query values. */
function secretsOf({ pathname, searchParams }: URL): string[] {
  const token = pathname.split('/').findLast((segment) => segment !== '') ?? '';
  return [token, ...searchParams.values()];
}

const submitChecks: Checks<SubmitFeedbackOptions> = {
  ...callChecks,
  headers: [
    'headers without a key, because no key is sent to a pre-signed URL',
    (given) => callChecks.headers[1](given) && secretsIn(given as Record<string, string>).length === 0,
  ],
  connectTimeoutMs: clientChecks.connectTimeoutMs,
  allowInsecure: clientChecks.allowInsecure,
  dispatcher: clientChecks.dispatcher,
  hooks: clientChecks.hooks,
  method: ["'POST' or 'GET'", (given) => given === 'POST' || given === 'GET'],
  origin: ['an http or https origin', (given) => typeof given === 'string' && /^https?:/.test(originOf(given))],
};
