import { cut } from '../base/text.ts';

/** Where in a request something stands, as in the `loc` of a 422 answer. */
export type Location = readonly (string | number)[];

/** One element of `detail` in a 422 answer (interface, "ValidationError"). */
export interface ValidationError {
  readonly loc: Location;
  readonly msg: string;
  readonly type: string;
}

/** What `detail` of an error answer holds: a sentence, or a list of the fields that are wrong. */
export type Detail = string | readonly ValidationError[];

/**
 * Ends a request with an error answer. It is thrown, not returned: it may come from any depth of reading, always ends
 * the whole request, and is caught at one place, in the server.
 */
export class HttpError extends Error {
  readonly status: number;
  readonly detail: Detail;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, detail: Detail, headers: Readonly<Record<string, string>> = {}) {
    super(typeof detail === 'string' ? detail : `${status}`);
    this.status = status;
    this.detail = detail;
    this.headers = headers;
  }
}

/** Told in one answer; a batch that is wrong all over is not answered with megabytes. */
const ERRORS_MAX = 100;
/** Characters of a name in `loc`. A field that no record knows may have a name of any length. */
const LOC_LENGTH_MAX = 120;

/** What is wrong with the fields of a well-formed request, collected so that one answer names everything. */
export class ValidationIssues {
  readonly #errors: ValidationError[] = [];

  add(loc: Location, type: string, msg: string): void {
    if (this.#errors.length >= ERRORS_MAX) return;
    const names = loc.map((name) => (typeof name === 'string' ? cut(name, LOC_LENGTH_MAX) : name));
    this.#errors.push({ loc: names, msg, type });
  }

  /** The message of the first issue. */
  get first(): string | undefined {
    return this.#errors[0]?.msg;
  }

  /** Ends the request with 422 if anything was found. */
  throwIfAny(): void {
    if (this.#errors.length > 0) throw new HttpError(422, this.#errors);
  }
}
