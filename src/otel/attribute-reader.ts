import type { Place, RowIndex } from './row-index.ts';
import { unflatten } from './unflatten.ts';
import type { Attributes } from './values.ts';
import type { Rows } from './vocabulary.ts';

const NOWHERE: readonly Place[] = [];

/**
 * The attributes of one span as the tables see them: one look over them finds the rows that they speak to, so that a
 * span costs what it has and not what the tables could read. Knows in the end which attributes have been used.
 */
export class AttributeReader {
  readonly attributes: Attributes;
  readonly keys: readonly string[];
  readonly #index: RowIndex;
  /** By table, the rows that have something to read. */
  readonly #present = new Map<Rows, Place[]>();
  readonly #used = new Set<string>();
  /** By the name by which rows read them, attributes that are parts of something. */
  #groups: Map<string, string[]> | undefined;

  constructor(attributes: Attributes, index: RowIndex) {
    this.attributes = attributes;
    this.keys = Object.keys(attributes);
    this.#index = index;
    for (const key of this.keys) {
      const group = index.groupOf(key);
      if (group !== undefined) this.#addToGroup(group, key);
      else this.#addRows(key);
    }
  }

  /** The rows of a table that have something to read, in their order. */
  rows(table: Rows): readonly Place[] {
    const places = this.#present.get(table) ?? NOWHERE;
    return places.length < 2 ? places : places.toSorted((a, b) => a.position - b.position);
  }

  /** The value of an attribute, or the list or the object that stands flattened below its name. */
  get(name: string): unknown {
    const keys = this.#groups?.get(name);
    if (keys === undefined) return this.attributes[name];
    const entries = keys.map((key) => [key.slice(name.length + 1), this.attributes[key]] as const);
    return this.#index.isList(name) ? unflatten(entries) : Object.fromEntries(entries);
  }

  /** Adds to `sources` the attributes that `get` would read, names and values in turn. */
  addSources(name: string, sources: unknown[]): void {
    const keys = this.#groups?.get(name);
    if (keys === undefined) sources.push(name, this.attributes[name]);
    else for (const key of keys) sources.push(key, this.attributes[key]);
  }

  /** Notes that what `get` reads under this name has found its place in the run. */
  use(name: string): void {
    const keys = this.#groups?.get(name);
    if (keys === undefined) this.#used.add(name);
    else for (const key of keys) this.#used.add(key);
  }

  /** The same for the one attribute of this very name. */
  useOne(key: string): void {
    this.#used.add(key);
  }

  /** The attributes that have been used so far. */
  used(): string[] {
    return [...this.#used];
  }

  isUsed(key: string): boolean {
    return this.#used.has(key);
  }

  #addToGroup(name: string, key: string): void {
    this.#groups ??= new Map();
    const keys = this.#groups.get(name);
    if (keys !== undefined) {
      keys.push(key);
      return;
    }
    this.#groups.set(name, [key]);
    this.#addRows(name);
  }

  #addRows(name: string): void {
    for (const place of this.#index.placesOf(name)) {
      const places = this.#present.get(place.table);
      if (places === undefined) this.#present.set(place.table, [place]);
      else places.push(place);
    }
  }
}
