import type { Attributes, Read } from './values.ts';

/**
 * Maps one attribute to one field of a run. `key` is a key within the row's group. Nested keys contain a dot. The key
 * `WHOLE` stands for the whole group. Rows are in order of precedence. If the key is already set, the row is skipped.
 */
export type Row = readonly [attribute: string, key: string, read: Read, manner?: Manner];

/**
 * - `list`: `attribute` is the prefix of a flattened list.
 * - `repeats`: the attribute repeats the attribute of an earlier row. If that row was used, this attribute is not
 *   copied to the metadata.
 * - `merged`: the attribute is an object. Its keys are added to the group unless they are already set.
 * - `below`: like `merged`, but for a flattened object. Each key is a separate attribute whose name starts with
 *   `attribute`.
 * - `kept`: the attribute is also copied to the metadata unless another row uses it.
 *
 * Attributes that no row uses are copied to the metadata unchanged.
 */
export type Manner = 'list' | 'repeats' | 'merged' | 'below' | 'kept';

export type Rows = readonly Row[];

export const WHOLE = '*';

/** Key in the group `times` for the time of the first token. */
export const FIRST_TOKEN = 'first_token';

/** Key in the group `times` for the time of the first token in microseconds since 1970. */
export const FIRST_TOKEN_AT = 'first_token_at';

/** Metadata key for OpenAI's service tier. The service tier determines the names of token details. */
export const SERVICE_TIER = 'service_tier';

/** Marks an attribute that only repeats other attributes and must not be copied to the metadata. */
export const NOTHING_NEW: unique symbol = Symbol('nothing new');

/** The groups of run fields that the mapping tables set. */
export type Group = 'inputs' | 'outputs' | 'usage' | 'parameters' | 'metadata' | 'tags' | 'times';

/** The run type for a span, and the attribute that contains a better run name. */
export interface Kind {
  readonly runType?: string | undefined;
  readonly nameFrom?: string | undefined;
  /** A better name that is built from inputs. Ignored if inputs are hidden. */
  readonly rename?: Rename | undefined;
}

/** Converts lists of values by run type to pairs of value and `Kind`. */
export function kindsOf(values: Readonly<Record<string, readonly string[]>>): [value: string, Kind][] {
  return Object.entries(values).flatMap(([runType, list]) => list.map((value): [string, Kind] => [value, { runType }]));
}

/** If the span is named `from`, the run is named `to`. */
export interface Rename {
  readonly from: string;
  readonly to: string;
}

/** The mapping table for one semantic convention. */
export interface Vocabulary {
  readonly name: string;
  /** First words of the attribute names in this table. The table is used only for spans with such an attribute. */
  readonly namespaces: readonly string[];
  /** Whether the payloads are fields of a protocol, and not what the application was asked or answered. */
  readonly isProtocol?: true;
  /** Returns whether a span with these attributes uses this table. Needed if tables share the same first words. */
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
  /** Microseconds since the start of the span, or since 1970 for `FIRST_TOKEN_AT`. */
  readonly times?: Rows;
  /** The attribute with the project. Read when the span starts, because a run's project cannot change later. */
  readonly project?: string;
  /** Attributes that are never copied to the metadata. */
  readonly ignored?: readonly string[];
  /** URLs from which credentials are removed before they become metadata. Used for all spans. */
  readonly cleaned?: readonly string[];
}
