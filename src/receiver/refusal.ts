/** One element of `detail` in a 422 answer (interface, "ValidationError"). */
export interface ValidationError {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

/** What `detail` of an error answer holds: a sentence, or a list of the fields that are wrong. */
export type Detail = string | readonly ValidationError[];

/**
 * Ends a request with an error answer. It is thrown, not returned: it may come from any depth of reading, always ends
 * the whole request, and is caught at one place, in the server.
 */
export class Refusal extends Error {
  readonly status: number;
  readonly detail: Detail;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, detail: Detail, headers: Readonly<Record<string, string>> = {}) {
    super(`${status}`);
    this.status = status;
    this.detail = detail;
    this.headers = headers;
  }
}
