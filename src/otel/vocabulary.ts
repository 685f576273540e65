import type { AttributeReader } from './attribute-reader.ts';
import { type Attributes, type Fields, isObject, type Read } from './values.ts';

/**
 * One row of a table: what an attribute becomes. `key` is where it goes within the row's group, with a dot where it is
 * one level deeper; `WHOLE` is the group itself. Rows are tried in order, and one that finds its key taken is passed
 * over, so the order is the precedence.
 */
export type Row = readonly [attribute: string, key: string, read: Read, manner?: Manner];

/**
 * - `list`: the attribute is the prefix of a flattened list;
 * - `repeats`: says again what rows above say, and is left out once one of them has spoken;
 * - `merged`: an object, of which the keys that are not taken yet are added;
 * - `kept`: stays in the metadata under its own name, unless another row uses it up.
 *
 * An attribute that no row has used goes to the metadata unchanged.
 */
export type Manner = 'list' | 'repeats' | 'merged' | 'kept';

export const WHOLE = '*';

/** What kind of run a span is, and which attribute names it better than the span's own name. */
export interface Kind {
  readonly runType?: string | undefined;
  readonly nameFrom?: string | undefined;
}

/** What the attributes of one convention mean. */
export interface Vocabulary {
  readonly name: string;
  /** Whether the span is described in it; if not, its rows are not tried. */
  isSpoken(attributes: Attributes): boolean;
  kindOf(attributes: Attributes): Kind;
  readonly inputs: readonly Row[];
  readonly outputs: readonly Row[];
  /** Token counts and costs. */
  readonly usage: readonly Row[];
  /** What a model was called with, beside the inputs. */
  readonly parameters: readonly Row[];
  readonly metadata: readonly Row[];
  readonly tags: readonly Row[];
  /** Attributes that have told all they have to tell, and are left out of the metadata. */
  readonly spent: readonly string[];
}

/**
 * What the rows find, added to what is `found` already; undefined when there is nothing. `wholeKey` is for a payload that
 * is no object.
 */
export function collect(
  rows: readonly Row[],
  reader: AttributeReader,
  wholeKey: string,
  found?: Fields,
): Fields | undefined {
  let fields = found;
  for (const [attribute, key, read, manner] of rows) {
    const value = reader.get(attribute);
    if (value === undefined || value === null) continue;
    if (manner !== 'merged' && isTaken(fields, key)) {
      if (manner === 'repeats') reader.use(attribute);
      continue;
    }
    const result = read(value, reader.attributes);
    if (result === undefined) continue;
    fields = key === WHOLE ? { ...wholeOf(result, wholeKey), ...fields } : put(fields ?? {}, key, result);
    if (manner !== 'kept') reader.use(attribute);
  }
  return fields;
}

function isTaken(fields: Fields | undefined, key: string): boolean {
  if (fields === undefined) return false;
  if (key === WHOLE) return true;
  const dot = key.indexOf('.');
  if (dot < 0) return Object.hasOwn(fields, key);
  const inner = fields[key.slice(0, dot)];
  return isObject(inner) && Object.hasOwn(inner, key.slice(dot + 1));
}

/** Adds to fields that are ours: those of an attribute have been copied. */
function put(fields: Fields, key: string, value: unknown): Fields {
  const dot = key.indexOf('.');
  if (dot < 0) {
    fields[key] = value;
    return fields;
  }
  const outer = key.slice(0, dot);
  const inner = fields[outer];
  fields[outer] = put(isObject(inner) ? inner : {}, key.slice(dot + 1), value);
  return fields;
}

/** A payload is an object; a list of messages gets the key that messages have, anything else `key`. */
function wholeOf(value: unknown, key: string): Fields {
  if (isObject(value)) return value;
  const isMessages =
    Array.isArray(value) && value.length > 0 && value.every((item) => isObject(item) && 'role' in item);
  return { [isMessages ? 'messages' : key]: value };
}
