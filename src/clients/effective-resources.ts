import { controlPlaneFields, type Field } from './control-plane-fields.ts';
import { checkRecord } from './field-check.ts';
import type { ResourceSpec } from './resource-spec.ts';

/**
 * What holds where a specification is used: the defaults of the fields that are left out or null, and CPU rounded to one decimal,
 * as the service does. A default that goes by a field that is not there is left out as well.
 */
export function effectiveResources(spec: ResourceSpec): ResourceSpec {
  checkRecord('effectiveResources', 'spec', spec);
  const given = spec as Readonly<Record<string, unknown>>;
  const effective: Record<string, unknown> = {};
  // A default goes by a field that stands above it in the table.
  for (const [name, field] of Object.entries(controlPlaneFields.ResourceSpec)) {
    const value = rounded(given[name] ?? defaultOf(field, effective), field);
    if (value !== undefined) effective[name] = value;
  }
  return { ...spec, ...effective };
}

function defaultOf({ default: value }: Field, effective: Readonly<Record<string, unknown>>): unknown {
  if (typeof value !== 'object' || !('field' in value)) return undefined;
  const of = effective[value.field];
  return typeof of === 'number' ? of * value.times : undefined;
}

function rounded(value: unknown, { decimals }: Field): unknown {
  if (decimals === undefined || typeof value !== 'number') return value;
  const factor = 10 ** decimals;
  return Math.round(value * factor) / factor;
}
