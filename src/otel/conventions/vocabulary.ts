import type { AttributeReader } from '../attribute-reader.ts';
import { isMessageList } from './model-messages.ts';
import type { Place } from '../row-index.ts';
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
 * - `below`: the same with an object that is spread over attributes: it has what stands below the attribute's name;
 * - `kept`: stays in the metadata under its own name, unless another row uses it up.
 *
 * An attribute that no row has used goes to the metadata unchanged.
 */
export type Manner = 'list' | 'repeats' | 'merged' | 'below' | 'kept';

/** A table, for one group of a run's fields. */
export type Rows = readonly Row[];

export const WHOLE = '*';

/** The key, among the times, of the first piece of a model's answer. */
export const FIRST_TOKEN = 'first_token';

/** Metadata key of OpenAI's service tier, which determines the names of token details. */
export const SERVICE_TIER = 'service_tier';

/**
 * Returned by a table row if its attribute adds nothing to the other attributes and must not be copied to the metadata.
 */
export const NOTHING_NEW: unique symbol = Symbol('nothing new');

/** The fields of a run that tables are about. */
export type Group = 'inputs' | 'outputs' | 'usage' | 'parameters' | 'metadata' | 'tags' | 'times';

/** What kind of run a span is, and which attribute names it better than the span's own name. */
export interface Kind {
  readonly runType?: string | undefined;
  readonly nameFrom?: string | undefined;
  /** Made of payload, and so not used where inputs are hidden. */
  readonly rename?: Rename | undefined;
}

/** A name for spans whose own is no more than `plain`. */
export interface Rename {
  readonly plain: string;
  readonly telling: string;
}

/** What the attributes of one convention mean. */
export interface Vocabulary {
  readonly name: string;
  /** The words that the names of attributes begin with by which it is spoken: where there is none of them, no row is tried. */
  readonly roots: readonly string[];
  /** Whether it is, where such a name alone does not tell. */
  isSpoken?(attributes: Attributes): boolean;
  kindOf(attributes: Attributes): Kind;
  readonly inputs?: Rows;
  readonly outputs?: Rows;
  /** Token counts and costs. */
  readonly usage?: Rows;
  /** What a model was called with, beside the inputs. */
  readonly parameters?: Rows;
  readonly metadata?: Rows;
  readonly tags?: Rows;
  /** Microseconds from the start of the span to what no event tells. */
  readonly times?: Rows;
  /** The attribute that names the project. Read when the span starts: the project of a run cannot change later. */
  readonly project?: string;
  /** Attributes that have told all they have to tell, and are left out of the metadata. */
  readonly spent?: readonly string[];
  /** How attributes that may hold credentials go to the metadata, where no row has used them. On any span. */
  readonly cleaned?: ReadonlyMap<string, Read>;
}

/** What rows have found. The object is ours to add to; what is inside of it may be an attribute's. */
export interface Found {
  readonly fields: Fields;
  /** JSON text that stands for the fields as it is; undefined where they have to be written. */
  readonly text: string | undefined;
}

/** JSON text that stands for itself: it is parsed only where somebody asks for what is in it. */
export class KeptText implements Found {
  readonly text: string;
  #fields: Fields | undefined;

  constructor(text: string) {
    this.text = text;
  }

  get fields(): Fields {
    this.#fields ??= JSON.parse(this.text) as Fields;
    return this.#fields;
  }
}

/** What rows find; undefined when there is nothing. `wholeKey` is for a payload that is no object. */
export function collect(places: readonly Place[], reader: AttributeReader, wholeKey: string): Found | undefined {
  let fields: Fields | undefined;
  for (const place of places) {
    const [attribute, key, read, manner] = place.row;
    const value = reader.get(attribute);
    if (value === undefined || value === null) continue;
    // Behind it nothing is added.
    if (key === WHOLE && fields === undefined && place === places.at(-1) && reader.isKept(value, read)) {
      reader.use(attribute);
      return new KeptText(value as string);
    }
    if (manner !== 'merged' && manner !== 'below' && isTaken(fields, key)) {
      if (manner === 'repeats') reader.use(attribute);
      continue;
    }
    const meant = readSafely(read, value, reader.attributes);
    if (meant === undefined) continue;
    if (manner !== 'kept') reader.use(attribute);
    if (meant === NOTHING_NEW) continue;
    if (key !== WHOLE) fields = put(fields ?? {}, key, meant);
    else fields = fields === undefined ? wholeOf(meant, wholeKey) : { ...wholeOf(meant, wholeKey), ...fields };
    if (fields === value) fields = { ...fields };
  }
  return fields && { fields, text: undefined };
}

/** A value that cannot be read, as it is nested too deeply for example, stays in the metadata, and costs no other. */
function readSafely(read: Read, value: unknown, attributes: Attributes): unknown {
  try {
    return read(value, attributes);
  } catch {
    return undefined;
  }
}

function isTaken(fields: Fields | undefined, key: string): boolean {
  if (fields === undefined) return false;
  if (key === WHOLE) return true;
  const dot = key.indexOf('.');
  if (dot < 0) return Object.hasOwn(fields, key);
  const inner = fields[key.slice(0, dot)];
  return isObject(inner) && Object.hasOwn(inner, key.slice(dot + 1));
}

function put(fields: Fields, key: string, value: unknown): Fields {
  const dot = key.indexOf('.');
  if (dot < 0) {
    fields[key] = value;
    return fields;
  }
  const outer = key.slice(0, dot);
  const inner = fields[outer];
  fields[outer] = { ...(isObject(inner) ? inner : {}), [key.slice(dot + 1)]: value };
  return fields;
}

/** A payload is an object; a list of messages gets the key that messages have, anything else `key`. */
function wholeOf(value: unknown, key: string): Fields {
  if (isObject(value)) return value;
  return { [isMessageList(value) ? 'messages' : key]: value };
}
