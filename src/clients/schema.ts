import * as v from 'valibot';
import { isObject, wholeFrom } from '../config/checker.ts';
import type { BodySchema } from './body.ts';
import { InvalidRequestError, type ValidationError } from './errors.ts';

export type Schema<Value> = v.GenericSchema<Value>;

type RequiredKeys<T> = { [Key in keyof T]-?: Record<never, never> extends Pick<T, Key> ? never : Key }[keyof T];
type FieldSchemas<T> = { readonly [Key in keyof T]-?: Schema<NonNullable<T[Key]>> };
type RequiredFields<T> = FieldSchemas<Pick<T, RequiredKeys<T>>>;
type OptionalFields<T> = FieldSchemas<Omit<T, RequiredKeys<T>>>;

/**
 * Returns a schema that validates the required fields of an interface, and the given optional fields, which may be
 * null. Newer services may support more fields, so the service validates all other fields. Field names in camel case
 * are rejected, because the service would ignore them.
 */
export function required<T extends object>(
  needed: RequiredFields<T>,
  optional: Partial<OptionalFields<T>> = {},
): Schema<T> {
  return v.pipe(
    RECORD,
    v.looseObject(entriesOf(needed, optional)),
    rule((body) => {
      const names = Object.keys(body).filter((name) => body[name] !== undefined && wireNameOf(name) !== name);
      return names.map((name) => [`Expected the name ${wireNameOf(name)}`, name]);
    }),
  ) as unknown as Schema<T>;
}

/** Creates a validation rule that involves several fields. */
export function rule<T extends object>(
  breaches: (body: Readonly<Record<string, unknown>>) => readonly Breach[],
): v.RawCheckAction<T> {
  return v.rawCheck(({ dataset, addIssue }) => {
    for (const [message, ...path] of breaches((dataset.value ?? {}) as Record<string, unknown>))
      addIssue({ message, path: issuePath(path) });
  });
}

export type Breach = readonly [message: string, ...path: Path];

export type Path = readonly (string | number)[];

/** Converts a name from camel case to snake case. */
export function wireNameOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * Returns a schema that validates all fields of an interface and rejects unknown fields. Optional fields may be null.
 * The code compiles only if `needed` and `optional` match the interface.
 */
export function strictRequest<T extends object>(needed: RequiredFields<T>, optional: OptionalFields<T>): Schema<T> {
  const unknownField = v.undefined('Unknown field, or a field that this request cannot set');
  return v.pipe(RECORD, v.objectWithRest(entriesOf(needed, optional), unknownField)) as unknown as Schema<T>;
}

function entriesOf(needed: object, optional: Readonly<Record<string, unknown>>): v.ObjectEntries {
  const nullable = Object.entries(optional as v.ObjectEntries).map(([name, field]) => [name, v.nullish(field)]);
  // Without a null prototype, valibot would find inherited fields such as `toString`.
  return Object.assign(Object.create(null), needed, Object.fromEntries(nullable));
}

/** Parses a value. Returns the parsed value or a list of errors. Each error's path starts with `place`. */
export function parseRequest(
  schema: BodySchema,
  value: unknown,
  place: Path,
): { readonly value: unknown; readonly errors: readonly ValidationError[] } {
  const { success, output, issues } = v.safeParse(schema as v.GenericSchema, value);
  return { value: success ? output : value, errors: issues?.map((issue) => errorOf(issue, place)) ?? [] };
}

/** Throws an InvalidRequestError if an argument is not an object. */
export function checkObject(call: string, name: string, given: unknown): void {
  if (!isObject(given))
    throw new InvalidRequestError(call, [{ loc: [name], msg: 'Expected an object', type: 'object' }]);
}

function issuePath(keys: Path): [v.IssuePathItem, ...v.IssuePathItem[]] {
  const items = keys.map((key) => ({ type: 'unknown', origin: 'value', input: undefined, key, value: undefined }));
  return items as unknown as [v.IssuePathItem, ...v.IssuePathItem[]];
}

function errorOf({ path, message, type, input }: v.BaseIssue<unknown>, place: ValidationError['loc']) {
  const keys = (path ?? []).map(({ key }) => (typeof key === 'number' ? key : String(key)));
  const loc = [...place, ...keys];
  const isMissing = input === undefined && keys.length > 0 && type !== 'raw_check';
  return isMissing ? { loc, msg: 'Field required', type: 'missing' } : { loc, msg: message, type: 'value_error' };
}

export const TEXT: Schema<string> = value('a non-empty string', (text) => typeof text === 'string' && text !== '');
export const TEXTS: Schema<string[]> = listSchema(TEXT);
export const TRUE_OR_FALSE: Schema<boolean> = v.boolean('Expected true or false');
const UUID_FORMAT = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
export const UUID: Schema<string> = v.custom(isUuid, 'Expected a UUID');
export const RECORD: Schema<Record<string, unknown>> = v.custom(isObject, 'Expected an object');
/** Schema for a request body whose fields the client does not validate. */
export const BODY: Schema<object> = required<object>({});
/** Schema for a field that the client does not validate. */
export const ANY: Schema<never> = v.unknown() as Schema<never>;

export function isUuid(value: unknown): value is string {
  return typeof value === 'string' && UUID_FORMAT.test(value);
}

/** Returns an object that maps each field name to the same schema. */
export function each<const Name extends string, T>(
  schema: Schema<T>,
  ...names: readonly Name[]
): Record<Name, Schema<T>> {
  return Object.fromEntries(names.map((name) => [name, schema])) as Record<Name, Schema<T>>;
}

export function listSchema<T>(item: Schema<T>, least = 0): Schema<T[]> {
  const message = `Expected a ${least > 0 ? 'non-empty ' : ''}list`;
  return v.pipe(v.array(item, message), v.minLength(least, message));
}

export function both(one: BodySchema, other: BodySchema): BodySchema {
  return v.pipe(one as v.GenericSchema, other as v.GenericSchema);
}

export function oneOf<const Word extends string>(...words: readonly Word[]): Schema<Word> {
  return v.picklist(words, `Expected one of ${words.join(', ')}`);
}

export function whole(least: number, most?: number): Schema<number> {
  const [range, holds] = wholeFrom(least, most);
  return value(most ? range : `a whole number, at least ${least}`, holds);
}

/**
 * Returns a schema that accepts values for which `holds` returns true. In the error message, `expected` follows the
 * word "Expected".
 */
export function value<T>(expected: string, holds: (value: unknown) => boolean): Schema<T> {
  return v.custom<T>(holds, `Expected ${expected}`);
}
