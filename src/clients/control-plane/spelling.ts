import { isObject } from '../../config/checker.ts';

/** Names that a service uses instead of the default names. */
export interface Spelling {
  git_host?: string;
  external_container?: string;
  internal_container?: string;
  graph_config_path?: string;
}

const NAMES: readonly string[] = ['git_host', 'external_container', 'internal_container', 'graph_config_path'];

/** Translates names in requests to the service's names, and names in responses back. */
export class SpellingTable {
  readonly #toWire: ReadonlyMap<unknown, string>;
  readonly #fromWire: ReadonlyMap<unknown, string>;

  constructor(spelling: Spelling) {
    const pairs = Object.entries(spelling).filter((pair): pair is [string, string] => pair[1] !== undefined);
    this.#toWire = new Map(pairs);
    this.#fromWire = new Map(pairs.map(([name, wireName]) => [wireName, name]));
  }

  wireName(name: string): string {
    return this.#toWire.get(name) ?? name;
  }

  toWire<Resource>(resource: Resource): Resource {
    return translated(resource, this.#toWire);
  }

  fromWire<Resource>(resource: Resource): Resource {
    return translated(resource, this.#fromWire);
  }
}

/** A name must be usable as a path segment and as a field name. */
const WIRE_NAME = /^[a-z][a-z0-9_-]*$/i;

/** Returns whether a value renames known names, without giving two of them the same name. */
export function isSpelling(value: unknown): boolean {
  if (!isObject(value)) return false;
  const isName = ([name, wireName]: [string, unknown]): boolean =>
    NAMES.includes(name) && (wireName === undefined || (typeof wireName === 'string' && WIRE_NAME.test(wireName)));
  const wireNames = new Set(NAMES.map((name) => value[name] ?? name));
  return Object.entries(value).every(isName) && wireNames.size === NAMES.length;
}

/**
 * Translates only the three fields that contain these names. Other text stays unchanged, for example a label with the
 * same value.
 */
function translated<Resource>(resource: Resource, names: ReadonlyMap<unknown, string>): Resource {
  if (names.size === 0 || !isObject(resource)) return resource;
  const copy: Record<string, unknown> = { ...resource };
  for (const field of ['source', 'revision_source']) {
    const name = names.get(copy[field]);
    if (name !== undefined) copy[field] = name;
  }
  if (isObject(copy.source_revision_config)) {
    const fields = Object.entries(copy.source_revision_config);
    copy.source_revision_config = Object.fromEntries(fields.map(([name, value]) => [names.get(name) ?? name, value]));
  }
  return copy as Resource;
}
