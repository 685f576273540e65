import { controlPlaneFields, type ResourceName } from './control-plane-fields.ts';
import type { DeploymentPatch } from './deployment.ts';
import { checkRecord, isGiven } from './field-check.ts';

/** Whether an update makes a new revision: where one of its build inputs, the secrets or the resources is given. */
export function createsRevision(patch: DeploymentPatch): boolean {
  checkRecord('createsRevision', 'patch', patch);
  const parts: readonly [resource: ResourceName, value: object | null | undefined][] = [
    ['Deployment', patch],
    ['SourceConfig', patch.source_config],
    ['SourceRevisionConfig', patch.source_revision_config],
  ];
  return parts.some(([resource, value]) =>
    Object.entries(value ?? {}).some(
      ([name, one]) => isGiven(one) && controlPlaneFields[resource][name]?.makesRevision === true,
    ),
  );
}
