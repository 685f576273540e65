import { parseDottedOrder } from '../run/dotted-order.ts';
import type { Findings, Location } from './findings.ts';
import { isRunField, type RunField, readField } from './run-fields.ts';
import type { RunRules } from './run-rules.ts';
import type { RunFields } from './store.ts';

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
    } else if (rules.apart.includes(field)) {
      findings.add([...loc, field], 'misplaced', `Expected \`${field}\` in a part of its own`);
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
  const { id: ownId, ...fields } = read as RunFields & { id?: string };
  const id = message.id ?? ownId ?? '';
  if (ownId !== undefined && ownId !== id) findings.add([...loc, 'id'], 'mismatch', `\`id\` is not ${id}`);
  if (id !== '') checkRelations(id, fields, message, findings);
  return { id, fields: withParent(fields) };
}

/** What the fields of a run must be to each other (interface, "POST /runs/multipart", rules 5 and 6). */
function checkRelations(id: string, fields: RunFields, { rules, loc }: RunMessage, findings: Findings): void {
  const mismatch = (field: RunField, msg: string): void => findings.add([...loc, field], 'mismatch', msg);
  if (rules.session && fields.session_name === undefined && fields.session_id === undefined) {
    findings.add([...loc, 'session_name'], 'missing', 'One of `session_name` and `session_id` must be given');
  }
  if (fields.parent_run_id === id) mismatch('parent_run_id', 'A run is not its own parent');
  const segments = parseDottedOrder(fields.dotted_order ?? '');
  if (segments === undefined) return;
  const parentId = segments.at(-2)?.id;
  if (segments.at(-1)?.id !== id) mismatch('dotted_order', `The last segment of \`dotted_order\` is not of run ${id}`);
  if (fields.trace_id !== undefined && fields.trace_id !== segments[0]?.id) {
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
function withParent(fields: RunFields): RunFields {
  const segments = parseDottedOrder(fields.dotted_order ?? '');
  const root = segments?.[0];
  const parent = segments?.at(-2);
  return {
    ...fields,
    ...(root === undefined ? {} : { trace_id: root.id }),
    ...(parent === undefined ? {} : { parent_run_id: parent.id }),
  };
}
