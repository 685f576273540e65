import { exactJson, parseExact } from '../../../payload/fields.ts';
import type { Feedback } from '../../domain/feedback.ts';
import { NO_PRICES } from '../../domain/prices.ts';
import type { Scope } from '../../domain/query.ts';
import { feedbackTexts } from '../../domain/run-values.ts';
import type { ChangedTrace } from '../subscribers.ts';
import { type ClickHouse, sql, string, uuid, uuids } from './connection.ts';
import { type GroupKey, readGroups, stepsOf } from './groups.ts';
import { feedbackIn, groupsOfRun, readRow, readTraces } from './reads.ts';
import { deleteWhere } from './removal.ts';

/**
 * Stores feedback on a run. New feedback with the same id replaces the old feedback, but keeps its creation time and
 * position. Returns the run's trace, or undefined if the run is unknown.
 */
export async function addFeedback(
  db: ClickHouse,
  { tenant }: Scope,
  feedback: Feedback,
  changedUs: number,
): Promise<ChangedTrace | undefined> {
  const { id, run_id: runId, key, score } = feedback;
  const found = await placeOf(db, tenant, runId);
  if (found === undefined) return undefined;
  const { group_ids, trace } = found;
  const [earlier] = await db.rows<{ group_id: string; created_at: string; n: number }>(
    sql(
      'SELECT group_id, created_at, n FROM feedback FINAL WHERE tenant = ? AND group_id IN (?) AND run = ? AND id = ?',
      string(tenant),
      uuids(group_ids),
      uuid(runId),
      string(id),
    ),
  );
  const { group_id, created_at, n } = earlier ?? {
    group_id: group_ids[0],
    created_at: feedback.created_at,
    n: changedUs,
  };
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
  return trace;
}

/** See `FeedbackStore.feedback`. */
export async function readFeedback(db: ClickHouse, scope: Scope, traceIds: readonly string[]): Promise<Feedback[]> {
  if (traceIds.length === 0) return [];
  const runs = await readTraces(db, scope, traceIds);
  const feedback = await feedbackIn(
    db,
    scope.tenant,
    runs.flatMap(({ run: { row } }) => row.group_ids),
  );
  const ids = new Set(runs.map(({ run: { id } }) => id));
  return feedback
    .filter(({ run_id }) => ids.has(run_id))
    .sort((a, b) => (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : 0));
}

/** See `FeedbackStore.feedbackWithId`. */
export async function readFeedbackWithId(db: ClickHouse, scope: Scope, id: string): Promise<Feedback | undefined> {
  const { tenant } = scope;
  const select = 'SELECT json FROM feedback FINAL WHERE tenant = ? AND id = ?';
  const rows = await db.rows<{ json: string }>(sql(select, string(tenant), string(id)));
  for (const { json } of rows) {
    const { run_id: runId }: Feedback = JSON.parse(json);
    if ((await readRow(db, scope, runId)) !== undefined) return parseExact(json);
  }
  return undefined;
}

/** Deletes feedback. Returns the run's trace, or undefined if the run has no such feedback. */
export async function removeFeedback(
  db: ClickHouse,
  { tenant }: Scope,
  { id, run_id: runId }: Pick<Feedback, 'id' | 'run_id'>,
): Promise<ChangedTrace | undefined> {
  const place = await placeOf(db, tenant, runId);
  const where = sql('tenant = ? AND run = ? AND id = ?', string(tenant), uuid(runId), string(id));
  const isFound = (await db.rows(sql(`SELECT 1 FROM feedback WHERE ${where.sql} LIMIT 1`, ...where.params))).length > 0;
  if (place === undefined || !isFound) return undefined;
  await deleteWhere(db, 'feedback', where, 'now');
  return place.trace;
}

/** Returns the groups and the trace of a run, or undefined if the run is unknown. Its row may not be derived yet. */
async function placeOf(
  db: ClickHouse,
  tenant: string,
  runId: string,
): Promise<{ readonly group_ids: readonly string[]; readonly trace: ChangedTrace } | undefined> {
  const keys = (await groupsOfRun(db, tenant, runId)).map((group_id): GroupKey => ({ tenant, group_id }));
  for await (const step of stepsOf(db, keys)) {
    for await (const { traces, group_ids } of readGroups(db, step, NO_PRICES)) {
      const trace = traces.find(({ members }) => members.some(({ id }) => id === runId));
      if (trace !== undefined) return { group_ids, trace };
    }
  }
  return undefined;
}
