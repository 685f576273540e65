/** A value that can be bound to a statement. */
export type SqlValue = null | number | string | Uint8Array;

export type Query = <Row>(sql: string, ...values: readonly SqlValue[]) => Promise<readonly Row[]>;

/**
 * The interface between the store and the two database engines. Both engines accept the parameter names `$1`, `$2`, …,
 * so the store needs only one text for each statement.
 */
export interface Database {
  /** SQL expression for the current time in milliseconds. With PostgreSQL, all instances use the server's clock. */
  readonly nowMs: string;
  readonly query: Query;
  /** Runs `work` in a transaction. Commits if `work` resolves, and rolls back if it rejects. */
  transaction<Result>(work: (query: Query) => Promise<Result>): Promise<Result>;
  /**
   * Sends a message to the listeners on all instances, including this one. Within a transaction, pass the transaction's
   * `query`.
   */
  notify(message: string, query?: Query): Promise<void>;
  /** Sets the function that is called with each message, or with `undefined` if messages may have been lost. */
  listen(onMessage: (message: string | undefined) => void): void;
  close(): Promise<void>;
}

/** The store cannot be used. The message names the store and the reason, and contains no password. */
export class StoreError extends Error {
  override readonly name: string = 'StoreError';
}

export function unusableStore(store: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  return new StoreError(`${store} cannot be used: ${reasonOf(error)}`);
}

/**
 * Matches codes of connection errors, and of a PostgreSQL server that is starting, stopping, full or a standby
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 */
const UNAVAILABLE_CODES =
  /^(E(CONN(REFUSED|RESET|ABORTED)|PIPE|TIMEDOUT|HOST(UNREACH|DOWN)|NET(UNREACH|DOWN)|NOTFOUND|AI_AGAIN)|08...|25006|53300|57P0[123])$/;
/** Errors of the database clients that have no code. */
const UNAVAILABLE_MESSAGES =
  /^(Connection (terminated|timeout)|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|Cannot use a pool|database is not open)/;

/** Whether an error means that the store is currently unavailable, so that a later attempt may succeed. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { readonly code?: unknown };
  return UNAVAILABLE_CODES.test(String(code)) || UNAVAILABLE_MESSAGES.test(error.message);
}

/**
 * Returns the message of an error. If a host has several addresses, a connection error has no message itself but
 * contains an error for each address.
 */
export function reasonOf(error: unknown): string {
  const { message, errors, code } = error as { message?: string; errors?: readonly unknown[]; code?: string };
  if (message) return message;
  return errors?.[0] === undefined ? (code ?? String(error)) : reasonOf(errors[0]);
}
