import type { PayloadRules } from '../payload/limits.ts';
import { isPlainJson } from '../payload/serialize.ts';
import type { Place, RowIndex } from './row-index.ts';
import type { SpanShape, SpanShapes } from './span-shape.ts';
import { unflatten } from './unflatten.ts';
import { type Attributes, isVerbatim, type Read } from './conventions/values.ts';
import type { Group, Vocabulary } from './conventions/vocabulary.ts';

const NOWHERE: readonly Place[] = [];

/** The attributes of one span as the tables see them. Knows in the end which attributes have been used. */
export class AttributeReader {
  readonly attributes: Attributes;
  readonly keys: readonly string[];
  readonly #index: RowIndex;
  readonly #shape: SpanShape;
  readonly #rules: PayloadRules | undefined;
  readonly #used = new Set<string>();

  /** `rules` are those of the payloads that are read. */
  constructor(attributes: Attributes, index: RowIndex, shapes: SpanShapes, rules: PayloadRules | undefined) {
    this.attributes = attributes;
    // Other span processors may have set attributes to undefined.
    this.keys = Object.keys(attributes).filter((key) => attributes[key] !== undefined);
    this.#index = index;
    this.#rules = rules;
    this.#shape = shapes.of(this.keys, attributes);
  }

  /** In the order of precedence. */
  get spoken(): readonly Vocabulary[] {
    return this.#shape.spoken;
  }

  /** The rows of a group that have something to read, in the order of precedence. */
  rows(group: Group): readonly Place[] {
    return this.#shape.rows.get(group) ?? NOWHERE;
  }

  /** The value of an attribute, or the list or the object that stands flattened below its name. */
  get(name: string): unknown {
    const keys = this.#shape.parts.get(name);
    if (keys === undefined) return this.attributes[name];
    const entries = keys.map((key) => [key.slice(name.length + 1), this.attributes[key]] as const);
    return this.#index.isList(name) ? unflatten(entries) : Object.fromEntries(entries);
  }

  /** Whether a value is JSON text that a row would read as an object, and that can stand for it as it is. */
  isKept(value: unknown, read: Read): boolean {
    if (typeof value !== 'string' || this.#rules === undefined) return false;
    return isVerbatim(read, this.attributes) && isPlainJson(value, this.#rules);
  }

  /** Adds to `sources` the attributes that `get` would read, names and values in turn. */
  addSources(name: string, sources: unknown[]): void {
    const keys = this.#shape.parts.get(name);
    if (keys === undefined) sources.push(name, this.attributes[name]);
    else for (const key of keys) sources.push(key, this.attributes[key]);
  }

  /** Notes that what `get` reads under this name has found its place in the run. */
  use(name: string): void {
    const keys = this.#shape.parts.get(name);
    if (keys === undefined) this.#used.add(name);
    else for (const key of keys) this.#used.add(key);
  }

  /** The attributes that have been used so far. */
  used(): string[] {
    return [...this.#used];
  }

  isUsed(key: string): boolean {
    return this.#used.has(key);
  }

  /** Whether an attribute has told all it has to tell. */
  isSpent(key: string): boolean {
    return this.#shape.spent.has(key);
  }
}
