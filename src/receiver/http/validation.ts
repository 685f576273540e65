import * as v from 'valibot';
import { shown } from '../../base/text.ts';
import { isFields } from '../../payload/fields.ts';
import { HttpError, type Location, ValidationIssues } from './http-error.ts';

/** A schema whose error messages describe the expected value, for example `a UUID`. */
export type Schema<Output> = v.GenericSchema<unknown, Output>;

/**
 * Validates a value against a schema. Returns the schema's output, or undefined if the value is invalid. Adds an issue
 * for each missing or invalid field. `locate` can change the location that is reported for a field.
 */
export function validate<Output>(
  schema: Schema<Output>,
  value: unknown,
  loc: Location,
  issues: ValidationIssues,
  locate: (keys: Location) => Location = (keys) => [...loc, ...keys],
): Output | undefined {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  for (const { path, message, input } of result.issues) {
    const keys = path?.map(({ key }) => key as string | number) ?? [];
    const name = `\`${keys.join('.') || loc.at(-1)}\``;
    if (path?.at(-1)?.origin === 'key') issues.add(locate(keys), 'missing', `${name} is missing`);
    else issues.add(locate(keys), 'value', `Expected ${name} to be ${message}, got ${shown(input)}`);
  }
  return undefined;
}

/** Returns the output of a schema for a value in a request. Throws an HTTP 422 error if the value is invalid. */
export function validated<Output>(schema: Schema<Output>, value: unknown, loc: Location): Output {
  const issues = new ValidationIssues();
  const output = validate(schema, value, loc, issues);
  issues.throwIfAny();
  return output as Output;
}

/** Returns a schema that converts values with `parse`. `parse` must return undefined for an invalid value. */
export function parsed<Output>(expected: string, parse: (value: unknown) => Output | undefined): Schema<Output> {
  return v.pipe(
    v.unknown(),
    v.rawTransform(({ dataset, addIssue, NEVER }) => {
      const output = parse(dataset.value);
      if (output !== undefined) return output;
      addIssue({ message: expected });
      return NEVER;
    }),
  );
}

/** Returns the value if it is an object. Throws an HTTP 400 error for any other value. */
export function requiredObject(value: unknown, loc: Location = ['body']): Record<string, unknown> {
  if (isFields(value)) return value;
  throw new HttpError(400, `${loc.slice(1).join('.') || 'The body'} is not a JSON object`);
}

export const text: Schema<string> = v.string('a string');

const FILLED = 'a non-empty string';
export const filledText: Schema<string> = v.pipe(v.string(FILLED), v.nonEmpty(FILLED));

export const object: Schema<Record<string, unknown>> = v.custom<Record<string, unknown>>(isFields, 'an object');

/** Adds an issue for each field that the schema does not contain. */
export function checkKnownFields(
  { entries }: { readonly entries: object },
  value: object,
  loc: Location,
  issues: ValidationIssues,
): void {
  for (const field of Object.keys(value)) {
    if (!Object.hasOwn(entries, field)) issues.add([...loc, field], 'unknown_field', 'Unknown field');
  }
}

export function checkKnownParameters(
  search: URLSearchParams,
  known: readonly string[],
  issues: ValidationIssues,
): void {
  const expected = `one of ${known.join(', ')}`;
  for (const parameter of new Set(search.keys())) {
    if (!known.includes(parameter)) issues.add(['query', parameter], 'unknown_parameter', `Expected ${expected}`);
  }
}

/** Throws an HTTP 422 error if a query string contains unknown parameters. */
export function refuseUnknownParameters(search: URLSearchParams, known: readonly string[]): void {
  const issues = new ValidationIssues();
  checkKnownParameters(search, known, issues);
  issues.throwIfAny();
}

export function withoutNulls<Fields extends object>(fields: Fields): Fields {
  const copy = { ...fields };
  for (const field of Object.keys(fields) as (keyof Fields)[]) if (fields[field] === null) delete copy[field];
  return copy;
}
