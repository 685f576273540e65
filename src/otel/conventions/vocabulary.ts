import type { Attributes, Read } from './values.ts';

/**
 * A table row maps one attribute to one field of the run. `key` is the key in the group of the row, with a dot for a
 * nested key. `WHOLE` is the group itself. Rows are in order of precedence: a row is skipped if its key is already set.
 */
export type Row = readonly [attribute: string, key: string, read: Read, manner?: Manner];

/**
 * - `list`: the attribute is the prefix of a flattened list.
 * - `repeats`: the attribute repeats an earlier row. It is not copied to the metadata if the earlier row was used.
 * - `merged`: an object whose keys are added, unless they are already set.
 * - `below`: like `merged`, with an object that is flattened below the attribute's name.
 * - `kept`: the attribute is copied to the metadata too, unless another row uses it.
 *
 * Attributes that no row uses are copied to the metadata unchanged.
 */
export type Manner = 'list' | 'repeats' | 'merged' | 'below' | 'kept';

export type Rows = readonly Row[];

export const WHOLE = '*';

/** Key of the time of the first token. */
export const FIRST_TOKEN = 'first_token';

/** Metadata key of OpenAI's service tier, which determines the names of token details. */
export const SERVICE_TIER = 'service_tier';

/**
 * Returned by a table row if its attribute adds nothing to the other attributes and must not be copied to the metadata.
 */
export const NOTHING_NEW: unique symbol = Symbol('nothing new');

/** The groups of fields that tables set. */
export type Group = 'inputs' | 'outputs' | 'usage' | 'parameters' | 'metadata' | 'tags' | 'times';

/** The run type of a span, and the attribute with a better name than the span's name. */
export interface Kind {
  readonly runType?: string | undefined;
  readonly nameFrom?: string | undefined;
  /** Contains parts of the inputs, so it is not used if inputs are hidden. */
  readonly rename?: Rename | undefined;
}

/** Converts lists of values by run type into pairs of a value and its kind. */
export function kindsOf(values: Readonly<Record<string, readonly string[]>>): [value: string, Kind][] {
  return Object.entries(values).flatMap(([runType, list]) => list.map((value): [string, Kind] => [value, { runType }]));
}

/** Replaces the name `from` of a span. */
export interface Rename {
  readonly from: string;
  readonly to: string;
}

/** The table of one semantic convention. */
export interface Vocabulary {
  readonly name: string;
  /** The first words of attribute names. A span without such an attribute does not use the vocabulary. */
  readonly namespaces: readonly string[];
  /** Whether a span with these attributes uses the vocabulary. Needed if the first words are ambiguous. */
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
  /** The attribute with the project. It is read when the span starts, because the project of a run cannot change. */
  readonly project?: string;
  /** Attributes that are never copied to the metadata. */
  readonly ignored?: readonly string[];
  /**
   * Functions that remove credentials from attributes before they are copied to the metadata. They apply to all spans.
   */
  readonly cleaned?: ReadonlyMap<string, Read>;
}
