import { inspect } from 'node:util';
import { isObject } from '../base/options.ts';
import { SecretNames } from '../payload/secret-names.ts';
import { MASK } from './secrets.ts';

const secretNames = new SecretNames([], true);

/**
 * Matches short words and numbers such as `true`, `prod` and `8080`. They are settings, and masking them would make
 * errors unreadable.
 */
const PLAIN_SETTING = /^(?:[a-z]{1,7}|\d{1,7})$/i;

/**
 * Returns the secret values of a request, except short words and numbers. No error message may repeat these values. A variable
 * in a container's environment is a secret if it has the name of a secret.
 */
export function secretValuesOf(resource: unknown): string[] {
  const values: string[] = [];
  visit(resource, (variable, list) => {
    const { name, value } = variable;
    const isSecret = list === 'secrets' || (typeof name === 'string' && secretNames.kindOf(name) !== undefined);
    if (isSecret && typeof value === 'string' && !PLAIN_SETTING.test(value)) values.push(value);
  });
  return values;
}

/**
 * Returns a copy to record in a run. In the copy, a mask replaces the value of each secret and environment variable.
 */
export function withoutSecretValues(resource: unknown, list?: string): unknown {
  if (Array.isArray(resource)) return resource.map((item) => withoutSecretValues(item, list));
  if (!isObject(resource)) return resource;
  return Object.fromEntries(
    Object.entries(resource).map(([key, value]) => {
      const isValue = isList(list) && key === 'value' && value !== undefined && value !== null;
      return [key, isValue ? MASK : withoutSecretValues(value, key)];
    }),
  );
}

/** Hides the values from `util.inspect`, and thereby from logs. The fields themselves do not change. */
export function hideSecretValues<Resource>(resource: Resource): Resource {
  visit(resource, (variable) => {
    const shown = (): unknown => withoutSecretValues({ ...variable }, 'secrets');
    Object.defineProperty(variable, inspect.custom, { value: shown, configurable: true, writable: true });
  });
  return resource;
}

/** Visits iteratively, because a response may be nested more deeply than the call stack allows. */
function visit(resource: unknown, take: (variable: Record<string, unknown>, list: string) => void): void {
  const left: [value: unknown, list: string | undefined][] = [[resource, undefined]];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [value, list] = next;
    if (Array.isArray(value)) {
      for (const item of value) left.push([item, list]);
    } else if (isObject(value)) {
      if (isList(list)) take(value, list);
      for (const [key, inner] of Object.entries(value)) left.push([inner, key]);
    }
  }
}

/** The fields that hold `{ name, value }`. */
function isList(field: string | undefined): field is string {
  return field === 'secrets' || field === 'env';
}
