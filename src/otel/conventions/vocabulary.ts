import type { Attributes, Read } from './values.ts';

/**
 * A table row maps one attribute to one field of the run. `key` is a key within the row's group, with a dot for a
 * nested key. The key `WHOLE` stands for the whole group. Rows are in order of precedence: a row is skipped if its key
 * is already set.
 */
export type Row = readonly [attribute: string, key: string, read: Read, manner?: Manner];

/**
 * - `list`: `attribute` is the prefix of a flattened list.
 * - `repeats`: the attribute repeats the attribute of an earlier row. If the earlier row was used, this attribute is
 *   not copied to the metadata.
 * - `merged`: the attribute is an object, whose keys are added to the group unless they are already set.
 * - `below`: like `merged`, but the object is flattened: each of its keys is an attribute whose name starts with
 *   `attribute`.
 * - `kept`: the attribute is also copied to the metadata, unless another row uses it.
 *
 * Attributes that no row uses are copied to the metadata unchanged.
 */
export type Manner = 'list' | 'repeats' | 'merged' | 'below' | 'kept';

export type Rows = readonly Row[];

export const WHOLE = '*';

/** The key, in the group `times`, of the time of the first token. */
export const FIRST_TOKEN = 'first_token';

/** The metadata key of OpenAI's service tier. The tier determines the names of token details. */
export const SERVICE_TIER = 'service_tier';

/**
 * Returned by a `Read` function if its attribute only repeats other attributes and must not be copied to the metadata.
 */
export const NOTHING_NEW: unique symbol = Symbol('nothing new');

/** The groups of run fields that the tables set. */
export type Group = 'inputs' | 'outputs' | 'usage' | 'parameters' | 'metadata' | 'tags' | 'times';

/** The run type of a span, and the attribute that contains a better name for the run than the span's name. */
export interface Kind {
  readonly runType?: string | undefined;
  readonly nameFrom?: string | undefined;
  /** A better name that is built from inputs. This name is not used if inputs are hidden. */
  readonly rename?: Rename | undefined;
}

/** Converts lists of values by run type into pairs of a value and its kind. */
export function kindsOf(values: Readonly<Record<string, readonly string[]>>): [value: string, Kind][] {
  return Object.entries(values).flatMap(([runType, list]) => list.map((value): [string, Kind] => [value, { runType }]));
}

/** If a span has the name `from`, its run is named `to`. */
export interface Rename {
  readonly from: string;
  readonly to: string;
}

/** The table of one semantic convention. */
export interface Vocabulary {
  readonly name: string;
  /**
   * The first words of the vocabulary's attribute names. The vocabulary is not used for a span without such an
   * attribute.
   */
  readonly namespaces: readonly string[];
  /**
   * Whether a span with these attributes uses the vocabulary. This check is needed if other vocabularies use the same
   * first words.
   */
  matches?(attributes: Attributes): boolean;
  kindOf(attributes: Attributes): Kind;
  readonly inputs?: Rows;
  readonly outputs?: Rows;
  /** Token counts and costs. */
  readonly usage?: Rows;
  /** The parameters of a model call. */
  readonly parameters?: Rows;
  readonly metadata?: Rows;
  readonly tags?: Rows;
  /** Microseconds since the start of the span. */
  readonly times?: Rows;
  /**
   * The attribute that contains the project. This attribute is read when the span starts, because the project of a run
   * cannot change later.
   */
  readonly project?: string;
  /** Attributes that are never copied to the metadata. */
  readonly ignored?: readonly string[];
  /**
   * Functions that remove credentials from attributes before they are copied to the metadata. These functions apply to
   * all spans.
   */
  readonly cleaned?: ReadonlyMap<string, Read>;
}
