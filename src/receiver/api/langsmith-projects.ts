import type { Scope } from '../domain/query/query.ts';
import { projectOf } from '../domain/run-values.ts';
import type { ProjectSummary } from '../domain/run-view.ts';
import { derivedUuid } from '../domain/uuid.ts';
import { ALL_TIMES, inProject } from '../filter/run-filter.ts';
import type { Call } from '../http/route.ts';
import { parseUuid } from '../http/run-fields.ts';

/** A project in LangSmith's API, where projects are called sessions. */
interface Session {
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly last_run_start_time: string;
}

/**
 * Returns the id of a project. A name that is a UUID is the id. For any other name, the id is derived from the name, so
 * that all receivers and stores agree.
 */
export function sessionIdOf(project: string): string {
  return parseUuid(project, true) ?? derivedUuid(`project ${project}`);
}

export async function sessionsOf({ store, scope }: Pick<Call, 'store' | 'scope'>): Promise<Session[]> {
  return (await store.projects(scope, ALL_TIMES)).map((project) => sessionOf(project, scope));
}

/** Returns a project by its id, or by the `session_id` that a client sent with its runs. */
export async function sessionWithId(id: string, { store, scope }: Call): Promise<Session | undefined> {
  const found = (await sessionsOf({ store, scope })).find((session) => session.id === id);
  if (found !== undefined) return found;
  const { items } = await store.list(scope, { limit: 1, filter: inProject(id) });
  const [run] = items;
  return run && { ...sessionOf({ name: projectOf(run), last_start_time: run.start_time }, scope), id };
}

/** Returns the names of the projects with these ids. An unknown id may be the `session_id` of runs. */
export async function projectsWithIds(ids: readonly string[], { store, scope }: Call): Promise<string[]> {
  const names = new Map((await sessionsOf({ store, scope })).map(({ id, name }) => [id, name]));
  return ids.map((id) => names.get(id) ?? id);
}

function sessionOf({ name, last_start_time }: Pick<ProjectSummary, 'name' | 'last_start_time'>, { tenant }: Scope) {
  return {
    id: sessionIdOf(name),
    tenant_id: derivedUuid(`tenant ${tenant}`),
    name,
    last_run_start_time: last_start_time,
  };
}
