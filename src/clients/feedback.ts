import { RunspanError } from '../base/errors.ts';
import { type Check, type Checks, checkedOptions, isObject } from '../base/options.ts';
import { Api } from './api.ts';
import { ApiError } from './api-error.ts';
import type { Call } from './call.ts';
import { type CallOptions, type ClientOptions, callChecks, callOptionsOf, clientChecks } from './client-options.ts';
import { FeedbackError } from './feedback-error.ts';
import { type Headers, secretsIn } from './headers.ts';
import { Secrets } from './secrets.ts';
import { serviceAddress } from './service-address.ts';
import { tracedCall } from './traced-call.ts';
import { InvalidRequestError, type ValidationError } from './validation-error.ts';

/** What an end user says of a run. Each field may be left out. */
export interface FeedbackSubmission {
  /** By which runs are compared: a rating, 1 or -1, or true or false for 1 and 0. */
  score?: number | boolean | null;
  /** What was chosen, where it is more than a number. */
  value?: number | boolean | string | Readonly<Record<string, unknown>> | null;
  /** In the user's words. */
  comment?: string | null;
  /** What the run should have answered. */
  correction?: Readonly<Record<string, unknown>> | string | null;
  /** Anything else, for POST alone: a link cannot carry it. */
  metadata?: Readonly<Record<string, unknown>> | null;
}

/** How feedback is sent. */
export interface SubmitFeedbackOptions
  extends CallOptions,
    Pick<ClientOptions, 'connectTimeoutMs' | 'allowInsecure' | 'dispatcher' | 'hooks'> {
  /**
   * `GET` sends the feedback in the query string of the URL.
   *
   * @default 'POST'
   */
  method?: 'POST' | 'GET';
  /** The origin that the URL must have. Set it if the URL comes from an untrusted source. */
  origin?: string;
}

/**
 * Sends feedback to a pre-signed address, as a run's `feedback` event or `createFeedbackToken` gives it. No key goes with it: whoever
 * has the address may use it. Rejects with a FeedbackError where the address is unknown or has expired or the
 * service does not take what is said, and with an InvalidRequestError where that is clear beforehand. It is sent again only
 * where it cannot have arrived, so that nothing is said twice.
 */
export async function submitFeedback(
  url: string | URL,
  feedback: FeedbackSubmission,
  options: SubmitFeedbackOptions = {},
): Promise<void> {
  const checked = checkedOptions<SubmitFeedbackOptions>('the options of submitFeedback', options, submitChecks);
  const { method = 'POST', origin, connectTimeoutMs, allowInsecure, dispatcher, hooks } = checked;
  const address = feedbackAddress(url, allowInsecure, origin);
  const said = method === 'GET' ? saidInQuery('submitFeedback', feedback) : saidInBody('submitFeedback', feedback);
  const api = new Api({
    url: new URL(address.origin),
    headers: {},
    // Whoever has the address may give feedback, so it is told to nobody.
    secrets: new Secrets(secretsOf(address)),
    ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs }),
    ...(dispatcher === undefined ? {} : { dispatcher }),
    ...(hooks === undefined ? {} : { hooks }),
  });
  const call: Call = {
    name: 'submitFeedback',
    method,
    path: address.pathname + (method === 'GET' ? withQuery(address, said) : address.search),
    // What a GET does would be done again as well.
    isIdempotent: false,
    options: callOptionsOf(checked),
    ...(method === 'GET' ? {} : { body: said }),
  };
  try {
    await tracedCall({ name: 'submitFeedback', runType: 'tool', inputs: () => said }, async () => {
      // Of the answer only the status counts: whoever follows a link may be thanked in HTML.
      const { body } = await api.open(call);
      body.resume();
    });
  } catch (thrown) {
    throw (thrown instanceof ApiError && FeedbackError.of(thrown)) || thrown;
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
  const address = feedbackAddress(url, true, undefined);
  return address.origin + address.pathname + withQuery(address, saidInQuery('feedbackLink', feedback));
}

function saidInBody(call: string, feedback: FeedbackSubmission): Said {
  return saidOf(call, 'body', feedback, RULES);
}

function saidInQuery(call: string, feedback: FeedbackSubmission): Said {
  return saidOf(call, 'query', feedback, QUERY_RULES);
}

