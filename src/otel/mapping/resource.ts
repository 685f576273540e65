import { type Check, matcherOf } from '../../config/checker.ts';
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

interface Known {
  readonly rules: PayloadRules;
  readonly sides: number;
  readonly entries: MetadataEntries;
  /** Number of attributes that were left out because inputs or outputs are hidden. */
  readonly leftOut: number;
}

type MetadataEntries = readonly (readonly [key: string, json: string])[];

export class ResourceMetadata {
  readonly #names: readonly string[];
  readonly #isNamed: (name: string) => boolean;
  readonly #environment: () => Attributes;
  /** The metadata of each resource, and what was applied. Exporters may have different rules. */
  readonly #known = new WeakMap<ResourceLike, Known>();

  /** `k8s.*` stands for all names that begin with `k8s.`. `environment` returns attributes that a resource may lack. */
  constructor(names: readonly string[] = DEFAULT_NAMES, environment: () => Attributes = () => ({})) {
    this.#names = names;
    this.#isNamed = matcherOf(names);
    this.#environment = environment;
  }

  /**
   * Returns the metadata of a resource as JSON text. While attributes are pending, the list is empty. `hidden` does not
   * apply to attributes that are named in full.
   */
  of(resource: ResourceLike, rules: PayloadRules, hidden: HiddenContent | undefined): MetadataEntries {
    const sides = hidden?.sides ?? 0;
    const known = this.#known.get(resource);
    if (known?.rules === rules && known.sides === sides) {
      if (hidden !== undefined) hidden.count += known.leftOut;
      return known.entries;
    }
    if (resource.asyncAttributesPending === true) return [];
    const before = hidden?.count ?? 0;
    const attributes = { ...this.#environment(), ...named(resource.attributes) };
    const entries = Object.entries(attributes).flatMap(([name, value]) => {
      if (value === undefined || !this.#isNamed(name)) return [];
      if (hidden !== undefined && !this.#names.includes(name) && hidden.hides(name, value)) return [];
      return [[name, metadataJson(name, value, rules)] as const];
    });
    this.#known.set(resource, { rules, sides, entries, leftOut: (hidden?.count ?? 0) - before });
    return entries;
  }
}

function named({ 'service.name': name, ...others }: Attributes): Attributes {
  return isServiceName(name) ? { 'service.name': name, ...others } : others;
}
