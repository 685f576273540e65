/** The address of a store without what is secret in it, for messages. */
export function placeOf(address: string): string {
  try {
    const { protocol, host, pathname } = new URL(address);
    return `${protocol}//${host}${pathname}`;
  } catch {
    return `${address.split(':')[0]}:…`;
  }
}

/** Already says which store cannot be used. */
export class StoreError extends Error {
  override readonly name: string = 'StoreError';
}

/** The error of a store that cannot be used, and why; nothing of what it was made of is kept, since that may hold the address. */
export function unusable(store: string, place: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  return new StoreError(`${store} at ${place} cannot be used: ${reasonOf(error)}`);
}

/** Of connections that fail, and of a PostgreSQL that starts, ends, is full or is a standby (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const CODES_AWAY =
  /^(E(CONN(REFUSED|RESET|ABORTED)|PIPE|TIMEDOUT|HOST(UNREACH|DOWN)|NET(UNREACH|DOWN)|NOTFOUND|AI_AGAIN)|08...|25006|53300|57P0[123])$/;
/** What the clients of PostgreSQL and Redis say without a code. */
const MESSAGES_AWAY =
  /^(Connection (terminated|timeout)|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|The client is offline|Socket (closed|timeout)|Disconnects client|LOADING |READONLY |MASTERDOWN |Cannot use a pool|The client is closed)/;

/** What is told of it to those who cannot change that. */
export const STORE_AWAY = 'The store does not answer; try again.';

/** Whether a store does not answer, which is its own matter: what was asked of it can be tried again. */
export function isAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return CODES_AWAY.test(String((error as { readonly code?: unknown }).code)) || MESSAGES_AWAY.test(error.message);
}

/** Why a store cannot be used. Errors of connections that were tried at several addresses have no message of their own. */
export function reasonOf(error: unknown): string {
  const { message, errors, code } = error as {
    readonly message?: string;
    readonly errors?: readonly unknown[];
    readonly code?: string;
  };
  if (message) return message;
  return errors?.[0] === undefined ? (code ?? String(error)) : reasonOf(errors[0]);
}
