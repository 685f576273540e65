import { isObject } from '../base/options.ts';
import { isGiven, mistake, type Place } from './field-check.ts';
import type { ValidationError } from './validation-error.ts';

/** What of the resources breaks the rules that are about several fields at once. */
export function resourceSpecErrors(spec: unknown, place: Place): ValidationError[] {
  if (!isObject(spec)) return [];
  const volumes = recordsOf(spec.volumes);
  const names = volumes.map(({ record }) => record.name);
  const mountErrors = (mounts: unknown, at: Place): ValidationError[] =>
    recordsOf(mounts)
      .filter(({ record }) => typeof record.name === 'string' && !names.includes(record.name))
      .map(({ index }) => mistake([...at, index, 'name'], 'Expected the name of one of the volumes'));
  const containerErrors = ['init_containers', 'sidecars'].flatMap((list) =>
    recordsOf(spec[list]).flatMap(({ record, index }) => {
      const at = [...place, list, index];
      return [
        ...mountErrors(record.volumeMounts, [...at, 'volumeMounts']),
        ...variableErrors(record.env, [...at, 'env']),
      ];
    }),
  );
  const repeated = volumes
    .filter(({ record }, position) => typeof record.name === 'string' && names.indexOf(record.name) < position)
    .map(({ index }) => mistake([...place, 'volumes', index, 'name'], 'Another volume has this name'));
  return [...repeated, ...mountErrors(spec.volume_mounts, [...place, 'volume_mounts']), ...containerErrors];
}

function variableErrors(env: unknown, place: Place): ValidationError[] {
  return recordsOf(env)
    .filter(({ record }) => isGiven(record.value) && record.value !== '' && isGiven(record.valueFrom))
    .map(({ index }) => mistake([...place, index, 'valueFrom'], 'Cannot be used beside a value that is not empty'));
}

/** What of a list is of the right type, with its places. */
function recordsOf(list: unknown): { readonly record: Record<string, unknown>; readonly index: number }[] {
  const items: unknown[] = Array.isArray(list) ? list : [];
  return items.flatMap((record, index) => (isObject(record) ? [{ record, index }] : []));
}
