import type { Fields } from './values.ts';

/** Maximum number of levels. Deeper levels remain one name with dots. */
const LEVELS_MAX = 16;

type Branch = Map<string, unknown>;

/**
 * Builds the structure of flattened names: `0.message.role`, `0.message.content` → `[{ message: { role, content } }]`.
 * Whole numbers are list indexes, sorted by number and without gaps. Objects have no prototype, so any name is a safe
 * key. If one name is the prefix of another name, the structure wins.
 */
export function unflatten(entries: Iterable<readonly [name: string, value: unknown]>): unknown {
  const root: Branch = new Map();
  for (const [name, value] of entries) {
    const steps = name.split('.');
    const path = steps.slice(0, Math.min(steps.length, LEVELS_MAX) - 1);
    const last = steps.slice(path.length).join('.');
    const branch = branchAt(root, path);
    if (!(branch.get(last) instanceof Map)) branch.set(last, value);
  }
  return grown(root);
}

function branchAt(root: Branch, path: readonly string[]): Branch {
  let branch = root;
  for (const step of path) {
    let next = branch.get(step);
    if (!(next instanceof Map)) {
      next = new Map<string, unknown>();
      branch.set(step, next);
    }
    branch = next as Branch;
  }
  return branch;
}

function grown(value: unknown): unknown {
  if (!(value instanceof Map)) return value;
  const keys = [...value.keys()] as string[];
  if (keys.every((key) => /^\d+$/.test(key))) {
    return keys.sort((a, b) => Number(a) - Number(b)).map((key) => grown(value.get(key)));
  }
  const object: Fields = Object.create(null);
  for (const key of keys) object[key] = grown(value.get(key));
  return object;
}
