import { isoTimestamp } from '../../../run/time.ts';
import { outlineOf, payloadFacts, summaryOf } from '../run-summary.ts';
import type { RunOutline, RunStatus, RunSummary } from '../run-view.ts';
import { idText, type Row, type SqliteConnection } from './database.ts';
import { readPayload } from './payloads.ts';
import { fieldsOf, SHOWN_COLUMNS, usageIn } from './run-row.ts';
import type { StoredPreviews } from './stored-run.ts';

/** A visible run as lists read it. */
export interface ListedRow extends Row {
  n: number;
  tenant: number;
  id: Uint8Array;
  trace: number;
  trace_id: Uint8Array;
  parent: Uint8Array | null;
  start_us: number;
  project: string;
  session_id: string | null;
  status: string;
  model: string | null;
  first_token_us: number | null;
  fields: string;
  previews: string | null;
}

export const LISTED_COLUMNS: string = `runs.n AS n, runs.tenant AS tenant, runs.id AS id, trace, traces.id AS trace_id,
  parent, ${SHOWN_COLUMNS.map((column) => `runs.${column} AS ${column}`).join(', ')}, fields, previews`;

export const FROM_DETAILS: string = 'FROM runs JOIN details ON details.n = runs.n JOIN traces ON traces.n = runs.trace';
export const LISTED: string = `SELECT ${LISTED_COLUMNS} ${FROM_DETAILS} WHERE runs.n = ?`;

/** Returns a run of a list. Previews of large payloads are stored, others are made from the payloads. */
export function summaryIn(connection: SqliteConnection, row: ListedRow): RunSummary {
  const previews: StoredPreviews = row.previews === null ? {} : JSON.parse(row.previews);
  const facts = { ...previews };
  for (const field of ['inputs', 'outputs'] as const) {
    if (previews[`${field}_preview`] !== undefined) continue;
    const text = readPayload(connection, row.n, field);
    if (text !== undefined) Object.assign(facts, payloadFacts({ [field]: JSON.parse(text) }));
  }
  return { ...outlineIn(row), ...listing(row), ...previewsOf(facts) };
}

function previewsOf({ inputs_preview, outputs_preview }: StoredPreviews): StoredPreviews {
  return {
    ...(inputs_preview === undefined ? {} : { inputs_preview }),
    ...(outputs_preview === undefined ? {} : { outputs_preview }),
  };
}

/** What `RunSummary` has beside the outline and the previews. */
function listing(row: ListedRow): Pick<RunSummary, 'trace_id' | 'session_name' | 'session_id' | 'tags'> {
  const { session_name, session_id, tags } = fieldsOf(row, row.fields);
  return {
    trace_id: idText(row.trace_id),
    ...(session_name === undefined ? {} : { session_name }),
    ...(session_id === undefined ? {} : { session_id }),
    ...(tags === undefined ? {} : { tags }),
  };
}

/** Returns a run of an outline. */
export function outlineIn(row: ListedRow): RunOutline {
  const traceId = idText(row.trace_id);
  const summary = summaryOf(idText(row.id), traceId, fieldsOf(row, row.fields), {});
  // Listed runs are visible.
  const outline = outlineOf(summary as RunSummary);
  const usage = usageIn(row);
  outline.status = row.status as RunStatus;
  if (usage !== undefined) outline.usage = usage;
  if (row.first_token_us !== null) outline.first_token_time = isoTimestamp(row.first_token_us);
  return outline;
}
