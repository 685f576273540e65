import { exactJson, parseExact } from '../../../payload/fields.ts';
import { NO_PRICES } from '../../domain/cost/prices.ts';
import type { Feedback } from '../../domain/feedback.ts';
import type { Scope } from '../../domain/query/query.ts';
import { feedbackTexts } from '../../domain/run-values.ts';
import type { ChangedTrace } from '../subscribers.ts';
import { type ClickHouse, type Query, sql, string, uuidParam } from './connection.ts';
import { deleteWhere } from './deletion.ts';
import { type Group, type GroupKey, readGroups, stepsOf } from './groups.ts';
import { joinedGroups } from './joins.ts';
import { insideOf, ofMeantTraces } from './reads/conditions.ts';
import { groupsOf, readRow } from './reads/reads.ts';

/**
 * Stores feedback on a run. New feedback with the same id replaces the old feedback, but keeps its creation time and
 * position. Returns the run's trace, or undefined if the run is unknown.
 */
export async function insertFeedback(
  db: ClickHouse,
  { tenant }: Scope,
  feedback: Feedback,
  changedUs: number,
): Promise<ChangedTrace | undefined> {
  const { id, run_id: runId, key, score } = feedback;
  const found = await groupOfRun(db, tenant, runId);
  const group_id = found?.merged.get(runId)?.group_id;
  if (found === undefined || group_id === undefined) return undefined;
  const ofRun = sql`tenant = ${string(tenant)} AND group_id = ${uuidParam(group_id)} AND run = ${uuidParam(runId)}`;
  const select = sql`SELECT created_at, n FROM feedback FINAL WHERE ${ofRun} AND id = ${string(id)}`;
  const [earlier] = await db.rows<{ created_at: string; n: number }>(select);
  const { created_at, n } = earlier ?? { created_at: feedback.created_at, n: changedUs };
  await db.insert('feedback', [
    {
      tenant,
      group_id,
      run: runId,
      id,
      key,
      score: score === undefined ? null : Number(score),
      texts: feedbackTexts(feedback),
      json: exactJson({ ...feedback, created_at }),
      created_at,
      n,
      changed_us: changedUs,
    },
  ]);
  return { id: found.trace.shownId, projects: found.trace.projects };
}

export const readFeedback: Query<'feedback'> = async (db, scope, traceIds) => {
  if (traceIds.length === 0) return [];
  const { tenant, project } = scope;
  const inScope = insideOf(tenant, { projects: project === undefined ? [] : [project] });
  const visible = sql`FROM runs FINAL WHERE ${inScope} AND ${ofMeantTraces(tenant, traceIds)}`;
  const rows = await db.rows<{ json: string }>(
    sql`SELECT json FROM feedback FINAL WHERE tenant = ${string(tenant)}
      AND group_id IN (SELECT group_id ${visible}) AND run IN (SELECT id ${visible}) ORDER BY created_at, n`,
  );
  return rows.map(({ json }) => parseExact(json));
};

export const readFeedbackWithId: Query<'feedbackWithId'> = async (db, scope, id) => {
  const rows = await db.rows<{ json: string }>(
    sql`SELECT json FROM feedback FINAL WHERE tenant = ${string(scope.tenant)} AND id = ${string(id)}`,
  );
  for (const { json } of rows) {
    const { run_id: runId }: Feedback = JSON.parse(json);
    if ((await readRow(db, scope, runId)) !== undefined) return parseExact(json);
  }
  return undefined;
};

/** Deletes feedback. Returns the run's trace, or undefined if the run has no such feedback. */
export async function removeFeedback(
  db: ClickHouse,
  { tenant }: Scope,
  { id, run_id: runId }: Pick<Feedback, 'id' | 'run_id'>,
): Promise<ChangedTrace | undefined> {
  const group = await groupOfRun(db, tenant, runId);
  const where = sql`tenant = ${string(tenant)} AND run = ${uuidParam(runId)} AND id = ${string(id)}`;
  const isFound = (await db.rows(sql`SELECT 1 FROM feedback WHERE ${where} LIMIT 1`)).length > 0;
  if (group === undefined || !isFound) return undefined;
  await deleteWhere(db, 'feedback', where, 'now');
  return { id: group.trace.shownId, projects: group.trace.projects };
}

/** Returns the group of a run, or undefined if the run is unknown. Its row may not be derived yet. */
async function groupOfRun(db: ClickHouse, tenant: string, runId: string): Promise<Group | undefined> {
  const keys = (await groupsOf(db, tenant, runId)).map((group_id): GroupKey => ({ tenant, group_id }));
  for (const step of await stepsOf(db, await joinedGroups(db, keys))) {
    for await (const group of readGroups(db, step, NO_PRICES)) {
      if (group.trace.members.some(({ id }) => id === runId)) return group;
    }
  }
  return undefined;
}
