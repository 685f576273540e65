import { isoTimestamp, parseIsoTimestamp } from '../../../run/time.ts';
import { DEFAULT_PROJECT, projectOf } from '../run-filter.ts';
import type { SmallFields } from '../run-summary.ts';
import type { RunSummary, Usage } from '../run-view.ts';
import { idText, type Row, type SqlValue } from './database.ts';

/** The columns of `runs` that are derived from the fields of a visible run. */
export const SHOWN_COLUMNS = [
  'start_us',
  'end_us',
  'project',
  'session_id',
  'name',
  'run_type',
  'status',
  'model',
  'thread',
  'user',
  'first_token_us',
  'input_tokens',
  'output_tokens',
  'total_tokens',
  'total_cost',
] as const;

export type ShownColumns = Record<(typeof SHOWN_COLUMNS)[number], SqlValue>;

const HIDDEN = Object.fromEntries(SHOWN_COLUMNS.map((column) => [column, null])) as ShownColumns;

/** Metadata that identifies a conversation. The first that is text is used. */
const THREAD_KEYS: readonly string[] = ['thread_id', 'session_id', 'conversation_id'];

/** Returns the columns of a run, all empty if it is not visible. */
export function shownColumns(fields: SmallFields, summary: RunSummary | undefined): ShownColumns {
  const startUs = timeOf(summary?.start_time);
  if (summary === undefined || startUs === null) return HIDDEN;
  const metadata = fields.extra?.metadata;
  return {
    start_us: startUs,
    end_us: timeOf(summary.end_time),
    project: projectOf(summary),
    session_id: summary.session_id ?? null,
    name: summary.name,
    run_type: summary.run_type,
    status: summary.status,
    model: summary.model ?? null,
    thread: textOf(THREAD_KEYS.map((key) => metadata?.[key]).find((value) => textOf(value) !== null)),
    user: textOf(metadata?.user_id),
    first_token_us: timeOf(summary.first_token_time),
    input_tokens: summary.usage?.input_tokens ?? null,
    output_tokens: summary.usage?.output_tokens ?? null,
    total_tokens: summary.usage?.total_tokens ?? null,
    total_cost: summary.usage?.total_cost ?? null,
  };
}

function timeOf(time: string | undefined): number | null {
  return (time === undefined ? undefined : parseIsoTimestamp(time)) ?? null;
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** Fields of `details`: what columns do not have. `session_name` is null if the run names no project. */
type StoredFields = Omit<SmallFields, 'session_name'> & { session_name?: string | null };

/** Returns the JSON text of the fields that columns do not have. */
export function storedFields(fields: SmallFields, isVisible: boolean): string {
  const { trace_id: _trace, parent_run_id: _parent, ...others } = fields;
  if (!isVisible) return JSON.stringify(others);
  const { name, run_type, start_time, end_time, session_id, session_name, ...rest } = others;
  const texts = Object.entries({ name, run_type, session_id, session_name });
  const inexact = Object.fromEntries(texts.filter(([, text]) => text !== undefined && !isExact(text)));
  return JSON.stringify({ ...rest, ...inexact, ...(session_name === undefined && { session_name: null }) });
}

/** Whether SQLite stores a text as it is. */
function isExact(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** The columns that `fieldsOf` reads. */
export const FIELD_COLUMNS: readonly string[] = [
  'parent',
  'start_us',
  'end_us',
  'project',
  'session_id',
  'name',
  'run_type',
];

/** Restores the fields of a run, except for `trace_id`. */
export function fieldsOf(row: Row, stored: string): SmallFields {
  const { session_name, ...rest } = JSON.parse(stored) as StoredFields;
  const fields: SmallFields = {};
  if (row.parent !== null) fields.parent_run_id = idText(row.parent as Uint8Array);
  if (row.start_us !== null) {
    fields.name = row.name as string;
    fields.run_type = row.run_type as string;
    fields.start_time = isoTimestamp(row.start_us as number);
    if (row.end_us !== null) fields.end_time = isoTimestamp(row.end_us as number);
    if (row.session_id !== null) fields.session_id = row.session_id as string;
    if (session_name === undefined) fields.session_name = (row.project as string | null) ?? DEFAULT_PROJECT;
  }
  if (typeof session_name === 'string') fields.session_name = session_name;
  return Object.assign(fields, rest);
}

/** Returns the usage in the columns of a row. */
export function usageIn(row: Readonly<Record<string, unknown>>): Usage | undefined {
  const usage: Usage = {};
  for (const key of ['input_tokens', 'output_tokens', 'total_tokens', 'total_cost'] as const) {
    const value = row[key] ?? null;
    if (value !== null) usage[key] = value as number;
  }
  return Object.keys(usage).length === 0 ? undefined : usage;
}

/** Returns what `rest` keeps of the fields that came in patches: all values of `fields` at these names. */
export function patchedPart(fields: SmallFields, { fields: names, extra, metadata }: PatchedNames): SmallFields {
  const part: Record<string, unknown> = {};
  for (const name of names) {
    const value = fields[name as keyof SmallFields];
    if (value !== undefined) part[name] = value;
  }
  if (extra.length > 0 || metadata.length > 0) {
    const own = fields.extra ?? {};
    const picked = pick(own, extra);
    if (metadata.length > 0) picked.metadata = pick(own.metadata ?? {}, metadata);
    part.extra = picked;
  }
  return part;
}

/** The names of the fields that came in patches, without `extra`, and the keys in `extra` and `extra.metadata`. */
export interface PatchedNames {
  readonly fields: readonly string[];
  readonly extra: readonly string[];
  readonly metadata: readonly string[];
}

export const NOTHING_PATCHED: PatchedNames = { fields: [], extra: [], metadata: [] };

/** Adds the names of the fields of a patch, including payloads. */
export function withPatch(names: PatchedNames, patch: SmallFields, payloads: readonly string[]): PatchedNames {
  const { extra, ...fields } = patch;
  const { metadata, ...others } = extra ?? {};
  const union = (a: readonly string[], b: readonly string[]): string[] => [...new Set([...a, ...b])];
  return {
    fields: union(names.fields, [...Object.keys(fields), ...payloads]),
    extra: union(names.extra, Object.keys(metadata === undefined ? (extra ?? {}) : others)),
    metadata: union(names.metadata, Object.keys(metadata ?? {})),
  };
}

function pick(from: Readonly<Record<string, unknown>>, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(keys.flatMap((key) => (Object.hasOwn(from, key) ? [[key, from[key]]] : [])));
}
