import { parseExact } from '../../../payload/fields.ts';
import { comparable } from '../../domain/comparable.ts';
import { addCost, type PriceList } from '../../domain/cost/prices.ts';
import { ageOf, type FieldAges, type Identity, identityOf, withRecord } from '../../domain/identity.ts';
import type { CostSource } from '../../domain/run-view.ts';
import { factsIn, type SmallFields, type StoredFacts, type StoredRunFacts, summaryOf } from '../../domain/summary.ts';
import { ALONE, callEvidenceOf, type RepeatedCall } from '../../domain/trace/repeated-calls.ts';
import { idBytes, idText, type SqliteConnection } from './file/database.ts';
import { type EncodedOperation, type EncodedPayload, writePayload } from './payloads.ts';
import type { StoredTrace } from './reads/stored-trace.ts';
import {
  copyShownColumns,
  derivedColumns,
  plainColumns,
  type RootColumns,
  RUN_COLUMNS,
  type RunRow,
  rowFields,
  rowUsage,
  type SelectedRun,
  type ShownColumns,
  storedFields,
} from './run-row.ts';

type Details = Pick<SelectedRun, 'fields' | 'facts' | 'ages'>;

export class SqliteRun {
  readonly id: string;
  readonly #tenant: number;
  readonly #prices: PriceList;
  /** Row in the table `runs`. Undefined until the run is first written. */
  row: RunRow | undefined;
  /** Undefined until the run is assigned to a trace. */
  trace: StoredTrace | undefined;
  /** The run with this id may not have arrived, see `isLinked`. */
  parentId: string | undefined;
  /** Key of the parent span, or of a parent that has not arrived: 32 hex digits from its id. */
  waitsFor: string | undefined;
  below = false;
  repeated: RepeatedCall = ALONE;
  fields: SmallFields = {};
  #ages: FieldAges = {};
  /** Cache. Each message for the run clears it. */
  #identity: Identity | undefined;
  #facts: StoredFacts = {};
  /** Derived together with `#shown`. */
  #costSource: CostSource = {};
  #payloads: EncodedPayload[] = [];
  /** Cache of the columns that are derived from the fields. Each message for the run clears the cache. */
  #shown: ShownColumns | undefined;
  #storedDetails: Details | undefined;
  #storedTags: readonly string[] = [];

  constructor(id: string, tenant: number, prices: PriceList) {
    this.id = id;
    this.#tenant = tenant;
    this.#prices = prices;
  }

  static fromRow(row: SelectedRun, trace: StoredTrace, prices: PriceList): SqliteRun {
    const run = new SqliteRun(idText(row.id), row.tenant, prices);
    run.row = row;
    run.trace = trace;
    run.parentId = row.parent === null ? undefined : idText(row.parent);
    run.waitsFor = row.waits_for === null ? undefined : Buffer.from(row.waits_for).toString('hex');
    run.below = row.below === 1;
    const headId = row.same_call === null ? undefined : idText(row.same_call);
    run.repeated = { headId, isUsageRepeated: row.is_repeated === 1 };
    run.fields = rowFields(row);
    // The parent of a span is not a field of its messages.
    if (run.isLinked && run.waitsFor !== undefined) delete run.fields.parent_run_id;
    run.#ages = JSON.parse(row.ages);
    const { cost = {}, ...facts }: StoredRunFacts = JSON.parse(row.facts ?? '{}');
    run.#facts = facts;
    run.#costSource = cost;
    run.#shown = copyShownColumns(row);
    run.#storedDetails = row;
    run.#storedTags = tagsOf(run.fields);
    return run;
  }

