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
