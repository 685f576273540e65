import type { KeyFacts, Place, RowIndex } from './row-index.ts';
import { unflatten } from './unflatten.ts';
import type { Attributes } from './values.ts';
import type { Group, Vocabulary } from './vocabulary.ts';

const NOWHERE: readonly Place[] = [];

/**
 * The attributes of one span as the tables see them: one look over them finds the vocabularies that they speak and the rows
 * that they speak to, so that a span costs what it has and not what the tables could read. Knows in the end which
 * attributes have been used.
 */
export class AttributeReader {
  readonly attributes: Attributes;
  readonly keys: readonly string[];
  /** In the order of precedence. */
  readonly spoken: readonly Vocabulary[];
  readonly #index: RowIndex;
  readonly #spokenBits: number;
  /** By group, the rows that have something to read. */
  readonly #present = new Map<Group, Place[]>();
  readonly #used = new Set<string>();
  /** By the name by which rows read them, attributes that are parts of something. */
  #parts: Map<string, string[]> | undefined;

  constructor(attributes: Attributes, index: RowIndex) {
    this.attributes = attributes;
    this.keys = Object.keys(attributes);
    this.#index = index;
    const facts = this.keys.map((key) => index.factsOf(key));
    let speakers = 0;
    for (const fact of facts) speakers |= fact.speakers;
    this.#spokenBits = index.spokenOf(speakers, attributes);
    this.spoken = index.vocabulariesOf(this.#spokenBits);
    for (let at = 0; at < facts.length; at++) this.#add(this.keys[at] as string, facts[at] as KeyFacts);
    for (const places of this.#present.values()) if (places.length > 1) places.sort((a, b) => a.order - b.order);
  }

  /** The rows of a group that have something to read, in the order of precedence. */
  rows(group: Group): readonly Place[] {
    return this.#present.get(group) ?? NOWHERE;
  }

  /** The value of an attribute, or the list or the object that stands flattened below its name. */
  get(name: string): unknown {
    const keys = this.#parts?.get(name);
    if (keys === undefined) return this.attributes[name];
    const entries = keys.map((key) => [key.slice(name.length + 1), this.attributes[key]] as const);
    return this.#index.isList(name) ? unflatten(entries) : Object.fromEntries(entries);
  }

  /** Adds to `sources` the attributes that `get` would read, names and values in turn. */
  addSources(name: string, sources: unknown[]): void {
    const keys = this.#parts?.get(name);
    if (keys === undefined) sources.push(name, this.attributes[name]);
    else for (const key of keys) sources.push(key, this.attributes[key]);
  }

  /** Notes that what `get` reads under this name has found its place in the run. */
  use(name: string): void {
    const keys = this.#parts?.get(name);
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
    return (this.#index.factsOf(key).spentFor & this.#spokenBits) !== 0;
  }

  #add(key: string, { group, places }: KeyFacts): void {
    if (group !== undefined) {
      this.#parts ??= new Map();
      const keys = this.#parts.get(group);
      if (keys !== undefined) {
        keys.push(key);
        return;
      }
      this.#parts.set(group, [key]);
    }
    for (const place of places) {
      if ((this.#spokenBits & (1 << place.rank)) === 0) continue;
      const present = this.#present.get(place.group);
      if (present === undefined) this.#present.set(place.group, [place]);
      else present.push(place);
    }
  }
}
