import type { ResourceSpec } from './resource-spec.ts';
import { checkObject } from './schemas.ts';

type NumberField = {
  [Field in keyof ResourceSpec]-?: NonNullable<ResourceSpec[Field]> extends number ? Field : never;
}[keyof ResourceSpec];

/** Default of a field as a multiple of another field. A row may use the default of an earlier row. */
const DEFAULTS: readonly (readonly [field: NumberField, base: NumberField, factor: number])[] = [
  ['cpu_limit', 'cpu', 2],
  ['memory_limit_mb', 'memory_mb', 2],
  ['queue_min_scale', 'min_scale', 1],
  ['queue_max_scale', 'max_scale', 1],
  ['queue_cpu', 'cpu', 1],
  ['queue_cpu_limit', 'queue_cpu', 2],
  ['queue_memory_mb', 'memory_mb', 1],
  ['queue_memory_limit_mb', 'queue_memory_mb', 2],
  ['redis_cpu_limit', 'redis_cpu', 2],
  ['redis_memory_limit_mb', 'redis_memory_mb', 1],
  ['core_cpu_limit', 'core_cpu', 2],
  ['core_memory_limit_mb', 'core_memory_mb', 2],
  ['db_cpu_limit', 'db_cpu', 2],
  ['db_memory_limit_mb', 'db_memory_mb', 2],
];

const CPU_FIELDS = ['cpu', 'queue_cpu', 'redis_cpu', 'core_cpu', 'db_cpu'] as const;

/**
 * Returns the resources that the service uses: with the defaults of fields that are missing or null, and CPU rounded to
 * one decimal. If the base of a default is missing, the field stays missing.
 */
export function effectiveResources(spec: ResourceSpec): ResourceSpec {
  checkObject('effectiveResources', 'spec', spec);
  const effective: ResourceSpec = { ...spec };
  for (const field of CPU_FIELDS) round(effective, field);
  for (const [field, base, factor] of DEFAULTS) {
    const basis = effective[base];
    if (effective[field] === undefined || effective[field] === null) {
      if (typeof basis === 'number') effective[field] = basis * factor;
    }
    if (/cpu/.test(field)) round(effective, field);
  }
  return effective;
}

function round(spec: ResourceSpec, field: NumberField): void {
  const cores = spec[field];
  if (typeof cores === 'number') spec[field] = Math.round(cores * 10) / 10;
}
