import { shareInstances } from './shared.ts';

/** A description of each error code. A test compares the descriptions with `docs/errors.md`. */
export const errorCodes = {
  RUNSPAN_INVALID_OPTION: 'An option has the wrong type or an out-of-range value.',
  RUNSPAN_RUN_NOT_FOUND: 'The recorder has no run with this name, or more than one.',
  RUNSPAN_REPLAY_MISMATCH: 'A replayed program makes other model calls than the recorded ones.',
  RUNSPAN_REPLAY_FAILED: 'A replayed program records no such trace, or takes too long.',
  RUNSPAN_SET_FAILED: 'A case of a set has failed, or nothing was judged.',
  RUNSPAN_ADDRESS_IN_USE: 'The receiver cannot listen because another program uses the port.',
  RUNSPAN_LISTEN_FAILED: 'The receiver cannot listen on the given host and port.',
  RUNSPAN_SQLITE_MISSING: 'The store requires SQLite, which is not available.',
  RUNSPAN_STORE_IN_USE: 'The store file is open in another process.',
  RUNSPAN_STORE_INVALID: 'The file is not a runspan store, is damaged, or was written by a later version.',
  RUNSPAN_STORE_FAILED: 'The store cannot be opened, read or written.',
  RUNSPAN_INVALID_REQUEST: 'The arguments of a client call are invalid. No request was sent.',
  RUNSPAN_BAD_REQUEST: 'The service responded with 400.',
  RUNSPAN_UNAUTHENTICATED: 'The service responded with 401.',
  RUNSPAN_FORBIDDEN: 'The service responded with 403.',
  RUNSPAN_NOT_FOUND: 'The service responded with 404.',
  RUNSPAN_CONFLICT: 'The service responded with 409.',
  RUNSPAN_UNPROCESSABLE: 'The service responded with 422.',
  RUNSPAN_RATE_LIMITED: 'The service responded with 429 to the request and to all retries.',
  RUNSPAN_SERVER_ERROR: 'The service responded with a 5xx status.',
  RUNSPAN_UNEXPECTED_STATUS: 'The service responded with another unsuccessful status, for example a redirect.',
  RUNSPAN_INVALID_RESPONSE: 'The response is not JSON, or is too long.',
  RUNSPAN_NO_RESPONSE: 'The service cannot be reached, or the connection broke before the response.',
  RUNSPAN_TIMEOUT: 'A call or a wait took longer than its timeout.',
  RUNSPAN_STREAM_BROKEN: 'An event stream ended before its run ended.',
  RUNSPAN_RUN_FAILED: 'The agent run ended with an error.',
  RUNSPAN_REVISION_FAILED: 'The awaited revision will not be deployed: it failed, was skipped or was interrupted.',
  RUNSPAN_REVISION_SUPERSEDED: 'The awaited revision was replaced by a later one.',
  RUNSPAN_NO_FEEDBACK_ADDRESS: 'The run stream ended or was cancelled before feedback URLs arrived.',
  RUNSPAN_FEEDBACK_REFUSED: 'The feedback URL is unknown, has expired, or does not accept this feedback.',
} as const;

/** An error code, as listed in `errorCodes`. */
export type ErrorCode = keyof typeof errorCodes;

/**
 * Base class of all errors that the receiver, the clients and the test kit throw. Tracing never throws. Error codes are
 * stable across versions, but messages may change. `cause` is the underlying error, if any.
 */
export class RunspanError extends Error {
  override readonly name: string = 'RunspanError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

shareInstances({ RunspanError });
