import type { Attributes, Read } from './values.ts';

/**
 * Maps one attribute to one field of the run. `key` is a key within the row's group, with a dot for a nested key. The
 * key `WHOLE` stands for the whole group. Rows are in order of precedence: a row is skipped if its key is already set.
 */
export type Row = readonly [attribute: string, key: string, read: Read, manner?: Manner];

/**
 * - `list`: `attribute` is the prefix of a flattened list.
 * - `repeats`: the attribute repeats an earlier row's attribute. If the earlier row was used, this attribute is not
 *   copied to the metadata.
 * - `merged`: the attribute is an object, whose keys are added to the group unless they are already set.
 * - `below`: like `merged`, but the object is flattened: each key is an attribute whose name starts with `attribute`.
 * - `kept`: the attribute is also copied to the metadata, unless another row uses it.
 *
 * Attributes that no row uses are copied to the metadata unchanged.
 */
export type Manner = 'list' | 'repeats' | 'merged' | 'below' | 'kept';

export type Rows = readonly Row[];

export const WHOLE = '*';

/** The key for the time of the first token, in the group `times`. */
export const FIRST_TOKEN = 'first_token';

/** The metadata key for OpenAI's service tier, which determines the names of token details. */
export const SERVICE_TIER = 'service_tier';

/**
 * Returned by a `Read` function if its attribute only repeats other attributes, so that it is not copied to the
 * metadata.
 */
export const NOTHING_NEW: unique symbol = Symbol('nothing new');

/** The groups of run fields that the tables set. */
export type Group = 'inputs' | 'outputs' | 'usage' | 'parameters' | 'metadata' | 'tags' | 'times';

/** A span's run type, and the attribute with a better run name than the span's name. */
export interface Kind {
  readonly runType?: string | undefined;
  readonly nameFrom?: string | undefined;
  /** A better name that is built from inputs. Not used if inputs are hidden. */
  readonly rename?: Rename | undefined;
}

/** Converts lists of values by run type into pairs of a value and its kind. */
export function kindsOf(values: Readonly<Record<string, readonly string[]>>): [value: string, Kind][] {
  return Object.entries(values).flatMap(([runType, list]) => list.map((value): [string, Kind] => [value, { runType }]));
}

/** Names a run `to` if its span is named `from`. */
export interface Rename {
  readonly from: string;
  readonly to: string;
}

/** The mapping table for one semantic convention. */
export interface Vocabulary {
  readonly name: string;
  /**
   * The first words in the vocabulary's attribute names. A vocabulary is used only for spans with such an attribute.
   */
  readonly namespaces: readonly string[];
  /**
   * Whether a span with these attributes uses the vocabulary. Needed if other vocabularies use the same first words.
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
   * The attribute that contains the project. Read when the span starts, because a run's project cannot change later.
   */
  readonly project?: string;
  /** Attributes that are never copied to the metadata. */
  readonly ignored?: readonly string[];
  /** Functions that remove credentials from attributes before they are copied to the metadata. Used for all spans. */
  readonly cleaned?: ReadonlyMap<string, Read>;
}
