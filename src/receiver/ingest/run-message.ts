import type { Findings, Location } from '../refusal.ts';
import type { RunFields } from '../store/store.ts';
import { type DottedOrder, isRunField, type RunField, readField, type Spellings } from './run-fields.ts';

/** What is told of one run at one place of a request. */
export interface RunMessage {
  readonly rules: RunRules;
  /** The record as it came: an object of JSON. */
  readonly record: Readonly<Record<string, unknown>>;
  readonly loc: Location;
  /** The id that a part name or path gives; without one it is taken from the record. */
  readonly id?: string;
  /** Values that came in parts of their own. They go before those in the record. */
  readonly payloads?: readonly { readonly field: RunField; readonly value: unknown; readonly loc: Location }[];
}

/**
 * Reads a message by its rules. All that is wrong goes to the findings; what is given back is of use only when there are
 * none.
 */
export function readRun(message: RunMessage, findings: Findings): { id: string; fields: RunFields } {
  const { rules, record, loc, payloads = [] } = message;
  const read: Partial<Record<RunField, unknown>> = {};
  const take = (field: RunField, value: unknown, at: Location): void => {
    const kept = readField(field, value, rules, at, findings);
    if (kept !== undefined) read[field] = kept;
  };

  for (const [field, value] of Object.entries(record)) {
    if (!isRunField(field)) {
      if (rules.knownOnly) findings.add([...loc, field], 'unknown_field', 'The run record has no such field');
    } else if (rules.elsewhere.has(field)) {
      findings.add([...loc, field], 'misplaced', `Expected \`${field}\` ${rules.elsewhere.get(field)}`);
    } else {
      take(field, value, [...loc, field]);
    }
  }
  for (const { field, value, loc: at } of payloads) take(field, value, at);
  for (const field of rules.required) {
    if (!Object.hasOwn(record, field)) findings.add([...loc, field], 'missing', `\`${field}\` is missing`);
    else if (record[field] === null && rules.loose) findings.add([...loc, field], 'missing', `\`${field}\` is null`);
  }

  // Every field has been checked by its reader, and only those of the record have one.
  const { id: ownId, dotted_order: order, ...fields } = read as OwnFields;
  const id = message.id ?? ownId ?? '';
  if (ownId !== undefined && ownId !== id) findings.add([...loc, 'id'], 'mismatch', `\`id\` is not ${id}`);
  if (id !== '') checkRelations(id, fields, order?.ids, message, findings);
  return { id, fields: order === undefined ? fields : placed(fields, order) };
}

/** What `readField` gives for the fields of a record. */
type OwnFields = Omit<RunFields, 'dotted_order'> & { readonly id?: string; readonly dotted_order?: DottedOrder };

/** What the fields of a run must be to each other (interface, "POST /runs/multipart", rules 5 and 6). */
function checkRelations(
  id: string,
  fields: RunFields,
  ids: DottedOrder['ids'] | undefined,
  { rules, loc }: RunMessage,
  findings: Findings,
): void {
  const mismatch = (field: RunField, msg: string): void => findings.add([...loc, field], 'mismatch', msg);
  if (rules.session && fields.session_name === undefined && fields.session_id === undefined) {
    findings.add([...loc, 'session_name'], 'missing', 'One of `session_name` and `session_id` must be given');
  }
  if (!rules.loose && fields.session_name !== undefined && fields.session_id !== undefined) {
    findings.add([...loc, 'session_id'], 'conflict', 'Give one of `session_name` and `session_id`, not both');
  }
  if (fields.parent_run_id === id) mismatch('parent_run_id', 'A run is not its own parent');
  if (ids === undefined) return;
  const parentId = ids.at(-2);
  if (ids.at(-1) !== id) mismatch('dotted_order', `The last segment of \`dotted_order\` is not of run ${id}`);
  if (fields.trace_id !== undefined && fields.trace_id !== ids[0]) {
    mismatch('trace_id', '`trace_id` is not the id in the first segment of `dotted_order`');
  }
  if (fields.parent_run_id !== undefined && fields.parent_run_id !== parentId) {
    mismatch('parent_run_id', '`parent_run_id` is not the id in the last but one segment of `dotted_order`');
  }
  if (rules.parent && parentId !== undefined && fields.parent_run_id === undefined) {
    findings.add([...loc, 'parent_run_id'], 'missing', 'A child must give its `parent_run_id`');
  }
}

/** A dotted order tells trace and parent, so that a message which gives it alone is complete. */
function placed(fields: RunFields, { text, ids }: DottedOrder): RunFields {
  const [root] = ids;
  const parent = ids.at(-2);
  return {
    ...fields,
    dotted_order: text,
    ...(root === undefined ? {} : { trace_id: root }),
    ...(parent === undefined ? {} : { parent_run_id: parent }),
  };
}

/** What a run record has to look like, by the way it comes and by how strictly the interface is taken. */
export interface RunRules extends Spellings {
  readonly required: readonly RunField[];
  /** Maps fields that do not belong in this record to the place where they belong. */
  readonly elsewhere: ReadonlyMap<RunField, string>;
  /** Whether one of `session_name` and `session_id` is required. */
  readonly session: boolean;
  /** Whether a child must name its parent, although its dotted order does. */
  readonly parent: boolean;
  /** Whether a field that the record does not know is wrong; else it is passed over. */
  readonly knownOnly: boolean;
}

/** `batch` is the field's JSON batch, which the interface does not have. */
export type Way = 'multipart' | 'simple' | 'batch';

export function rulesFor(way: Way, kind: 'post' | 'patch', strict: boolean): RunRules {
  return {
    required: required(way, kind, strict),
    elsewhere: strict ? elsewhere(way, kind) : new Map(),
    session: strict && kind === 'post',
    parent: strict && way === 'multipart',
    knownOnly: strict,
    // The interface has ids without hyphens on simple ingestion only.
    hexIds: !strict || way === 'simple',
    loose: !strict,
  };
}

function elsewhere(way: Way, kind: 'post' | 'patch'): ReadonlyMap<RunField, string> {
  if (way === 'multipart') return APART;
  return way === 'simple' && kind === 'post' ? ON_UPDATE : new Map();
}

const APART: ReadonlyMap<RunField, string> = new Map(
  (['inputs', 'outputs', 'events'] as const).map((field) => [field, 'in a part of its own']),
);
const ON_UPDATE: ReadonlyMap<RunField, string> = new Map([['outputs', 'in `PATCH /runs/{run_id}`']]);

function required(way: Way, kind: 'post' | 'patch', strict: boolean): readonly RunField[] {
  if (way === 'simple') {
    if (kind === 'post') return ['id', 'name', 'run_type', 'inputs', 'start_time'];
    // `outputs` may be missing even in strict mode: a run that failed has none.
    return strict ? ['end_time'] : [];
  }
  if (way === 'batch') return kind === 'post' ? ['id', 'name', 'run_type', 'start_time'] : ['id'];
  const record: readonly RunField[] = ['trace_id', 'dotted_order', 'name', 'run_type', 'start_time'];
  if (strict) return ['id', ...record, ...(kind === 'patch' ? ['end_time' as const] : [])];
  return kind === 'post' ? record : ['trace_id', 'dotted_order'];
}
