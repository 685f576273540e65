import type { Scope } from '../../domain/query/query.ts';
import type { RunOperation } from '../../domain/run-message.ts';
import { HttpError } from '../http-error.ts';
import type { Call } from '../route.ts';

/**
 * Throws an HTTP 403 error if the key is limited to a project and one of the runs is in another project. Without this
 * check, the key could move the run to its own project. `Store.apply` does not check the project.
 */
export async function checkProject({ store, scope }: Call, runIds: readonly string[]): Promise<void> {
  const { tenant, project } = scope;
  if (project === undefined) return;
  const projects = await store.projectsOf({ tenant }, [...new Set(runIds)]);
  if (projects.some((name) => name !== project)) {
    throw new HttpError(403, `The key is limited to the project ${project}`);
  }
}

/** Puts runs into the project of the scope, if the scope is limited to a project, and marks them as sent with its key. */
export function putIntoProject({ project }: Scope, operations: readonly RunOperation[]): readonly RunOperation[] {
  if (project === undefined) return operations;
  return operations.map(({ fields: { session_id: _, ...fields }, ...operation }) => {
    return { ...operation, fields: { ...fields, session_name: project, limited_key: true } };
  });
}
