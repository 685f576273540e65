import type { Attributes, Read } from './values.ts';

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
