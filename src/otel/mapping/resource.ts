import { type Check, matcherOf } from '../../config/checker.ts';
import { parsedJson } from '../../payload/fields.ts';
import { metadataJson } from '../../payload/serialize.ts';
import type { PayloadRules } from '../../payload/truncate.ts';
import type { Attributes } from '../conventions/values.ts';
import type { ResourceLike } from '../span-like.ts';
import type { HiddenContent } from './hidden-content.ts';

const DEFAULT_NAMES: readonly string[] = [
  ...['service.*', 'deployment.environment', 'deployment.environment.name', 'host.name', 'k8s.*'],
];

export const namesCheck: Check = [
  'a list of names',
  (value) => Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== ''),
];

const UNNAMED = /^unknown_service(:|$)/;

/** Returns whether a service name was set, and is not the default of an SDK. */
export function isServiceName(name: unknown): name is string {
  return typeof name === 'string' && name !== '' && !UNNAMED.test(name);
}

type MetadataEntries = readonly (readonly [key: string, json: string])[];

export class ResourceMetadata {
  readonly #names: readonly string[];
  readonly #isNamed: (name: string) => boolean;
  readonly #environment: () => Attributes;
  /** The metadata of each resource, and the payload rules that were applied. Exporters may have different rules. */
  readonly #known = new WeakMap<ResourceLike, { rules: PayloadRules; entries: MetadataEntries }>();

  /** `k8s.*` stands for all names that begin with `k8s.`. `environment` returns attributes that a resource may lack. */
  constructor(names: readonly string[] = DEFAULT_NAMES, environment: () => Attributes = () => ({})) {
    this.#names = names;
    this.#isNamed = matcherOf(names);
    this.#environment = environment;
  }

  /** Returns the metadata of a resource as JSON text. While attributes are pending, the list is empty. */
  of(resource: ResourceLike, rules: PayloadRules, hidden: HiddenContent | undefined): MetadataEntries {
    const entries = this.#entriesOf(resource, rules);
    if (hidden === undefined) return entries;
    // What the application names in full is not content.
    return entries.filter(([name, json]) => this.#names.includes(name) || !hidden.hides(name, parsedJson(json)));
  }

  #entriesOf(resource: ResourceLike, rules: PayloadRules): MetadataEntries {
    const known = this.#known.get(resource);
    if (known?.rules === rules) return known.entries;
    if (resource.asyncAttributesPending === true) return [];
    const attributes = { ...this.#environment(), ...named(resource.attributes) };
    const entries = Object.entries(attributes).flatMap(([name, value]) =>
      value !== undefined && this.#isNamed(name) ? [[name, metadataJson(name, value, rules)] as const] : [],
    );
    this.#known.set(resource, { rules, entries });
    return entries;
  }
}

function named({ 'service.name': name, ...others }: Attributes): Attributes {
  return isServiceName(name) ? { 'service.name': name, ...others } : others;
}
