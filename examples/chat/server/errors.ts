import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { secretPatterns } from 'runspan';
import { isUnavailable, reasonOf } from './storage/database.ts';

/** A mistake in a request, in the format of the interface. */
export interface Problem {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

/** The chat refuses a request. The client receives the error's code and message. */
export class RequestError extends Error {
  override readonly name: string = 'RequestError';
  readonly code: string;
  readonly status: ContentfulStatusCode;
  readonly problems: readonly Problem[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: string,
    message: string,
    status: ContentfulStatusCode = 422,
    problems?: readonly Problem[],
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.code = code;
    this.status = status;
    this.problems = problems;
    this.headers = status === 503 ? { 'retry-after': '5' } : headers;
  }

  /** Body of the error response. Clients of the protocol read `message`, clients of the interface read `detail`. */
  get body(): object {
    return { error: this.code, message: this.message, detail: this.problems ?? this.message };
  }
}

/** Returns the error for a path that does not accept the method. */
export function methodError(path: string, method: string, allowed: readonly string[]): RequestError {
  const methods = allowed.join(', ');
  // Another hook of the same name expects the server to create threads.
  const hint = `${method} ${path}` === 'POST /api/threads' ? ' In React, use `useStream` of @langchain/react.' : '';
  const message = `${path} accepts ${methods}, not ${method}.${hint}`;
  return new RequestError('method_not_allowed', message, 405, undefined, { allow: methods });
}

export function closingError(): RequestError {
  return new RequestError('unavailable', 'The server is shutting down. Try again later.', 503);
}

const KEYS = secretPatterns.map((pattern) => new RegExp(pattern, `${pattern.flags}g`));

/** Masks text that looks like a key. Providers sometimes repeat a key of theirs in an error. */
export function withoutKeys(text: string): string {
  return KEYS.reduce((rest, pattern) => rest.replace(pattern, '[Redacted]'), text);
}

/** Returns the error for the client. An unexpected error is logged, and the client does not receive its message. */
export function toRequestError(error: unknown, request: string, log: (line: string) => void): RequestError {
  if (error instanceof RequestError) return error;
  if (isUnavailable(error)) {
    log(`${request}: the store does not respond: ${reasonOf(error)}`);
    return new RequestError('unavailable', 'The store does not respond. Try again later.', 503);
  }
  log(`${request}: ${(error as Error).stack ?? error}`);
  return new RequestError('unknown_error', 'The request failed. See the log of the server.', 500);
}
