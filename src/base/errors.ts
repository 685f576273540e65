/**
 * Every error code of the package with the condition that raises it. `docs/errors.md` lists the same table; a test
 * keeps the two equal.
 */
export const errorCodes = {
  RUNSPAN_INVALID_OPTION: 'An option has the wrong type or a value out of its bounds.',
  RUNSPAN_RUN_NOT_FOUND: 'A recorder was asked for the run of a name, and has none or more than one.',
  RUNSPAN_ADDRESS_IN_USE: 'The receiver cannot listen, because another program holds the port.',
  RUNSPAN_LISTEN_FAILED: 'The receiver cannot listen on the given host and port.',
  RUNSPAN_SQLITE_MISSING: 'There is no SQLite that a store could use.',
  RUNSPAN_STORE_IN_USE: 'The file of a store is open in another process.',
  RUNSPAN_STORE_INVALID: 'The file is no store, is one of a later version, or is damaged.',
  RUNSPAN_STORE_FAILED: 'A store cannot be opened, read or written.',
  RUNSPAN_INVALID_REQUEST: 'A call of a client breaks a rule of the interface; nothing was sent.',
  RUNSPAN_BAD_REQUEST: 'A service has answered a call with 400.',
  RUNSPAN_UNAUTHENTICATED: 'A service has answered a call with 401.',
  RUNSPAN_FORBIDDEN: 'A service has answered a call with 403.',
  RUNSPAN_NOT_FOUND: 'A service has answered a call with 404.',
  RUNSPAN_CONFLICT: 'A service has answered a call with 409.',
  RUNSPAN_UNPROCESSABLE: 'A service has answered a call with 422.',
  RUNSPAN_RATE_LIMITED: 'A service has answered a call with 429, and so the further attempts.',
  RUNSPAN_SERVER_ERROR: 'A service has answered a call with a status from 500.',
  RUNSPAN_UNEXPECTED_STATUS:
    'A service has answered a call with another status that is no success, a redirect for example.',
  RUNSPAN_INVALID_ANSWER: 'A service has answered a call with what is no JSON, or too long.',
  RUNSPAN_NO_ANSWER: 'A service cannot be reached, or the connection broke before it had answered a call.',
  RUNSPAN_TIMEOUT: 'The time for a call, or for what it waits for, is over.',
  RUNSPAN_STREAM_BROKEN: 'A stream of events ended before its run did.',
  RUNSPAN_COMMAND_REFUSED: 'A service has answered a command to a thread with an error.',
  RUNSPAN_RUN_FAILED: 'The run of an agent ended with an error.',
  RUNSPAN_REVISION_FAILED: 'A revision that is waited for will not be deployed: it failed, was skipped or interrupted.',
  RUNSPAN_REVISION_SUPERSEDED: 'A revision that is waited for has been replaced by a later one.',
  RUNSPAN_NO_FEEDBACK_ADDRESS: 'The stream of a run has ended, or was left, without addresses for feedback.',
  RUNSPAN_FEEDBACK_REFUSED: 'The address for feedback is unknown or has expired, or it takes no such feedback.',
} as const;

export type ErrorCode = keyof typeof errorCodes;

/**
 * The one base class of what runspan throws. Tracing itself never throws; the receiver, the clients and the test kit
 * do. `code` is stable across versions, the message is not; `cause` holds the error underneath, where there is one.
 */
export class RunspanError extends Error {
  override readonly name: string = 'RunspanError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
