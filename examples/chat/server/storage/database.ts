/** A value of a statement. */
export type SqlValue = null | number | string | Uint8Array;

export type Query = <Row>(sql: string, ...values: readonly SqlValue[]) => Promise<readonly Row[]>;

/**
 * The seam between the store and the two database engines. Statements name their values `$1`, `$2`, …, which both
 * engines accept, so the store has one text for each statement.
 */
export interface Database {
  /** An SQL expression for the current time in milliseconds. PostgreSQL uses one clock for all instances. */
  readonly nowMs: string;
  readonly query: Query;
  /** Commits if `work` resolves, and rolls back if `work` rejects. */
  transaction<Result>(work: (query: Query) => Promise<Result>): Promise<Result>;
  /** Sends a message to the listeners of all instances, including this one. In a transaction, pass its `query`. */
  notify(message: string, query?: Query): Promise<void>;
  /** Sets the function that receives messages. `undefined` means that messages may have been lost. */
  listen(onMessage: (message: string | undefined) => void): void;
  close(): Promise<void>;
}

/** A store that cannot be used. The message names the store and the reason, and contains no password. */
export class StoreError extends Error {
  override readonly name: string = 'StoreError';
}

export function unusableStore(store: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  return new StoreError(`${store} cannot be used: ${reasonOf(error)}`);
}

/** Connection errors, and a PostgreSQL server that starts, stops, is full or is a standby (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const UNAVAILABLE_CODES =
  /^(E(CONN(REFUSED|RESET|ABORTED)|PIPE|TIMEDOUT|HOST(UNREACH|DOWN)|NET(UNREACH|DOWN)|NOTFOUND|AI_AGAIN)|08...|25006|53300|57P0[123])$/;
/** Errors of the PostgreSQL client that have no code. */
const UNAVAILABLE_MESSAGES =
  /^(Connection (terminated|timeout)|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|Cannot use a pool)/;

/** Whether an error means that the store does not respond. A later attempt may succeed. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { readonly code?: unknown };
  return UNAVAILABLE_CODES.test(String(code)) || UNAVAILABLE_MESSAGES.test(error.message);
}

/** The message of an error. A connection error with several addresses has no message, but an error per address. */
export function reasonOf(error: unknown): string {
  const { message, errors, code } = error as { message?: string; errors?: readonly unknown[]; code?: string };
  if (message) return message;
  return errors?.[0] === undefined ? (code ?? String(error)) : reasonOf(errors[0]);
}
