import { type Prices, withCost } from '../prices.ts';
import { MODEL_TYPES, merged, type PayloadFacts, payloadFacts, type SmallFields, summaryOf } from '../run-summary.ts';
import { spanKeysOf } from '../run-tree.ts';
import type { PayloadField, RunStatus, Usage } from '../run-view.ts';
import { latencyBucketOf } from '../statistics.ts';
import type { Contribution } from './counters.ts';
import { idBytes, idText, type Row, type SqliteConnection, type SqlValue } from './database.ts';
import type { EncodedOperation, EncodedPayload } from './encoded-operation.ts';
import { hasStoredPreview, readPayload, writePayload } from './payloads.ts';
import {
  fieldsOf,
  NOTHING_PATCHED,
  type PatchedNames,
  patchedPart,
  SHOWN_COLUMNS,
  type ShownColumns,
  shownColumns,
  storedFields,
  usageIn,
  withPatch,
} from './run-row.ts';

/** Previews of large payloads. */
export type StoredPreviews = Pick<PayloadFacts, 'inputs_preview' | 'outputs_preview'>;

/** A run that a call reads or changes. */
export class StoredRun {
  readonly id: string;
  readonly tenant: number;
  /** The key of the rows of the run. Undefined until it is written. */
  n: number | undefined;
  /** The key of its trace. Undefined until the run is placed. */
  trace: number | undefined;
  traceId: string;
  isNamed = false;
  parentId: string | undefined;
  /** The key of a parent that has not arrived: 32 hex digits of its id or span. */
  waitsFor: string | undefined;
  /** Whether a run below this one has usage. */
  below = false;
  fields: SmallFields = {};
  #patched: PatchedNames = NOTHING_PATCHED;
  #previews: StoredPreviews = {};
  #outputsUsage: PayloadFacts['outputs_usage'];
  #firstToken: string | undefined;
  /** Whether `#outputsUsage` is known. Otherwise it is in the stored outputs. */
  #hasUsageFact = true;
  readonly #payloads = new Map<PayloadField, EncodedPayload>();
  #shown: ShownColumns | undefined;
  #written: readonly SqlValue[] = [];
  #writtenDetails: readonly SqlValue[] = [];
  #writtenTags: readonly [startUs: number, tags: readonly string[]] | undefined;
  /** What the run has added to sums so far. */
  contribution: Contribution | undefined;
  /** Whether the run has usage, or a run below it has, as far as its ancestors know. */
  reported = false;

  constructor(id: string, tenant: number) {
    this.id = id;
    this.tenant = tenant;
    this.traceId = id;
  }

  static fromRow(row: Row, tenant: number): StoredRun {
    const run = new StoredRun(idText(row.id as Uint8Array), tenant);
    run.n = row.n as number;
    run.trace = row.trace as number;
    run.traceId = idText(row.trace_id as Uint8Array);
    run.isNamed = row.is_named === 1;
    run.parentId = row.parent === null ? undefined : idText(row.parent as Uint8Array);
    run.waitsFor = row.waits_for === null ? undefined : Buffer.from(row.waits_for as Uint8Array).toString('hex');
    run.below = row.below === 1;
    run.fields = fieldsOf(row, row.fields as string);
    if (run.isNamed) run.fields.trace_id = run.traceId;
    if (row.patched !== null) run.#patched = JSON.parse(row.patched as string);
    if (row.previews !== null) run.#previews = JSON.parse(row.previews as string);
    run.#hasUsageFact = false;
    run.#written = COLUMNS.map((column) => row[column] ?? null);
    run.#writtenDetails = DETAIL_COLUMNS.map((column) => row[column] ?? null);
    run.#shown = Object.fromEntries(SHOWN_COLUMNS.map((column) => [column, row[column] ?? null])) as ShownColumns;
    if (row.start_us !== null) run.#writtenTags = [row.start_us as number, run.fields.tags ?? []];
    run.contribution = run.#contribution();
    run.reported = run.hasUsage || run.below;
    return run;
  }

  /** The spans of the run and its parent. */
  get spans(): ReturnType<typeof spanKeysOf> {
    return spanKeysOf(this.fields);
  }

  get isVisible(): boolean {
    const { name, run_type, start_time } = this.fields;
    return name !== undefined && run_type !== undefined && start_time !== undefined;
  }

