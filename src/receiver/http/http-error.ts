import { cut } from '../../base/text.ts';
import { StoreError } from '../store/store.ts';

/** Path to a field in a request, as in `loc` of a 422 response. */
export type Location = readonly (string | number)[];

/** An invalid field in the `detail` list of a 422 response. */
interface ValidationError {
  readonly loc: Location;
  readonly msg: string;
  readonly type: string;
}

/** `detail` of an error response: a message or a list of invalid fields. */
type Detail = string | readonly ValidationError[];

/** An error that the receiver sends to the client as an error response. */
export class HttpError extends Error {
  readonly status: number;
  readonly detail: Detail;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, detail: Detail, headers: Readonly<Record<string, string>> = {}) {
    super(typeof detail === 'string' ? detail : detail.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; '));
    this.status = status;
    this.detail = detail;
    this.headers = headers;
  }
}

const STORE_STATUS = { busy: 429, unavailable: 503, too_large: 413 };

/** Converts an error to an HttpError if the client should see it. Returns undefined for internal errors. */
export function toHttpError(error: unknown): HttpError | undefined {
  if (error instanceof HttpError) return error;
  if (!(error instanceof StoreError)) return undefined;
  const { reason, message, retryAfterS } = error;
  const headers = retryAfterS === undefined ? {} : { 'retry-after': `${retryAfterS}` };
  return new HttpError(STORE_STATUS[reason], message, headers);
}

const ERRORS_MAX = 100;
/** Maximum length of a field name in `loc`. Clients can send unknown fields with names of any length. */
const LOC_LENGTH_MAX = 120;

/** Collects the invalid fields in a request, so that one response can report all of them. */
export class ValidationIssues {
  readonly #errors: ValidationError[] = [];

  add(loc: Location, type: string, msg: string): void {
    if (this.#errors.length >= ERRORS_MAX) return;
    const names = loc.map((name) => (typeof name === 'string' ? cut(name, LOC_LENGTH_MAX) : name));
    this.#errors.push({ loc: names, msg, type });
  }

  get first(): string | undefined {
    return this.#errors[0]?.msg;
  }

  throwIfAny(): void {
    if (this.#errors.length > 0) throw new HttpError(422, this.#errors);
  }
}
