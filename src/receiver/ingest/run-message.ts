import * as v from 'valibot';
import type { Location, ValidationIssues } from '../http-error.ts';
import type { RunFields } from '../store/store.ts';
import { checkKnownFields, type Schema, validate, withoutNulls } from '../validation.ts';
import { type DottedOrder, type RunField, runFields } from './run-fields.ts';

/** A post or patch of a run. */
export interface RunMessage {
  readonly rules: RunRules;
  readonly record: Readonly<Record<string, unknown>>;
  readonly loc: Location;
  /** The id in the part name or the path. @default the `id` of the record */
  readonly id?: string;
  /** Fields from parts of their own. They take precedence over the fields of `record`. */
  readonly payloads?: Readonly<Record<string, unknown>>;
  /** The locations of the payloads. */
  readonly payloadLocs?: ReadonlyMap<string, Location>;
}

/** Validates a message. The result is usable only if no issue was added. */
export function readRun(message: RunMessage, issues: ValidationIssues): { id: string; fields: RunFields } {
  const { rules, record, loc, payloads, payloadLocs } = message;
  if (rules.strict) checkFields(record, rules, loc, issues);
  const whole = payloads === undefined ? record : { ...record, ...payloads };
  const input = validate(rules.schema, whole, loc, issues, payloadLocs);
  if (input === undefined) return { id: '', fields: {} };
  const id = message.id ?? input.id ?? '';
  if (input.id !== undefined && input.id !== id) issues.add([...loc, 'id'], 'mismatch', `\`id\` is not ${id}`);
  checkRelations(id, input, message, issues);
  return { id, fields: fieldsOf(input) };
}

/** The output of a schema: null in a field that is absent. */
type RunInput = { readonly [Field in Exclude<keyof RunFields, 'dotted_order'>]?: RunFields[Field] | null } & {
  readonly id?: string | null;
  readonly dotted_order?: DottedOrder | null;
};

function checkFields(record: object, { schema, elsewhere }: RunRules, loc: Location, issues: ValidationIssues): void {
  checkKnownFields(schema, record, loc, issues);
  for (const [field, place] of Object.entries(elsewhere)) {
    if (Object.hasOwn(record, field)) issues.add([...loc, field], 'misplaced', `Expected \`${field}\` ${place}`);
  }
}

/** Checks how the fields relate to each other (interface, "POST /runs/multipart", rules 5 and 6). */
function checkRelations(id: string, input: RunInput, { rules, loc }: RunMessage, issues: ValidationIssues): void {
  const {
    session_name: name,
    session_id: sessionId,
    parent_run_id: parent,
    trace_id: trace,
    dotted_order: order,
  } = input;
  const add = (field: RunField, type: string, msg: string): void => issues.add([...loc, field], type, msg);
  if (rules.needsSession && name === undefined && sessionId === undefined) {
    add('session_name', 'missing', 'Send `session_name` or `session_id`');
  }
  if (rules.strict && name !== undefined && sessionId !== undefined) {
    add('session_id', 'conflict', 'Send `session_name` or `session_id`, not both');
  }
  if (parent === id) add('parent_run_id', 'mismatch', 'A run cannot be its own parent');
  if (!order) return;
  const parentId = order.ids.at(-2);
  if (order.ids.at(-1) !== id) {
    add('dotted_order', 'mismatch', `The last segment of \`dotted_order\` does not contain the run id ${id}`);
  }
  if (trace && trace !== order.ids[0]) {
    add('trace_id', 'mismatch', '`trace_id` is not the id in the first segment of `dotted_order`');
  }
  if (parent && parent !== parentId) {
    add('parent_run_id', 'mismatch', '`parent_run_id` is not the id in the second-to-last segment of `dotted_order`');
  }
  if (rules.needsParent && parentId !== undefined && !parent) {
    add('parent_run_id', 'missing', '`parent_run_id` is missing, although `dotted_order` has a parent');
  }
}

/** Returns the fields that are present. `dotted_order` also determines the trace and the parent. */
function fieldsOf({ id: _id, dotted_order: order, ...input }: RunInput): RunFields {
  const fields = withoutNulls(input) as RunFields;
  if (!order) return fields;
  const { text, ids } = order;
  const parentId = ids.at(-2);
  return {
    ...fields,
    dotted_order: text,
    trace_id: ids[0],
    ...(parentId !== undefined && { parent_run_id: parentId }),
  } as RunFields;
}

/** The requirements for a run record, which depend on the request format and on strict mode. */
export interface RunRules {
  readonly strict: boolean;
  readonly schema: Schema<RunInput> & { readonly entries: object };
  /** Describes where fields belong that must not be in this record. */
  readonly elsewhere: Readonly<Record<string, string>>;
  /** Whether `session_name` or `session_id` is required. */
  readonly needsSession: boolean;
  /** Whether the record of a child needs `parent_run_id`, although `dotted_order` contains it. */
  readonly needsParent: boolean;
}

/** `simple` is `POST /runs` and `PATCH /runs/{id}`. `batch` is `POST /runs/batch`, which other clients send. */
export type RunFormat = 'multipart' | 'simple' | 'batch';

export function rulesFor(format: RunFormat, kind: 'post' | 'patch', strict: boolean): RunRules {
  const key = `${format} ${kind} ${strict}`;
  const rules = cache.get(key) ?? createRules(format, kind, strict);
  cache.set(key, rules);
  return rules;
}

const cache = new Map<string, RunRules>();

function createRules(format: RunFormat, kind: 'post' | 'patch', strict: boolean): RunRules {
  const required = requiredFields(format, kind, strict);
  const entries = Object.entries(runFields({ hexIds: !strict || format === 'simple', loose: !strict }));
  const optional = (one: Schema<unknown>): Schema<unknown> => (strict ? v.optional(one) : v.nullish(one));
  const schema = v.object(
    Object.fromEntries(entries.map(([field, one]) => [field, required.includes(field) ? one : optional(one)])),
  );
  return {
    strict,
    schema: schema as unknown as RunRules['schema'],
    elsewhere: !strict ? {} : format === 'multipart' ? PARTS : kind === 'post' ? ON_UPDATE : {},
    needsSession: strict && kind === 'post',
    needsParent: strict && format === 'multipart',
  };
}

const PARTS = { inputs: 'in a part of its own', outputs: 'in a part of its own', events: 'in a part of its own' };
const ON_UPDATE = { outputs: 'in `PATCH /runs/{run_id}`' };

function requiredFields(format: RunFormat, kind: 'post' | 'patch', strict: boolean): readonly string[] {
  if (format === 'simple') {
    if (kind === 'post') return ['id', 'name', 'run_type', 'inputs', 'start_time'];
    // Also in strict mode, `outputs` is optional, because a failed run has none.
    return strict ? ['end_time'] : [];
  }
  if (format === 'batch') return kind === 'post' ? ['id', 'name', 'run_type', 'start_time'] : ['id'];
  const place = ['trace_id', 'dotted_order'];
  if (kind === 'patch' && !strict) return place;
  const record = [...place, 'name', 'run_type', 'start_time'];
  return strict ? ['id', ...record, ...(kind === 'patch' ? ['end_time'] : [])] : record;
}
