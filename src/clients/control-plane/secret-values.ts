import { INSPECT } from '../../base/text.ts';
import { isObject } from '../../config/checker.ts';
import { hasSecretName, MASK } from '../secrets.ts';

/**
 * Returns the secret values in a request, for masking in errors. A container's environment variable counts as a secret
 * if its name looks like the name of a secret.
 */
export function secretValuesOf(resource: unknown): string[] {
  const values: string[] = [];
  visit(resource, ({ name, value }, list) => {
    if (typeof value === 'string' && (list === 'secrets' || hasSecretName(name))) values.push(value);
  });
  return values;
}

/** Returns a copy with masked values of secrets and environment variables, for recording. */
export function withoutSecretValues<Resource>(resource: Resource): Resource {
  const copy = structuredClone(resource);
  visit(copy, (variable) => Object.assign(variable, maskedValue(variable)));
  return copy;
}

/**
 * Hides secret values from `util.inspect`, which keeps them out of most logs. Reading a field still returns the value.
 */
export function hideSecretValues<Resource>(resource: Resource): Resource {
  visit(resource, (variable) => {
    const masked = (): unknown => ({ ...variable, ...maskedValue(variable) });
    Object.defineProperty(variable, INSPECT, { value: masked, configurable: true, writable: true });
  });
  return resource;
}

/**
 * Calls `variable` for each variable in a resource. A loop replaces recursion, because deep nesting could overflow the
 * stack.
 */
function visit(resource: unknown, variable: (variable: Record<string, unknown>, list: string) => void): void {
  const left: [value: unknown, list: string | undefined][] = [[resource, undefined]];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [value, list] = next;
    if (Array.isArray(value)) {
      for (const item of value) left.push([item, list]);
    } else if (isObject(value)) {
      if (list === 'secrets' || list === 'env') variable(value, list);
      for (const [key, inner] of Object.entries(value)) left.push([inner, key]);
    }
  }
}

function maskedValue({ value }: Record<string, unknown>): object {
  return value === undefined || value === null ? {} : { value: MASK };
}
