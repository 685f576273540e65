import { isObject } from '../base/options.ts';
import { controlPlaneFields, type Field, type Fields, type ResourceName } from './control-plane-fields.ts';
import { nearestName } from './nearest-name.ts';
import { isUuid } from './uuid.ts';
import { InvalidRequestError, type ValidationError } from './validation-error.ts';

/** Where something is in a request. */
export type Place = readonly (string | number)[];

export type CheckMode = 'create' | 'patch';

const FORMS: Readonly<Record<NonNullable<Field['form']>, readonly [pattern: RegExp, words: string]>> = {
  'DNS label': [/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'a DNS label: up to 63 lower-case letters, digits and hyphens'],
  'C identifier': [/^[A-Za-z_][A-Za-z0-9_]*$/, 'a C identifier: letters, digits and underscores, no digit first'],
};

/** Whether a field is given: null is as good as left out. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** What of a resource breaks the tables, field by field. */
export function resourceErrors(
  resource: ResourceName,
  value: unknown,
  place: Place,
  mode: CheckMode,
): ValidationError[] {
  if (!isObject(value)) return [mistake(place, 'Expected an object', 'dict_type')];
  const fields = controlPlaneFields[resource];
  const given = Object.entries(value).filter(([, one]) => one !== undefined);
  return [
    ...given.flatMap(([name, one]) => namedErrors(fields, name, one, [...place, name], mode)),
    ...Object.entries(fields).flatMap(([name, field]) =>
      isMissing(field, value[name], place, mode) ? [mistake([...place, name], 'Field required', 'missing')] : [],
    ),
  ];
}

export function uuidErrors(value: unknown, place: Place): ValidationError[] {
  return isUuid(value) ? [] : [mistake(place, 'Expected a UUID', 'uuid_parsing')];
}

export function mistake(place: Place, msg: string, type = 'value_error'): ValidationError {
  return { loc: place, msg, type };
}

/** Throws an InvalidRequestError for what is looked at, but not sent. */
export function checkRecord(call: string, name: string, value: unknown): void {
  if (!isObject(value)) throw new InvalidRequestError(call, [mistake([name], 'Expected an object', 'dict_type')]);
}

function namedErrors(fields: Fields, name: string, value: unknown, place: Place, mode: CheckMode): ValidationError[] {
  const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (field === undefined) {
    const nearest = nearestName(name, Object.keys(fields));
    const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`;
    return [mistake(place, `Unknown field${hint}`, 'extra_forbidden')];
  }
  if (value === null && (field.nullable || isLeftAsItIs(place.slice(0, -1), mode))) return [];
  if (field.readOnly) return [mistake(place, 'Read-only: the service sets it')];
  if (field.immutable && mode === 'patch') return [mistake(place, 'Cannot be changed')];
  if (field.patchOnly && mode === 'create') return [mistake(place, 'Only for an update')];
  if (!field.list) return valueErrors(field, value, place, mode);
  if (!Array.isArray(value)) return [mistake(place, 'Expected a list', 'list_type')];
  return value.flatMap((item, index) => valueErrors(field, item, [...place, index], mode));
}

function valueErrors(field: Field, value: unknown, place: Place, mode: CheckMode): ValidationError[] {
  const { type } = field;
  if (type === 'uuid') return uuidErrors(value, place);
  if (type === 'map') return mapErrors(value, place);
  if (type === 'object') return isObject(value) ? [] : [mistake(place, 'Expected an object', 'dict_type')];
  if (type === 'boolean')
    return typeof value === 'boolean' ? [] : [mistake(place, 'Expected true or false', 'bool_type')];
  if (type === 'integer') return Number.isInteger(value) ? [] : [mistake(place, 'Expected a whole number', 'int_type')];
  if (type === 'number') return numberErrors(field, value, place);
  if (type === 'string' || type === 'date-time') return textErrors(field, value, place);
  return resourceErrors(type, value, place, mode);
}

function numberErrors({ min, max }: Field, value: unknown, place: Place): ValidationError[] {
  if (typeof value !== 'number' || !Number.isFinite(value)) return [mistake(place, 'Expected a number', 'float_type')];
  // Before it is rounded: a service may look at either.
  if (min !== undefined && value < min) return [mistake(place, `Expected at least ${min}`, 'greater_than_equal')];
  if (max !== undefined && value > max) return [mistake(place, `Expected at most ${max}`, 'less_than_equal')];
  return [];
}

function textErrors({ values, form }: Field, value: unknown, place: Place): ValidationError[] {
  if (typeof value !== 'string') return [mistake(place, 'Expected text', 'string_type')];
  if (values !== undefined && !values.includes(value)) {
    return [mistake(place, `Expected one of ${values.join(', ')}`, 'enum')];
  }
  const [pattern, words] = form === undefined ? [] : FORMS[form];
  return pattern === undefined || pattern.test(value)
    ? []
    : [mistake(place, `Expected ${words}`, 'string_pattern_mismatch')];
}

function mapErrors(value: unknown, place: Place): ValidationError[] {
  if (!isObject(value)) return [mistake(place, 'Expected an object of names and texts', 'dict_type')];
  return Object.entries(value).flatMap(([name, text]) =>
    typeof text === 'string' || text === undefined ? [] : [mistake([...place, name], 'Expected text', 'string_type')],
  );
}

function isMissing(field: Field, value: unknown, place: Place, mode: CheckMode): boolean {
  if (!field.required || field.readOnly || field.default !== undefined) return false;
  return value === undefined && !isLeftAsItIs(place, mode);
}

/** Whether fields that are left out, or null, stay as they are: those of the body of a PATCH itself. */
function isLeftAsItIs(place: Place, mode: CheckMode): boolean {
  return mode === 'patch' && place.length === 1;
}
