import { RunspanError } from '../base/errors.ts';
import { type Checks, checkedOptions, isObject } from '../base/options.ts';
import { Api } from './api.ts';
import {
  type CallOptions,
  type ClientOptions,
  callChecks,
  callOptionsOf,
  clientChecks,
  serviceAddress,
} from './client-options.ts';
import { ApiError, InvalidRequestError } from './errors.ts';
import { parseRequest, RECORD, strictRequest, value } from './schema.ts';
import { secretsIn } from './secrets.ts';
import { tracedCall } from './tracing.ts';

/** Feedback of an end user on a run. Every field is optional. */
export interface FeedbackSubmission {
  /** A rating for comparing runs, for example 1 or -1. `true` counts as 1 and `false` as 0. */
  score?: number | boolean | null;
  /** The user's choice, if it is not just a number. */
  value?: number | boolean | string | Readonly<Record<string, unknown>> | null;
  /** The user's own text. */
  comment?: string | null;
  /** The answer that the run should have given. */
  correction?: Readonly<Record<string, unknown>> | string | null;
  /** Other data. Only a POST can carry it. */
  metadata?: Readonly<Record<string, unknown>> | null;
}

/** How feedback is sent. */
export interface SubmitFeedbackOptions
  extends CallOptions,
    Pick<ClientOptions, 'connectTimeoutMs' | 'allowInsecure' | 'dispatcher' | 'hooks'> {
  /** `GET` sends the feedback in the query string of the URL. @default 'POST' */
  method?: 'POST' | 'GET';
  /** Required origin of the URL. Set it if the URL comes from an untrusted source. */
  origin?: string;
}

/** Reason for refusing feedback. */
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

/** The service refused feedback: the URL is unknown or has expired, or the feedback is invalid. */
export class FeedbackError extends RunspanError {
  override readonly name: string = 'FeedbackError';
  readonly reason: FeedbackRefusal;
  declare readonly cause: ApiError;

  private constructor(reason: FeedbackRefusal, cause: ApiError) {
    const detail = cause.detail === undefined ? '' : `: ${cause.detail}`;
    super('RUNSPAN_FEEDBACK_REFUSED', `${REFUSAL_TEXTS[reason]} (${cause.status}${detail})`, { cause });
    this.reason = reason;
  }

  /** @internal Returns `thrown` if it is not a refusal. */
  static of(thrown: unknown): unknown {
    const reason = thrown instanceof ApiError ? REFUSALS[thrown.status] : undefined;
    return reason === undefined ? thrown : new FeedbackError(reason, thrown as ApiError);
  }
}

/**
 * Sends feedback to a pre-signed URL, from a run's `feedback` event or from `createFeedbackToken`. The request carries
 * no key, because the URL is the credential. Rejects with a FeedbackError if the service refuses the feedback. The
 * request is retried only if it cannot have arrived, so that feedback is never stored twice.
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
    // Repeating a GET would store the feedback again.
    isIdempotent: false,
    options: callOptionsOf(checked),
    ...(method === 'POST' && { body: fields }),
  };
  try {
    await tracedCall({ name, runType: 'tool', inputs: () => fields }, async () => {
      // Only the status matters. A GET may respond with a page that thanks the user.
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
 * Returns the URL with this feedback in its query string, for a link in an email or a chat. When a browser opens the
 * link, a runspan receiver first shows a page with a button. Other services may store the feedback as soon as a link
 * preview or a mail scanner opens the link. Throws an InvalidRequestError if the feedback has metadata or a value that
 * is an object, because a link cannot contain them.
 */
export function feedbackLink(url: string | URL, feedback: FeedbackSubmission): string {
  const address = feedbackUrl(url, true, undefined);
  return address.origin + address.pathname + withQuery(address, checkedFields('feedbackLink', 'query', feedback));
}

const isScalar = (given: unknown): boolean => Number.isFinite(given) || typeof given === 'boolean';
const isText = (given: unknown): boolean => typeof given === 'string';

const FIELDS = {
  score: value<number | boolean>('a finite number, true or false', isScalar),
  value: value<NonNullable<FeedbackSubmission['value']>>(
    'a finite number, true, false, text or an object',
    (given) => isScalar(given) || isText(given) || isObject(given),
  ),
  comment: value<string>('text', isText),
  correction: value<string>('an object or text', (given) => isObject(given) || isText(given)),
  metadata: RECORD,
};

const LINK_FIELDS = {
  ...FIELDS,
  value: value<string>(
    'a finite number, true, false or text; only POST can send an object',
    (given) => isScalar(given) || isText(given),
  ),
  metadata: value<never>('no metadata; only POST can send it', () => false),
};

const SCHEMAS = {
  body: strictRequest<FeedbackSubmission>({}, FIELDS),
  query: strictRequest<FeedbackSubmission>({}, LINK_FIELDS),
};

type Fields = Record<string, unknown>;

function checkedFields(call: string, place: 'body' | 'query', feedback: FeedbackSubmission): Fields {
  const { errors } = parseRequest(SCHEMAS[place], feedback, [place]);
  if (errors.length > 0) throw new InvalidRequestError(call, errors);
  return Object.fromEntries(Object.entries(feedback).filter(([, given]) => given !== undefined && given !== null));
}

/** Adds the feedback to the query string of the URL. Objects are encoded as JSON. */
function withQuery({ searchParams }: URL, fields: Fields): string {
  const query = new URLSearchParams(searchParams);
  for (const [name, given] of Object.entries(fields))
    query.set(name, isObject(given) ? JSON.stringify(given) : String(given));
  return query.size === 0 ? '' : `?${query}`;
}

/** Parses the URL, which may have a query. Throws a RunspanError if it is not a URL or has another origin. */
function feedbackUrl(given: string | URL, allowInsecure: boolean | undefined, origin: string | undefined): URL {
  const url = URL.canParse(String(given)) ? new URL(String(given)) : undefined;
  const hasUser = url !== undefined && `${url.username}${url.password}` !== '';
  const withoutQuery = url === undefined ? given : hasUser ? url : `${url.origin}${url.pathname}`;
  // The URL is a credential.
  const { origin: found } = serviceAddress('url', withoutQuery, { hasKey: true, allowInsecure });
  const expected = origin === undefined ? found : originOf(origin);
  if (url !== undefined && expected === found) return url;
  const message = `Expected \`url\` to be an address of ${expected}, got one of ${found}`;
  throw new RunspanError('RUNSPAN_INVALID_OPTION', message);
}

/** Returns an empty string if the text is not a URL. */
function originOf(address: string): string {
  return URL.canParse(address) ? new URL(address).origin : '';
}

/** Returns the secret parts of the URL: the end of its path, and its query. */
function secretsOf({ pathname, searchParams }: URL): string[] {
  const token = pathname.split('/').findLast((segment) => segment !== '') ?? '';
  return [token, ...searchParams.values()];
}

const submitChecks: Checks<SubmitFeedbackOptions> = {
  ...callChecks,
  headers: [
    'headers without a key, because no key is sent to a pre-signed address',
    (given) => callChecks.headers[1](given) && secretsIn(given as Record<string, string>).length === 0,
  ],
  connectTimeoutMs: clientChecks.connectTimeoutMs,
  allowInsecure: clientChecks.allowInsecure,
  dispatcher: clientChecks.dispatcher,
  hooks: clientChecks.hooks,
  method: ["'POST' or 'GET'", (given) => given === 'POST' || given === 'GET'],
  origin: ['an http or https origin', (given) => typeof given === 'string' && /^https?:/.test(originOf(given))],
};