  get hasUsage(): boolean {
    return usageIn(this.#shown ?? {}) !== undefined;
  }

  take({ kind, fields: json, payloads }: EncodedOperation): void {
    const told: SmallFields = JSON.parse(json);
    const patched = patchedPart(this.fields, this.#patched);
    if (kind === 'post') this.fields = merged(merged(this.fields, told), patched);
    else this.fields = merged(this.fields, told);
    for (const payload of payloads) {
      if (kind === 'post' && this.#patched.fields.includes(payload.field)) continue;
      this.#takePayload(payload);
    }
    if (kind === 'patch') {
      const names = payloads.map(({ field }) => field);
      this.#patched = withPatch(this.#patched, told, names);
    }
    this.#shown = undefined;
  }

  #takePayload(payload: EncodedPayload): void {
    const { field, text, facts } = payload;
    this.#payloads.set(field, payload);
    if (field === 'events') this.#firstToken = facts.first_token_time;
    if (field === 'outputs') {
      this.#outputsUsage = facts.outputs_usage;
      this.#hasUsageFact = true;
    }
    if (field === 'events') return;
    const { [`${field}_preview` as const]: preview } = facts;
    const { [`${field}_preview` as const]: _earlier, ...others } = this.#previews;
    const isStored = hasStoredPreview(text) && preview !== undefined;
    this.#previews = isStored ? { ...others, [`${field}_preview`]: preview } : others;
  }

  /** Updates the columns from the fields. The run must have its place. */
  refresh(connection: SqliteConnection, prices: Prices): void {
    if (this.#shown !== undefined) return;
    const facts: PayloadFacts = {};
    const outputsUsage = this.#usageInOutputs(connection);
    const firstToken = this.#firstTokenTime(connection);
    if (outputsUsage !== undefined) facts.outputs_usage = outputsUsage;
    if (firstToken !== undefined) facts.first_token_time = firstToken;
    const summary = summaryOf(this.id, this.traceId, this.fields, facts);
    this.#shown = shownColumns(this.fields, summary && withCost(summary, prices));
  }

  #usageInOutputs(connection: SqliteConnection): PayloadFacts['outputs_usage'] {
    if (!this.#hasUsageFact && this.n !== undefined) {
      const outputs = readPayload(connection, this.n, 'outputs');
      this.#outputsUsage =
        outputs === undefined ? undefined : payloadFacts({ outputs: JSON.parse(outputs) }).outputs_usage;
      this.#hasUsageFact = true;
    }
    return this.#outputsUsage;
  }

  #firstTokenTime(connection: SqliteConnection): string | undefined {
    if (this.n === undefined || this.#payloads.has('events')) return this.#firstToken;
    const events = readPayload(connection, this.n, 'events');
    return events === undefined ? undefined : payloadFacts({ events: JSON.parse(events) }).first_token_time;
  }

  /** Writes what has changed. Returns what the run adds to sums now. */
  write(connection: SqliteConnection): Contribution | undefined {
    const shown = this.#shown;
    if (shown === undefined || this.trace === undefined) throw new Error('the run has no place');
    const values = this.#values(shown);
    const details = [
      storedFields(this.fields, shown.start_us !== null),
      jsonOrNull(this.#previews),
      this.#patchedJson(),
    ];
    if (this.n === undefined) {
      this.n = connection.insert(INSERT_RUN, ...values);
      connection.run(INSERT_DETAILS, this.n, ...details);
    } else {
      // Whether it is the root of another trace is decided there.
      const more = this.#written[TRACE_AT] === values[TRACE_AT] ? [] : ['is_root = 0'];
      update(connection, 'runs', this.n, COLUMNS, this.#written, values, more);
      update(connection, 'details', this.n, DETAIL_COLUMNS, this.#writtenDetails, details, []);
    }
    this.#written = values;
    this.#writtenDetails = details;
    for (const { field, text } of this.#payloads.values()) writePayload(connection, this.n, field, text);
    this.#payloads.clear();
    this.#writeTags(connection, this.n, shown);
    return this.#contribution();
  }

  #values(shown: ShownColumns): SqlValue[] {
    const { span } = this.spans;
    return [
      this.tenant,
      idBytes(this.id),
      this.trace ?? null,
      +this.isNamed,
      this.parentId === undefined ? null : idBytes(this.parentId),
      this.waitsFor === undefined ? null : Buffer.from(this.waitsFor, 'hex'),
      span === undefined ? null : Buffer.from(span, 'hex'),
      +this.below,
      ...SHOWN_COLUMNS.map((column) => shown[column]),
    ];
  }

  #patchedJson(): string | null {
    const { fields, extra, metadata } = this.#patched;
    return fields.length + extra.length + metadata.length === 0 ? null : JSON.stringify(this.#patched);
  }

  #writeTags(connection: SqliteConnection, n: number, { start_us }: ShownColumns): void {
    const { tags = [] } = this.fields;
    const [startUs, earlier] = this.#writtenTags ?? [0, []];
    if (start_us === startUs && earlier.length === tags.length && tags.every((tag, at) => tag === earlier[at])) return;
    for (const tag of earlier) connection.run(DELETE_TAG, this.tenant, tag, startUs, n);
    if (typeof start_us !== 'number') return;
    for (const tag of tags)
      connection.run('INSERT OR IGNORE INTO tags VALUES (?, ?, ?, ?)', this.tenant, tag, start_us, n);
    this.#writtenTags = [start_us, tags];
  }

  #contribution(): Contribution | undefined {
    const shown = this.#shown;
    if (shown === undefined || this.trace === undefined || shown.start_us === null) return undefined;
    return contributionOf({ ...shown, tenant: this.tenant, trace: this.trace, below: +this.below });
  }
}

/** Deletes the entries of a run in `tags`. */
export const DELETE_TAG = 'DELETE FROM tags WHERE tenant = ? AND tag = ? AND start_us = ? AND n = ?';

/** Returns what a row of `runs` adds to sums. The run must be visible. */
export function contributionOf(row: Row): Contribution {
  const endUs = (row.end_us as number | null) ?? undefined;
  const startUs = row.start_us as number;
  const counts = MODEL_TYPES.includes(row.run_type as string) || row.below === 0;
  const usage: Usage | undefined = counts ? usageIn(row) : undefined;
  return {
    tenant: row.tenant as number,
    trace: row.trace as number,
    startUs,
    endUs,
    project: row.project as string,
    name: row.name as string,
    runType: row.run_type as string,
    model: (row.model as string | null) ?? undefined,
    status: row.status as RunStatus,
    latencyBucket: endUs === undefined ? undefined : latencyBucketOf(Math.max(0, endUs - startUs)),
    usage,
  };
}

const COLUMNS: readonly string[] = [
  'tenant',
  'id',
  'trace',
  'is_named',
  'parent',
  'waits_for',
  'span',
  'below',
  ...SHOWN_COLUMNS,
];
const TRACE_AT = COLUMNS.indexOf('trace');
const DETAIL_COLUMNS: readonly string[] = ['fields', 'previews', 'patched'];
const INSERT_RUN = insertion('runs', COLUMNS);
const INSERT_DETAILS = insertion('details', ['n', ...DETAIL_COLUMNS]);

/** Selects the rows of a run. */
export const SELECT_RUN: string = `SELECT runs.n AS n, ${COLUMNS.map((column) => `runs.${column} AS ${column}`).join(', ')},
  ${DETAIL_COLUMNS.join(', ')}, traces.id AS trace_id, traces.evicted AS evicted
  FROM runs JOIN details ON details.n = runs.n JOIN traces ON traces.n = runs.trace`;

function insertion(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
}

/** Updates only columns that have changed, because each index on a column costs time. */
function update(
  connection: SqliteConnection,
  table: string,
  n: number,
  columns: readonly string[],
  from: readonly SqlValue[],
  to: readonly SqlValue[],
  more: readonly string[],
): void {
  const changed = [...columns.keys()].filter((at) => !isSame(from[at], to[at]));
  const assignments = [...changed.map((at) => `${columns[at]} = ?`), ...more];
  if (assignments.length === 0) return;
  const sql = `UPDATE ${table} SET ${assignments.join(', ')} WHERE n = ?`;
  connection.run(sql, ...changed.map((at) => to[at] ?? null), n);
}

function isSame(a: SqlValue | undefined, b: SqlValue | undefined): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
  return a === b;
}

/** Returns JSON text of an object, or null if it is empty. */
function jsonOrNull(value: object): string | null {
  const text = JSON.stringify(value);
  return text === '{}' ? null : text;
}
