import { type ErrorCode, RunspanError } from '../base/errors.ts';
import { ignoreErrors } from '../base/guard.ts';
import { shareInstances } from '../base/shared.ts';
import { cut } from '../base/text.ts';
import { isObject } from '../config/checker.ts';

/** Describes the request that caused an error. */
export interface CallFacts {
  readonly method: string;
  /** Request URL without the query string. */
  readonly url: string;
  /** Number of attempts to send the request. */
  readonly attempts: number;
}

/** Describes the response that caused an error. API keys and secrets are masked. */
export interface FailedResponse {
  readonly status: number;
  /** Response headers, keyed by lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** Describes an invalid field, in the format of the service's `HTTPValidationError`. */
export interface ValidationError {
  /**
   * Path of the field, for example `['body', 'source_config', 'repo_url']` or `['path', 'deployment_id']`. Numbers in
   * the path are list indexes.
   */
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  /** Type of the error, for example `missing` or `value_error`. */
  readonly type: string;
  /** The invalid value, if the service returns it. Errors created by the client never contain the value. */
  readonly input?: unknown;
  readonly ctx?: Readonly<Record<string, unknown>>;
}

/**
 * Thrown when an argument is invalid. No request has been sent. `errors` lists every invalid field, but not the invalid
 * values.
 */
export class InvalidRequestError extends RunspanError {
  override readonly name: string = 'InvalidRequestError';
  readonly errors: readonly ValidationError[];

  constructor(call: string, errors: readonly ValidationError[]) {
    super('RUNSPAN_INVALID_REQUEST', `${call}: ${errors.map(validationText).join('; ')}`);
    this.errors = errors;
    hide(this, ['errors']);
  }
}

const CODES: Readonly<Record<number, ErrorCode>> = {
  400: 'RUNSPAN_BAD_REQUEST',
  401: 'RUNSPAN_UNAUTHENTICATED',
  403: 'RUNSPAN_FORBIDDEN',
  404: 'RUNSPAN_NOT_FOUND',
  409: 'RUNSPAN_CONFLICT',
  422: 'RUNSPAN_UNPROCESSABLE',
  429: 'RUNSPAN_RATE_LIMITED',
};

/** Maximum length of the service's explanation in an error message, in characters. */
export const DETAIL_MAX = 500;

/**
 * Thrown when the service responds with an error status. `code` depends on the status, for example `RUNSPAN_NOT_FOUND`
 * for 404 and `RUNSPAN_SERVER_ERROR` for 500 and above. API keys and secrets of the request are masked, even if the
 * response contains them.
 */
export class ApiError extends RunspanError {
  override readonly name: string = 'ApiError';
  readonly status: number;
  /** The service's explanation as text, if the response contains one. */
  readonly detail: string | undefined;
  /** Invalid fields reported by a 422 response, or an empty list for other responses. */
  readonly errors: readonly ValidationError[];
  /** Parsed JSON body of the response, or the body text if it is not JSON. */
  readonly body: unknown;
  readonly headers: FailedResponse['headers'];
  /** Request id from the service, which helps its operators to find the request. */
  readonly requestId: string | undefined;
  readonly request: CallFacts;

  constructor(request: CallFacts, response: FailedResponse) {
    const { status, headers, text } = response;
    const body = parseJson(text) ?? text;
    const errors = validationErrorsOf(body);
    const given = errors.length > 0 ? errors.map(validationText).join('; ') : detailOf(body);
    // Some servers send the status line as the body: `404 Not Found`.
    const detail = given?.startsWith(`${status} `) ? given.slice(4) : given;
    const explanation = detail === undefined ? '' : ` ${cut(detail.replace(/[\p{Cc}\s]+/gu, ' ').trim(), DETAIL_MAX)}`;
    super(codeOf(status), `${requestText(request)}: ${status}${explanation}${REDIRECTS.has(status) ? ADVICE : ''}`);
    this.status = status;
    this.detail = detail;
    this.errors = errors;
    this.body = body;
    this.headers = headers;
    this.requestId = requestIdOf(headers);
    this.request = request;
    hide(this, ['headers', 'body', 'errors', 'detail']);
  }
}

/** Thrown when a response is not JSON, is too long or has an unexpected type. */
export class InvalidResponseError extends RunspanError {
  override readonly name: string = 'InvalidResponseError';
  readonly status: number;
  readonly requestId: string | undefined;
  readonly request: CallFacts;

