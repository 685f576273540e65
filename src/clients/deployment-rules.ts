import { isObject } from '../base/options.ts';
import { controlPlaneFields, type Field, type ResourceName } from './control-plane-fields.ts';
import type { DeploymentSource } from './deployment.ts';
import { type CheckMode, isGiven, mistake, type Place } from './field-check.ts';
import type { ValidationError } from './validation-error.ts';

/** The beginning of a reference to a tag. */
const TAG = 'refs/tags/';

/** A field of a deployment that a request gives. */
interface GivenField {
  readonly place: Place;
  readonly field: Field;
}

type Sources = readonly DeploymentSource[];

/**
 * What of a deployment breaks the rules that are about several fields at once. Those that are not of the right type are passed
 * over: they have been told of.
 */
export function deploymentErrors(body: unknown, mode: CheckMode): ValidationError[] {
  if (!isObject(body)) return [];
  return [...(mode === 'create' ? sourceErrors(body) : patchedSourceErrors(body)), ...tagErrors(body)];
}

/** On create the source says which fields there may be, and have to be. */
function sourceErrors(body: Record<string, unknown>): ValidationError[] {
  const source = body.source as DeploymentSource;
  if (!controlPlaneFields.Deployment.source?.values?.includes(source)) return [];
  const revision = isObject(body.source_revision_config) ? body.source_revision_config : {};
  const required = Object.entries(controlPlaneFields.SourceRevisionConfig).filter(
    ([name, { requiredFor }]) => requiredFor?.includes(source) && !isGiven(revision[name]),
  );
  return [
    ...givenFields(body).flatMap(({ field, place }) =>
      field.sources?.includes(source) === false
        ? [mistake(place, `Only for ${listed(field.sources)}, and the source is ${source}`)]
        : [],
    ),
    ...required.map(([name]) =>
      mistake(['body', 'source_revision_config', name], `Field required for ${source}`, 'missing'),
    ),
  ];
}

/** A PATCH does not tell the source of its deployment: it breaks a rule where no source may have all that it gives. */
function patchedSourceErrors(body: Record<string, unknown>): ValidationError[] {
  const errors: ValidationError[] = [];
  const revisionSource = body.revision_source as DeploymentSource | null | undefined;
  let possible: { readonly sources: Sources; readonly because: Place } | undefined;
  for (const { field, place } of givenFields(body)) {
    const { sources } = field;
    // What cannot be changed has been told of.
    if (sources === undefined || field.immutable) continue;
    if (isGiven(revisionSource) && place.includes('source_revision_config')) {
      if (!sources.includes(revisionSource as DeploymentSource)) {
        errors.push(mistake(place, `Only for ${listed(sources)}, and revision_source is ${revisionSource}`));
      }
      continue;
    }
    const left = possible?.sources.filter((source) => sources.includes(source)) ?? sources;
    if (left.length > 0) possible = { sources: left, because: possible?.because ?? place };
    else errors.push(mistake(place, `Only for ${listed(sources)}, but ${possible?.because.slice(1).join('.')} is not`));
  }
  return errors;
}

function tagErrors({ source_config, source_revision_config }: Record<string, unknown>): ValidationError[] {
  if (!isObject(source_config) || !isObject(source_revision_config)) return [];
  const { repo_ref } = source_revision_config;
  const isTag = typeof repo_ref === 'string' && repo_ref.startsWith(TAG);
  if (!isTag || source_config.build_on_push !== true) return [];
  return [mistake(['body', 'source_config', 'build_on_push'], `Cannot be true where repo_ref is a tag (${TAG}…)`)];
}

/** Those of the deployment and of its two configurations, in the order of the tables; what is read-only has been told of. */
function givenFields(body: Record<string, unknown>): GivenField[] {
  const parts: readonly [resource: ResourceName, value: unknown, place: Place][] = [
    ['Deployment', body, ['body']],
    ['SourceConfig', body.source_config, ['body', 'source_config']],
    ['SourceRevisionConfig', body.source_revision_config, ['body', 'source_revision_config']],
  ];
  return parts.flatMap(([resource, value, place]) =>
    Object.entries(controlPlaneFields[resource])
      .filter(([name, field]) => isObject(value) && isGiven(value[name]) && !field.readOnly)
      .map(([name, field]) => ({ field, place: [...place, name] })),
  );
}

function listed(words: readonly string[]): string {
  return words.join(' and ');
}