  /** Moves the run to another trace, in which it is not the root. The rows of the trace must have been moved. */
  moveTo(trace: StoredTrace): void {
    this.trace = trace;
    if (this.row === undefined) return;
    const { thread, user, ...root } = plainColumns(this.row);
    if (this.row.is_root === 1 && this.#shown !== undefined) this.#shown = { ...this.#shown, thread, user };
    this.row = { ...this.row, ...root, ...(this.row.is_root === 1 && { thread, user }), trace: trace.n };
  }

  get isLinked(): boolean {
    return this.parentId !== undefined && this.waitsFor !== this.parentId.replaceAll('-', '');
  }

  get identity(): Identity {
    this.#identity ??= identityOf(this.fields);
    return this.#identity;
  }

  get shown(): ShownColumns {
    if (this.#shown !== undefined) return this.#shown;
    const facts = factsIn(this.#facts);
    const summary = summaryOf(this.id, '', this.fields, facts);
    this.#costSource = summary === undefined ? {} : addCost(summary, this.#prices);
    this.#shown = derivedColumns(summary, this.fields, facts);
    return this.#shown;
  }

  get hasUsage(): boolean {
    return rowUsage(this.shown) !== undefined;
  }

  take({ kind, fields: json, payloads, identity }: EncodedOperation): void {
    const record: SmallFields = parseExact(json);
    this.#identity = this.#ages['*'] === undefined ? identity : undefined;
    const names = payloads.map(({ field }) => field);
    const taken = withRecord(this.#ages, this.fields, ageOf(kind, record), record, names);
    this.fields = taken.fields;
    for (const payload of payloads) {
      if (!taken.payloads.includes(payload.field)) continue;
      this.#payloads.push(payload);
      this.#facts = { ...this.#facts, [payload.field]: payload.facts };
    }
    this.#shown = undefined;
  }

  /** Writes changes to the run and returns the row. The run must already be assigned to a trace. */
  write(connection: SqliteConnection): RunRow {
    const { row: before, identity } = this;
    // `shown` comes last, because Node 20 is slow at adding properties after a spread.
    const columns = {
      tenant: this.#tenant,
      id: idBytes(this.id),
      trace: this.trace?.n ?? -1,
      is_root: before?.is_root ?? 0,
      outcome: before?.outcome ?? null,
      parent: this.parentId === undefined ? null : idBytes(this.parentId),
      waits_for: this.waitsFor === undefined ? null : Buffer.from(this.waitsFor, 'hex'),
      span: identity.span === undefined ? null : Buffer.from(identity.span, 'hex'),
      is_named: before?.is_named || +(this.fields.trace_id !== undefined),
      below: +this.below,
      call: jsonOrNull(callEvidenceOf(this.fields, factsIn(this.#facts))),
      same_call: this.repeated.headId === undefined ? null : idBytes(this.repeated.headId),
      is_repeated: +this.repeated.isUsageRepeated,
      ...this.shown,
    };
    const details: Details = {
      fields: storedFields(this.fields, columns.start_us !== null),
      facts: factsJson(this.#facts, this.#costSource),
      ages: JSON.stringify(this.#ages),
    };
    const n = before?.n ?? connection.insert(INSERT_RUN, ...RUN_COLUMNS.map((column) => columns[column]));
    if (before === undefined || this.#storedDetails === undefined) {
      connection.run('INSERT INTO details VALUES (?, ?, ?, ?)', n, details.fields, details.facts, details.ages);
    } else {
      connection.update('runs', n, before, columns);
      connection.update('details', n, this.#storedDetails, details);
    }
    for (const { field, text } of this.#payloads) writePayload(connection, n, field, text);
    const row = { ...columns, n };
    this.#writeTags(connection, row);
    this.row = row;
    this.#storedDetails = details;
    this.#payloads = [];
    return row;
  }

  #writeTags(connection: SqliteConnection, { n, tenant }: RunRow): void {
    const tags = tagsOf(this.fields);
    if (JSON.stringify(tags) === JSON.stringify(this.#storedTags)) return;
    for (const tag of this.#storedTags) connection.run(DELETE_TAG, tenant, tag, n);
    for (const tag of tags) connection.run('INSERT OR IGNORE INTO tags VALUES (?, ?, ?)', tenant, tag, n);
    this.#storedTags = tags;
  }
}

/** Deletes a run with all its data. */
export function deleteRun(connection: SqliteConnection, n: number): void {
  const row = connection.one<RunRow>('SELECT * FROM runs WHERE n = ?', n);
  if (row === undefined) return;
  const details = connection.one<{ fields: string }>('SELECT fields FROM details WHERE n = ?', n);
  const tags = tagsOf(JSON.parse(details?.fields ?? '{}'));
  for (const tag of tags) connection.run(DELETE_TAG, row.tenant, tag, n);
  connection.run('DELETE FROM payloads WHERE n >= ? AND n < ?', n * 4, n * 4 + 4);
  for (const table of ['attachments', 'feedback']) connection.run(`DELETE FROM ${table} WHERE run = ?`, n);
  for (const table of ['details', 'runs']) connection.run(`DELETE FROM ${table} WHERE n = ?`, n);
  // The index deletes the run's words later, because deleting words takes longer than deleting the run.
  connection.run('INSERT OR IGNORE INTO unindexed VALUES (?)', n);
}

/** Makes a run the root of a trace, or no root. Does nothing if the run is not in the trace. */
export function setRoot(
  connection: SqliteConnection,
  n: number | null | undefined,
  trace: number,
  shown: RootColumns | undefined,
): void {
  const row = connection.one<RunRow>('SELECT * FROM runs WHERE n = ? AND trace = ?', n ?? null, trace);
  if (row !== undefined) connection.update('runs', row.n, row, shown ?? plainColumns(row));
}

const DELETE_TAG = 'DELETE FROM tags WHERE tenant = ? AND tag = ? AND n = ?';

const INSERT_RUN = `INSERT INTO runs (${RUN_COLUMNS.join(', ')}) VALUES (${RUN_COLUMNS.map(() => '?').join(', ')})`;

/** Returns `StoredRunFacts` as JSON text, or null if there are none. */
export function factsJson(facts: StoredFacts, cost: CostSource): string | null {
  return jsonOrNull(Object.keys(cost).length === 0 ? facts : { ...facts, cost });
}

/** Returns the JSON text of a value, or null for an empty object or array. */
function jsonOrNull(value: object): string | null {
  const text = JSON.stringify(value);
  return text === '{}' || text === '[]' ? null : text;
}

function tagsOf({ tags = [] }: SmallFields): readonly string[] {
  return tags.map(comparable);
}
