import * as v from 'valibot';
import type { RunFields, RunOperation } from '../domain/run-message.ts';
import { PAYLOAD_FIELDS } from '../domain/run-view.ts';
import type { Location, ValidationIssues } from '../http/http-error.ts';
import { type DottedOrder, runFields } from '../http/run-fields.ts';
import { checkKnownFields, type Schema, validate, withoutNulls } from '../http/validation.ts';

/** Kind of request. Each kind requires and accepts different fields of a run. */
interface RunFormat {
  /** `simple` is `POST /runs` and `PATCH /runs/{id}`. `batch` is `POST /runs/batch`, which LangSmith clients use. */
  readonly format: 'multipart' | 'simple' | 'batch';
  readonly kind: 'post' | 'patch';
  readonly strict: boolean;
}

/** A message that creates a run (post) or updates a run (patch). */
interface RunMessage {
  readonly record: Readonly<Record<string, unknown>>;
  readonly loc: Location;
  /** Run id from the part name or the URL path. @default the `id` of the record */
  readonly id?: string | undefined;
  /** Fields from parts named `<main part>.<field>`. They take precedence over those of `record`. */
  readonly payloads?: Readonly<Record<string, unknown>>;
}

/** Validates a post or patch. The result is valid only if no issue was added. */
export function readRun(format: RunFormat, message: RunMessage, issues: ValidationIssues): RunOperation {
  const { kind, strict } = format;
  const { record, loc, payloads = {} } = message;
  const schema = schemaOf(format);
  if (strict) {
    checkKnownFields(schema, record, loc, issues);
    checkPlaces(format, record, loc, issues);
  }
  const locate = ([field = '', ...keys]: Location): Location =>
    Object.hasOwn(payloads, field) ? ['body', `${loc[1]}.${field}`, ...keys] : [...loc, field, ...keys];
  const input = validate(schema, { ...record, ...payloads }, loc, issues, locate);
  if (input === undefined) return { kind, id: '', fields: {}, attachments: [] };
  const id = message.id ?? input.id ?? '';
  checkRelations(format, id, input, (field, type, msg) => issues.add([...loc, field], type, msg));
  const fields = presentFields(input);
  // In a batch, the other runs would be refused, too. In a multipart request, payloads are separate parts.
  if (format.format === 'simple' && Object.keys(fields).length === 0)
    issues.add(loc, 'missing', 'Send a field: without one, nothing is stored');
  return { kind, id, fields, attachments: [] };
}

/** Validated fields of a run. Null fields count as absent. */
type RunInput = { readonly [Field in Exclude<keyof RunFields, 'dotted_order'>]?: RunFields[Field] | null } & {
  readonly id?: string | null;
  readonly dotted_order?: DottedOrder | null;
};

/** Adds an issue for each field that must be sent in another part or request. */
function checkPlaces({ format, kind }: RunFormat, record: object, loc: Location, issues: ValidationIssues): void {
  const has = (field: string): boolean => Object.hasOwn(record, field);
  const add = (place: string, ...fields: readonly string[]): void => {
    for (const field of fields.filter(has))
      issues.add([...loc, field], 'misplaced', `Expected \`${field}\` in ${place}`);
  };
  // A patch with these fields contains the whole run. The exporter sends one when a run ends that it has posted before.
  const isWhole = kind === 'patch' && ['name', 'run_type', 'start_time'].every(has);
  if (format === 'multipart') {
    add('a separate part', ...PAYLOAD_FIELDS);
  } else if (!isWhole) {
    add('`POST /runs/multipart`', 'events');
    if (kind === 'post') add('`PATCH /runs/{run_id}`', 'outputs', 'end_time');
    else add('`POST /runs`', 'inputs');
  }
}

/** Adds an issue for each field that contradicts another field or the run id. */
function checkRelations(
  { format, kind, strict }: RunFormat,
  id: string,
  input: RunInput,
  add: (field: keyof RunInput, type: string, msg: string) => void,
): void {
  const {
    session_name: name,
    session_id: session,
    parent_run_id: parent,
    trace_id: trace,
    dotted_order: order,
  } = input;
  if (input.id !== undefined && input.id !== id) add('id', 'mismatch', `\`id\` is not ${id}`);
  if (strict && kind === 'post' && name === undefined && session === undefined) {
    add('session_name', 'missing', 'Send `session_name` or `session_id`');
  }
  if (strict && name !== undefined && session !== undefined) {
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
  if (strict && format === 'multipart' && parentId !== undefined && !parent) {
    add('parent_run_id', 'missing', '`parent_run_id` is missing, although `dotted_order` has a parent');
  }
}

/** Returns the fields that are present. A `dotted_order` also determines the trace id and the parent's id. */
function presentFields({ id: _id, dotted_order: order, ...input }: RunInput): RunFields {
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

type RunSchema = Schema<RunInput> & { readonly entries: object };

/** Cache of schemas. A receiver uses only a few schemas, so each is created on first use. */
const schemas = new Map<string, RunSchema>();

function schemaOf(format: RunFormat): RunSchema {
  const key = `${format.format} ${format.kind} ${format.strict}`;
  const schema = schemas.get(key) ?? createSchema(format);
  schemas.set(key, schema);
  return schema;
}

function createSchema({ format, kind, strict }: RunFormat): RunSchema {
  const [always, inStrictMode] = REQUIRED[`${format} ${kind}`];
  const required: readonly string[] = strict ? [...always, ...inStrictMode] : always;
  const optional = (one: Schema<unknown>): Schema<unknown> => (strict ? v.optional(one) : v.nullish(one));
  const fields = Object.entries(runFields({ hexIds: !strict || format === 'simple', loose: !strict }));
  const entries = fields.map(([field, one]) => [field, required.includes(field) ? one : optional(one)]);
  return v.object(Object.fromEntries(entries)) as unknown as RunSchema;
}

type Fields = readonly (keyof RunInput)[];

/** Fields that are always required, and fields that only strict mode requires. */
const REQUIRED: Readonly<Record<`${RunFormat['format']} ${RunFormat['kind']}`, readonly [Fields, Fields]>> = {
  'simple post': [['id', 'name', 'run_type', 'inputs', 'start_time'], []],
  // `outputs` is not required, because a failed run has none.
  'simple patch': [[], ['end_time']],
  'batch post': [['id', 'name', 'run_type', 'start_time'], []],
  'batch patch': [['id'], []],
  'multipart post': [['trace_id', 'dotted_order', 'name', 'run_type', 'start_time'], ['id']],
  'multipart patch': [
    ['trace_id', 'dotted_order'],
    ['id', 'name', 'run_type', 'start_time', 'end_time'],
  ],
};
