import { emptyFields, type Fields, isFields, isPlainObject } from './fields.ts';

/** Text that names something: told again it stays, where other text goes on. */
const NAMES: ReadonlySet<string> = new Set(['id', 'type', 'role', 'name', 'object', 'format', 'finish_reason']);

/**
 * Adds a delta to what has come of an object: text goes on, objects and lists are joined field by field (items that have
 * an `index` with the item of that index, others at the end), anything else replaces what was there. The answer is the
 * number of characters taken. Nothing of the delta itself is kept.
 */
export function addDelta(target: Fields, delta: Fields): number {
  let characters = 0;
  for (const [key, value] of Object.entries(delta)) {
    const present = target[key];
    if (typeof value === 'string' && !NAMES.has(key)) {
      target[key] = typeof present === 'string' ? present + value : value;
      characters += value.length;
    } else if (Array.isArray(value)) {
      if (!Array.isArray(present)) target[key] = [];
      characters += addItems(target[key] as unknown[], value);
    } else if (isFields(value)) {
      if (!isFields(present)) target[key] = emptyFields();
      characters += addDelta(target[key] as Fields, value);
    } else if (present === undefined || (value !== null && value !== undefined)) {
      target[key] = value;
    }
  }
  return characters;
}

/** A copy of plain objects and lists, as parsing makes them; anything else in them is the same. */
export function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf);
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copyOf(item)]));
}

function addItems(target: unknown[], items: readonly unknown[]): number {
  let characters = 0;
  for (const item of items) {
    if (!isFields(item)) {
      target.push(copyOf(item));
      continue;
    }
    const known = typeof item.index === 'number' ? itemAt(target, item.index) : undefined;
    const into = known ?? emptyFields();
    if (known === undefined) target.push(into);
    characters += addDelta(into, item);
  }
  return characters;
}

function itemAt(items: readonly unknown[], index: number): Fields | undefined {
  return items.find((item): item is Fields => isFields(item) && item.index === index);
}
