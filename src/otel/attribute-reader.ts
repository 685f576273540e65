import { unflatten } from './unflatten.ts';
import type { Attributes } from './values.ts';

/** The prefix of a flattened list ends before its first place: `llm.input_messages` of `llm.input_messages.0.message.role`. */
const FIRST_PLACE = /\.\d+(?=\.|$)/;

/** Reads the attributes of one span by name or as flattened lists, and knows in the end which have been used. */
export class AttributeReader {
  readonly attributes: Attributes;
  readonly #lists = new Map<string, string[]>();
  readonly #used = new Set<string>();

  /** `isList` says of a prefix whether it names a list; without it nothing is taken for flattened. */
  constructor(attributes: Attributes, isList: ((prefix: string) => boolean) | undefined) {
    this.attributes = attributes;
    if (isList === undefined) return;
    for (const key of Object.keys(attributes)) {
      const prefix = listPrefixOf(key);
      if (prefix === undefined || !isList(prefix)) continue;
      const list = this.#lists.get(prefix);
      if (list === undefined) this.#lists.set(prefix, [key]);
      else list.push(key);
    }
  }

  /** The value of an attribute, or the list that stands flattened below its name. */
  get(name: string): unknown {
    const keys = this.#lists.get(name);
    if (keys === undefined) return this.attributes[name];
    return unflatten(keys.map((key) => [key.slice(name.length + 1), this.attributes[key]]));
  }

  /** Adds to `sources` the attributes that `get` would read, names and values in turn. */
  addSources(name: string, sources: unknown[]): void {
    const keys = this.#lists.get(name);
    if (keys !== undefined) for (const key of keys) sources.push(key, this.attributes[key]);
    else if (this.attributes[name] !== undefined) sources.push(name, this.attributes[name]);
  }

  /** Notes that what `get` reads under this name has found its place in the run. */
  use(name: string): void {
    const keys = this.#lists.get(name);
    if (keys !== undefined) for (const key of keys) this.#used.add(key);
    else this.#used.add(name);
  }

  /** The attributes that have been used so far. */
  used(): string[] {
    return [...this.#used];
  }

  isUsed(key: string): boolean {
    return this.#used.has(key);
  }
}

/** What stands before the first place of a flattened list; undefined for an ordinary name. */
export function listPrefixOf(key: string): string | undefined {
  const at = key.search(FIRST_PLACE);
  return at < 0 ? undefined : key.slice(0, at);
}
