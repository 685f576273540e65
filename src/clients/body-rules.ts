import { type Check, isObject } from '../base/options.ts';
import { isUuid } from './uuid.ts';
import { InvalidRequestError, type ValidationError } from './validation-error.ts';

/** What a field of a body has to be, and whether it has to be there. */
export type BodyRule = readonly [expected: Check[0], holds: Check[1], kind?: Check[2] | 'required'];

/** A rule for each field of a body. */
export type BodyRules<Body> = { readonly [Field in keyof Body]-?: BodyRule };

/**
 * The fields of a body that are there. An InvalidRequestError tells of each that breaks its rule. Fields that have none pass: a
 * later service may know them; but one that is known under another spelling, `assistantId` for `assistant_id`, is a mistake.
 */
export function checkedBody<Body extends object>(
  call: string,
  body: Body,
  rules: BodyRules<Body>,
): Record<string, unknown> {
  const errors = bodyErrors(['body'], body, rules);
  if (errors.length > 0) throw new InvalidRequestError(call, errors);
  return definedOf(body);
}

/** The mistakes of a body that stands at this place of a request. */
export function bodyErrors<Body extends object>(
  place: readonly (string | number)[],
  body: Body,
  rules: BodyRules<Body>,
): ValidationError[] {
  if (!isObject(body)) return [{ loc: place, msg: 'Expected an object', type: 'dict_type' }];
  const errors = Object.entries(definedOf(body)).flatMap(([field, value]): ValidationError[] => {
    const loc = [...place, field];
    const rule = ruleOf(rules, field);
    if (rule !== undefined) return rule[1](value) ? [] : [{ loc, msg: `Expected ${rule[0]}`, type: 'value_error' }];
    const wireName = field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const isMisspelt = wireName !== field && ruleOf(rules, wireName) !== undefined;
    return isMisspelt ? [{ loc, msg: `Expected it to be written ${wireName}`, type: 'extra_forbidden' }] : [];
  });
  for (const [field, rule] of Object.entries<BodyRule>(rules)) {
    if (rule[2] === 'required' && (body as Record<string, unknown>)[field] === undefined)
      errors.push({ loc: [...place, field], msg: 'Field required', type: 'missing' });
  }
  return errors;
}

/**
 * Throws an InvalidRequestError where an id of a path is none. An empty one would lead to another path, and so would dots: proxies
 * take `%2E%2E` for the `..` that it stands for (RFC 3986, 6.2.2.2).
 */
export function checkIds(call: string, ids: Readonly<Record<string, unknown>>): void {
  const errors = Object.entries(ids).flatMap(([name, id]): ValidationError[] =>
    isText(id) && id !== '.' && id !== '..'
      ? []
      : [{ loc: ['path', name], msg: 'Expected text that is not empty, nor . or ..', type: 'value_error' }],
  );
  if (errors.length > 0) throw new InvalidRequestError(call, errors);
}

function definedOf(body: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

function ruleOf(rules: object, field: string): BodyRule | undefined {
  return Object.hasOwn(rules, field) ? (rules as Record<string, BodyRule>)[field] : undefined;
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);

/** Checks that many fields share. */
export const ANYTHING: Check = ['anything', () => true];
export const TEXT: Check = ['text that is not empty', isText];
export const TEXTS: Check = ['a list of texts that are not empty', isTexts];
export const TRUTH: Check = ['true or false', (value) => typeof value === 'boolean'];
export const OBJECT: Check = ['an object', isObject];
export const OBJECT_OR_NULL: Check = ['an object or null', (value) => value === null || isObject(value)];
export const UUID: Check = ['a UUID', isUuid];
export const UUIDS: Check = ['a list of UUIDs', (value) => Array.isArray(value) && value.every(UUID[1])];
export const TIME_OR_NULL: Check = [
  'a time as ISO 8601 has it, or null',
  (value) => value === null || (typeof value === 'string' && !Number.isNaN(Date.parse(value))),
];

/** One of these words. */
export function oneOf(...words: readonly string[]): Check {
  return [`one of ${words.join(', ')}`, (value) => typeof value === 'string' && words.includes(value)];
}

/** One of these words, or a list of them. */
export function someOf(...words: readonly string[]): Check {
  const isWord = (value: unknown): boolean => typeof value === 'string' && words.includes(value);
  return [`one or a list of ${words.join(', ')}`, (value) => (Array.isArray(value) ? value : [value]).every(isWord)];
}

/** The same, where it has to be there. */
export function required([expected, holds]: Check): BodyRule {
  return [expected, holds, 'required'];
}
