import { type ErrorCode, RunspanError } from '../base/errors.ts';
import { cut } from '../base/text.ts';
import { type ValidationError, validationErrorsOf, validationText } from './validation-error.ts';

/** What an error of a call tells of it. */
export interface CallFacts {
  readonly method: string;
  /** Without its query. */
  readonly url: string;
  /** How often it was sent. */
  readonly attempts: number;
}

/** An answer as errors keep it: keys and secrets of the call are taken out. */
export interface FailedAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
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

/** Characters of a body that say what is wrong in a message. */
const DETAIL_MAX = 500;

/**
 * A service has answered a call with a status that is no success. `code` goes by the status: `RUNSPAN_NOT_FOUND` for 404, and so
 * on, `RUNSPAN_SERVER_ERROR` from 500. Keys and secrets that were sent are not in it, though a service may repeat them.
 */
export class ApiError extends RunspanError {
  override readonly name: string = 'ApiError';
  readonly status: number;
  /** What the service says is wrong, as text; undefined where it says nothing. */
  readonly detail: string | undefined;
  /** The list of a 422; empty for other answers. */
  readonly errors: readonly ValidationError[];
  /** The body: parsed where it is JSON, else its text. */
  readonly body: unknown;
  readonly headers: FailedAnswer['headers'];
  /** What the service calls the request, for its operators. */
  readonly requestId: string | undefined;
  readonly request: CallFacts;

  constructor(request: CallFacts, answer: FailedAnswer) {
    const body = parsed(answer.text);
    const errors = validationErrorsOf(body);
    const detail = errors.length > 0 ? errors.map(validationText).join('; ') : detailOf(body);
    const shown = detail === undefined ? advice(answer.status) : cut(oneLine(detail), DETAIL_MAX);
    super(codeOf(answer.status), `[${request.method}] "${request.url}": ${answer.status}${shown && ` ${shown}`}`);
    this.status = answer.status;
    this.detail = detail;
    this.errors = errors;
    this.body = body;
    this.headers = answer.headers;
    this.requestId = requestIdOf(answer.headers);
    this.request = request;
    quiet(this, ['headers', 'body', 'errors', 'detail']);
  }
}

/** An answer came, and is not what it should be: no JSON, or longer than is read. */
export class InvalidAnswerError extends RunspanError {
  override readonly name: string = 'InvalidAnswerError';
  readonly status: number;
  readonly requestId: string | undefined;
  readonly request: CallFacts;

  constructor(request: CallFacts, answer: Omit<FailedAnswer, 'text'>, problem: string, options?: ErrorOptions) {
    super(
      'RUNSPAN_INVALID_ANSWER',
      `[${request.method}] "${request.url}": ${answer.status}, but the answer ${problem}`,
      options,
    );
    this.status = answer.status;
    this.requestId = requestIdOf(answer.headers);
    this.request = request;
  }
}

/** No answer came: the service cannot be reached, or the connection broke. */
export class ConnectionError extends RunspanError {
  override readonly name: string = 'ConnectionError';
  /** Whether the service may have taken the call all the same. */
  readonly mayHaveArrived: boolean;
  readonly request: CallFacts;

  constructor(request: CallFacts, problem: string, mayHaveArrived: boolean) {
    super('RUNSPAN_NO_ANSWER', `[${request.method}] "${request.url}": ${problem}`);
    this.mayHaveArrived = mayHaveArrived;
    this.request = request;
  }
}

/** The time for a call is over. The service may have taken it, or may still do so. */
export class TimeoutError extends RunspanError {
  override readonly name: string = 'TimeoutError';
  readonly request: CallFacts;

  constructor(request: CallFacts, timeoutMs: number, options?: ErrorOptions) {
    super('RUNSPAN_TIMEOUT', `[${request.method}] "${request.url}": no answer within ${timeoutMs} ms`, options);
    this.request = request;
  }
}

/** What the service calls a request, by its answer. */
export function requestIdOf(headers: FailedAnswer['headers']): string | undefined {
  const id = headers['x-request-id'];
  return typeof id === 'string' ? id : undefined;
}

function codeOf(status: number): ErrorCode {
  return CODES[status] ?? (status >= 500 ? 'RUNSPAN_SERVER_ERROR' : 'RUNSPAN_UNEXPECTED_STATUS');
}

/** The text under the names that services use, or a body that is text alone. Markup is left to `body`. */
function detailOf(body: unknown, depthMax = 3): string | undefined {
  if (typeof body === 'string') return body === '' || /^\s*</.test(body) ? undefined : body;
  if (typeof body !== 'object' || body === null) return undefined;
  const { detail, message, error } = body as Record<string, unknown>;
  for (const text of [detail, message, error]) {
    if (typeof text === 'string' && text !== '') return text;
    if (typeof text === 'object' && text !== null && depthMax > 0) return detailOf(text, depthMax - 1);
  }
  return jsonOf(body);
}

/** Undefined where it is deeper than a call can go. */
function jsonOf(body: object): string | undefined {
  try {
    return JSON.stringify(body);
  } catch {
    return undefined;
  }
}

function advice(status: number): string {
  if (status >= 300 && status < 400) return '(redirects are not followed; give the address that it leads to)';
  return '';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
}

/** What the message says already is not printed again below it. */
function quiet(error: object, names: readonly string[]): void {
  for (const name of names) {
    const value = (error as Record<string, unknown>)[name];
    Object.defineProperty(error, name, { value, enumerable: false });
  }
}