type Said = Record<string, unknown>;
type Rules = Readonly<Record<keyof FeedbackSubmission, Check>>;

const isText = (value: unknown): boolean => typeof value === 'string';
const isNumber = (value: unknown): boolean => Number.isFinite(value);
const isTruth = (value: unknown): boolean => typeof value === 'boolean';

const RULES: Rules = {
  score: ['a finite number, true or false', (value) => isNumber(value) || isTruth(value)],
  value: [
    'a finite number, true, false, text or an object',
    (v) => isNumber(v) || isTruth(v) || isText(v) || isObject(v),
  ],
  comment: ['text', isText],
  correction: ['an object or text', (value) => isObject(value) || isText(value)],
  metadata: ['an object', isObject],
};

const QUERY_RULES: Rules = {
  ...RULES,
  value: [
    'a finite number, true, false or text; an object goes by POST alone',
    (v) => RULES.value[1](v) && !isObject(v),
  ],
  metadata: ['left out; it goes by POST alone', () => false],
};

/** The fields that are there, each of which has been checked. */
function saidOf(call: string, place: 'body' | 'query', feedback: unknown, rules: Rules): Said {
  if (!isObject(feedback)) {
    throw new InvalidRequestError(call, [{ loc: [place], msg: 'Expected an object of feedback', type: 'dict_type' }]);
  }
  const given = Object.entries(feedback as object).filter(([, value]) => value !== undefined && value !== null);
  const errors = given.flatMap(([field, value]): ValidationError[] => {
    const rule = Object.hasOwn(rules, field) ? rules[field as keyof Rules] : undefined;
    const loc = [place, field];
    if (rule === undefined)
      return [{ loc, msg: `Expected one of ${Object.keys(rules).join(', ')}`, type: 'extra_forbidden' }];
    return rule[1](value) ? [] : [{ loc, msg: `Expected ${rule[0]}`, type: 'value_error' }];
  });
  if (errors.length > 0) throw new InvalidRequestError(call, errors);
  return Object.fromEntries(given);
}

/** The query of the address with what is said; an object as JSON. */
function withQuery({ searchParams }: URL, said: Said): string {
  const query = new URLSearchParams(searchParams);
  for (const [field, value] of Object.entries(said))
    query.set(field, isObject(value) ? JSON.stringify(value) : String(value));
  return query.size === 0 ? '' : `?${query}`;
}

/** The address, which may carry a query; a RunspanError where it is none, or one of another origin. */
function feedbackAddress(given: string | URL, allowInsecure: boolean | undefined, origin: string | undefined): URL {
  const url = URL.canParse(String(given)) ? new URL(String(given)) : undefined;
  const hasUser = url !== undefined && `${url.username}${url.password}` !== '';
  const bare = url === undefined ? given : hasUser ? url : `${url.origin}${url.pathname}`;
  // The address is a credential itself.
  const { origin: found } = serviceAddress('url', bare, { hasKey: true, allowInsecure });
  const expected = origin === undefined ? found : originOf(origin);
  if (url === undefined || expected !== found) {
    throw new RunspanError(
      'RUNSPAN_INVALID_OPTION',
      `Expected \`url\` to be an address of ${expected}, got one of ${found}`,
    );
  }
  return url;
}

/** Empty for what is no address. */
function originOf(address: string): string {
  return URL.canParse(address) ? new URL(address).origin : '';
}

/** What of an address gives the right to use it: the end of its path, and its query. */
function secretsOf({ pathname, searchParams }: URL): string[] {
  const token = pathname.split('/').findLast((segment) => segment !== '') ?? '';
  return [token, ...searchParams.values()];
}

const submitChecks: Checks<SubmitFeedbackOptions> = {
  ...callChecks,
  headers: [
    'headers without a key: none goes to a pre-signed address',
    (value) => callChecks.headers[1](value) && secretsIn(value as Headers).length === 0,
  ],
  connectTimeoutMs: clientChecks.connectTimeoutMs,
  allowInsecure: clientChecks.allowInsecure,
  dispatcher: clientChecks.dispatcher,
  hooks: clientChecks.hooks,
  method: ["'POST' or 'GET'", (value) => value === 'POST' || value === 'GET'],
  origin: ['an http or https origin', (value) => isText(value) && /^https?:/.test(originOf(value as string))],
};
