import { type ErrorCode, RunspanError } from '../base/errors.ts';
import { isObject } from '../base/options.ts';
import { cut } from '../base/text.ts';

/** Description of a request in an error. */
export interface CallFacts {
  readonly method: string;
  /** The URL without its query. */
  readonly url: string;
  /** Number of times the request was sent. */
  readonly attempts: number;
}

/** A response as stored in errors. Keys and secrets of the request are masked. */
export interface FailedAnswer {
  readonly status: number;
  /** Headers by name in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** An invalid field, in the format of the service (`HTTPValidationError`). */
export interface ValidationError {
  /** Path of the field: `['body', 'source_config', 'repo_url']` or `['path', 'deployment_id']`. Numbers are list indexes. */
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  /** Kind of the error, for example `missing` or `value_error`. */
  readonly type: string;
  /** The invalid value. Never set by the checks of the clients. */
  readonly input?: unknown;
  readonly ctx?: Readonly<Record<string, unknown>>;
}

/**
 * A call breaks a rule of the interface. Nothing was sent. `errors` lists every invalid field in the service's format,
 * without the given values.
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

/** Maximum characters of the service's explanation in a message. */
export const DETAIL_MAX = 500;

/**
 * The service responded with an unsuccessful status. `code` depends on the status, for example `RUNSPAN_NOT_FOUND` for
 * 404 and `RUNSPAN_SERVER_ERROR` from 500. Keys and secrets of the request are masked, even if the service repeats them.
 */
export class ApiError extends RunspanError {
  override readonly name: string = 'ApiError';
  readonly status: number;
  /** The service's explanation as text. Undefined if the response has none. */
  readonly detail: string | undefined;
  /** The errors of a 422 response. Empty for other responses. */
  readonly errors: readonly ValidationError[];
  /** The parsed body, or its text if the body is not JSON. */
  readonly body: unknown;
  readonly headers: FailedAnswer['headers'];
  /** Request id from the service, useful to its operators. */
  readonly requestId: string | undefined;
  readonly request: CallFacts;

  constructor(request: CallFacts, answer: FailedAnswer) {
    const { status, headers, text } = answer;
    const body = parseJson(text) ?? text;
    const errors = validationErrorsOf(body);
    const detail = errors.length > 0 ? errors.map(validationText).join('; ') : detailOf(body);
    const shown = detail === undefined ? advice(status) : cut(oneLine(detail), DETAIL_MAX);
    super(codeOf(status), `${requestText(request)}: ${status}${shown && ` ${shown}`}`);
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

/** The response is invalid: not JSON, too long or not of the expected kind. */
export class InvalidAnswerError extends RunspanError {
  override readonly name: string = 'InvalidAnswerError';
  readonly status: number;
  readonly requestId: string | undefined;
  readonly request: CallFacts;

  constructor(request: CallFacts, answer: Omit<FailedAnswer, 'text'>, problem: string, options?: ErrorOptions) {
    const message = `${requestText(request)}: ${answer.status}, but the response ${problem}`;
    super('RUNSPAN_INVALID_ANSWER', message, options);
    this.status = answer.status;
    this.requestId = requestIdOf(answer.headers);
    this.request = request;
  }
}

/** No response arrived: the service cannot be reached, or the connection broke. */
export class ConnectionError extends RunspanError {
  override readonly name: string = 'ConnectionError';
  /** Whether the service may have received the request. */
  readonly mayHaveArrived: boolean;
  readonly request: CallFacts;

  constructor(request: CallFacts, problem: string, mayHaveArrived: boolean) {
    super('RUNSPAN_NO_ANSWER', `${requestText(request)}: ${problem}`);
    this.mayHaveArrived = mayHaveArrived;
    this.request = request;
  }
}

/** A call took longer than its timeout. The service may have received the request. */
export class TimeoutError extends RunspanError {
  override readonly name: string = 'TimeoutError';
  readonly request: CallFacts;

  constructor(request: CallFacts, timeoutMs: number, options?: ErrorOptions) {
    super('RUNSPAN_TIMEOUT', `${requestText(request)}: no answer within ${timeoutMs} ms`, options);
    this.request = request;
  }
}

export function requestText({ method, url }: CallFacts): string {
  return `[${method}] "${url}"`;
}

export function requestIdOf(headers: FailedAnswer['headers']): string | undefined {
  const id = headers['x-request-id'];
  return typeof id === 'string' ? id : undefined;
}

/** Parses JSON. Returns undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function codeOf(status: number): ErrorCode {
  return CODES[status] ?? (status >= 500 ? 'RUNSPAN_SERVER_ERROR' : 'RUNSPAN_UNEXPECTED_STATUS');
}

/**
 * Returns the explanation in a response: the text of a common field, or a body that is plain text. Markup is not shown.
 */
function detailOf(body: unknown, depthMax = 3): string | undefined {
  if (typeof body === 'string') return body === '' || /^\s*</.test(body) ? undefined : body;
  if (typeof body !== 'object' || body === null) return undefined;
  const { detail, message, error } = body as Record<string, unknown>;
  for (const text of [detail, message, error]) {
    if (typeof text === 'string' && text !== '') return text;
    if (typeof text === 'object' && text !== null && depthMax > 0) return detailOf(text, depthMax - 1);
  }
  try {
    return JSON.stringify(body);
  } catch {
    // The body is nested more deeply than the call stack allows.
    return undefined;
  }
}

function advice(status: number): string {
  const isRedirect = status >= 300 && status < 400;
  return isRedirect ? '(redirects are not followed; set the address to which the redirect leads)' : '';
}

function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
}

/** Returns the error on one line: `body.source_config.repo_url: Field required`. */
function validationText({ loc, msg }: ValidationError): string {
  const place = loc.map((step) => (typeof step === 'number' ? `[${step}]` : `.${cut(step, 100)}`)).join('');
  return `${place.replace(/^\./, '')}: ${msg}`;
}

/** Returns the field errors in a FastAPI or Zod response. Zod 4 writes its issues as JSON into `message`. */
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

/** Makes properties non-enumerable, so that the output of an error does not repeat its message. */
export function hide(error: object, names: readonly string[]): void {
  for (const name of names) Object.defineProperty(error, name, { enumerable: false });
}
