import { isObject } from '../base/options.ts';

/** The words of a service in the place of the interface's own. */
export interface Spelling {
  git_host?: string;
  external_container?: string;
  internal_container?: string;
  graph_config_path?: string;
}

const SOURCES = ['git_host', 'external_container', 'internal_container'] as const;
const WORDS: readonly string[] = [...SOURCES, 'graph_config_path'];

/** Puts the words of a service into requests, and those of the interface into answers. */
export class SpellingTable {
  readonly #toWire: ReadonlyMap<unknown, string>;
  readonly #fromWire: ReadonlyMap<unknown, string>;

  constructor(spelling: Spelling) {
    const pairs = Object.entries(spelling).filter((pair): pair is [string, string] => pair[1] !== undefined);
    this.#toWire = new Map(pairs);
    this.#fromWire = new Map(pairs.map(([word, spelt]) => [spelt, word]));
  }

  /** A word as the service has it. */
  word(word: keyof Spelling): string {
    return this.#toWire.get(word) ?? word;
  }

  /** A resource in the words of the service. */
  toWire<Resource>(resource: Resource): Resource {
    return translated(resource, this.#toWire);
  }

  /** A resource of the service, in the words of the interface. */
  fromWire<Resource>(resource: Resource): Resource {
    return translated(resource, this.#fromWire);
  }
}

export function isSpelling(value: unknown): boolean {
  if (!isObject(value)) return false;
  const given = Object.entries(value).filter(([, spelt]) => spelt !== undefined);
  // Each word stands in a path, or is the name of a field.
  const isWord = ([word, spelt]: [string, unknown]): boolean =>
    WORDS.includes(word) && typeof spelt === 'string' && /^[a-z][a-z0-9_-]*$/i.test(spelt);
  const all = WORDS.map((word) => value[word] ?? word);
  return given.every(isWord) && new Set(all).size === WORDS.length;
}

/** The words stand in three places alone, so that no name or label is taken for one. */
function translated<Resource>(resource: Resource, words: ReadonlyMap<unknown, string>): Resource {
  if (words.size === 0 || !isObject(resource)) return resource;
  const copy: Record<string, unknown> = { ...resource };
  for (const field of ['source', 'revision_source']) {
    const spelt = words.get(copy[field]);
    if (spelt !== undefined) copy[field] = spelt;
  }
  if (isObject(copy.source_revision_config)) {
    const fields = Object.entries(copy.source_revision_config);
    copy.source_revision_config = Object.fromEntries(fields.map(([name, value]) => [words.get(name) ?? name, value]));
  }
  return copy as Resource;
}
