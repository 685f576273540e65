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

/** Errors of connections that were tried at several addresses have no message of their own. */
function reasonOf(error: unknown): string {
  const { message, errors, code } = error as {
    readonly message?: string;
    readonly errors?: readonly unknown[];
    readonly code?: string;
  };
  if (message) return message;
  return errors?.[0] === undefined ? (code ?? String(error)) : reasonOf(errors[0]);
}
