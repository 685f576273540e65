import type { DeploymentPatch } from './deployment.ts';

/** Whether an update makes a new revision: where one of its build inputs, the secrets or the resources is given. */
export function createsRevision(patch: DeploymentPatch): boolean {
  const { repo_ref, graph_config_path, image_uri, source_tarball_path } = patch.source_revision_config ?? {};
  const given = [
    repo_ref,
    graph_config_path,
    image_uri,
    source_tarball_path,
    patch.secrets,
    patch.source_config?.resource_spec,
  ];
  return given.some((value) => value !== undefined && value !== null);
}