  constructor(request: CallFacts, response: Omit<FailedResponse, 'text'>, problem: string, options?: ErrorOptions) {
    const message = `${requestText(request)}: ${response.status}, but the response ${problem}`;
    super('RUNSPAN_INVALID_RESPONSE', message, options);
    this.status = response.status;
    this.requestId = requestIdOf(response.headers);
    this.request = request;
  }
}

/** Thrown when no response arrives, because the service cannot be reached or the connection breaks. */
export class ConnectionError extends RunspanError {
  override readonly name: string = 'ConnectionError';
  /** Whether the service may have received the request. */
  readonly mayHaveArrived: boolean;
  readonly request: CallFacts;

  constructor(request: CallFacts, problem: string, mayHaveArrived: boolean) {
    super('RUNSPAN_NO_RESPONSE', `${requestText(request)}: ${problem}`);
    this.mayHaveArrived = mayHaveArrived;
    this.request = request;
  }
}

/** Thrown when a call takes longer than its timeout. The service may still have received the request. */
export class TimeoutError extends RunspanError {
  override readonly name: string = 'TimeoutError';
  readonly request: CallFacts;

  constructor(request: CallFacts, timeoutMs: number, options?: ErrorOptions) {
    super('RUNSPAN_TIMEOUT', `${requestText(request)}: no response within ${timeoutMs} ms`, options);
    this.request = request;
  }
}

shareInstances({ InvalidRequestError, ApiError, InvalidResponseError, ConnectionError, TimeoutError });

export function requestText({ method, url }: CallFacts): string {
  return `[${method}] "${url}"`;
}

export function requestIdOf(headers: FailedResponse['headers']): string | undefined {
  const id = headers['x-request-id'];
  return typeof id === 'string' ? id : undefined;
}

/** Parses JSON. Returns undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  return ignoreErrors(() => JSON.parse(text));
}

function codeOf(status: number): ErrorCode {
  return CODES[status] ?? (status >= 500 ? 'RUNSPAN_SERVER_ERROR' : 'RUNSPAN_UNEXPECTED_STATUS');
}

/**
 * Returns the explanation in an error response: the text of a common field, or the body if it is plain text. Markup is
 * ignored.
 */
function detailOf(body: unknown, depthMax = 3): string | undefined {
  if (typeof body === 'string') return body === '' || /^\s*</.test(body) ? undefined : body;
  if (typeof body !== 'object' || body === null) return undefined;
  const { detail, message, error } = body as Record<string, unknown>;
  for (const text of [detail, message, error]) {
    if (typeof text === 'string' && text !== '') return text;
    if (typeof text === 'object' && text !== null && depthMax > 0) return detailOf(text, depthMax - 1);
  }
  // The body may be nested too deeply for the call stack.
  return ignoreErrors(() => JSON.stringify(body));
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const ADVICE = " (redirects are not followed; use the redirect's target as the base URL)";

/** Formats a validation error as one line, for example `body.source_config.repo_url: Field required`. */
function validationText({ loc, msg }: ValidationError): string {
  const place = loc.map((step) => (typeof step === 'number' ? `[${step}]` : `.${cut(step, 100)}`)).join('');
  return `${place.replace(/^\./, '')}: ${msg}`;
}

/** Returns the validation errors from a FastAPI or Zod response. Zod 4 encodes its issues as JSON in `message`. */
function validationErrorsOf(body: unknown): ValidationError[] {
  const { detail, error } = isObject(body) ? body : {};
  if (Array.isArray(detail)) return detail.filter(isValidationError);
  const { name, issues, message } = isObject(error) ? error : {};
  const found = name === 'ZodError' && typeof message === 'string' ? (issues ?? parseJson(message)) : issues;
  if (!Array.isArray(found)) return [];
  return found.filter(isObject).flatMap(({ path, message: msg, code }) => {
    const read = { loc: path, msg, type: typeof code === 'string' ? code : 'value_error' };
    return isValidationError(read) ? [read] : [];
  });
}

function isValidationError(value: unknown): value is ValidationError {
  if (!isObject(value) || typeof value.msg !== 'string' || !Array.isArray(value.loc)) return false;
  return value.loc.every((step) => typeof step === 'string' || typeof step === 'number');
}

/** Makes properties of an error non-enumerable, so that a logged error does not show the message twice. */
export function hide(error: object, names: readonly string[]): void {
  for (const name of names) Object.defineProperty(error, name, { enumerable: false });
}
