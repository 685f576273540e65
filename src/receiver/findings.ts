import { Refusal, type ValidationError } from './refusal.ts';

/** Where in a request something stands, as in the `loc` of a 422 answer. */
export type Location = readonly (string | number)[];

/** Told in one answer; a batch that is wrong all over is not answered with megabytes. */
const ERRORS_MAX = 100;

/** What is wrong with the fields of a well-formed request, collected so that one answer names everything. */
export class Findings {
  readonly #errors: ValidationError[] = [];

  add(loc: Location, type: string, msg: string): void {
    if (this.#errors.length < ERRORS_MAX) this.#errors.push({ loc, msg, type });
  }

  /** Ends the request with 422 if anything was found. */
  refuseIfAny(): void {
    if (this.#errors.length > 0) throw new Refusal(422, this.#errors);
  }
}

/** A value as messages show it: text in quotes, cut; of anything else only the kind, so that no payload is repeated. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  return typeof value === 'number' ? `the number ${value}` : String(value);
}
