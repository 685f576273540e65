import type { ResourceSpec } from '../../clients/control-plane/resource-spec.ts';

/** A field without a value gets the value of another field, times a factor. Earlier rows come first. */
const DEFAULTS: readonly (readonly [field: keyof ResourceSpec, other: keyof ResourceSpec, factor: number])[] = [
  ['queue_min_scale', 'min_scale', 1],
  ['queue_max_scale', 'max_scale', 1],
  ['queue_cpu', 'cpu', 1],
  ['queue_memory_mb', 'memory_mb', 1],
  ['cpu_limit', 'cpu', 2],
  ['memory_limit_mb', 'memory_mb', 2],
  ['queue_cpu_limit', 'queue_cpu', 2],
  ['queue_memory_limit_mb', 'queue_memory_mb', 2],
  ['redis_cpu_limit', 'redis_cpu', 2],
  ['redis_memory_limit_mb', 'redis_memory_mb', 1],
  ['core_cpu_limit', 'core_cpu', 2],
  ['core_memory_limit_mb', 'core_memory_mb', 2],
  ['db_cpu_limit', 'db_cpu', 2],
  ['db_memory_limit_mb', 'db_memory_mb', 2],
];

/** Rounds the CPU values of a request to one decimal, and adds the values that the request leaves out. */
export function completeResources(given: ResourceSpec): ResourceSpec {
  const spec: Record<string, unknown> = { ...given };
  for (const [field, value] of Object.entries(spec)) {
    if (/cpu(?:_limit)?$/.test(field) && typeof value === 'number') spec[field] = Math.round(value * 10) / 10;
  }
  for (const [field, other, factor] of DEFAULTS) {
    const value = spec[other];
    if (typeof value === 'number') spec[field] ??= Math.round(value * factor * 10) / 10;
  }
  return spec;
}
