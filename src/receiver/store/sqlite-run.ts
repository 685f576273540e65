import { parseIsoTimestamp } from '../../run/time.ts';
import { waitsFor } from './family.ts';
import { type Prices, withCost } from './prices.ts';
import { projectOf } from './run-filter.ts';
import { merged, type Place } from './run-state.ts';
import { MODEL_TYPES, type PayloadFacts, type SmallFields, summaryOf } from './run-summary.ts';
import type { PayloadField, RunStatus, RunSummary, Usage } from './run-view.ts';
import type { SqliteConnection } from './sqlite-connection.ts';
import type { Row, SqlValue } from './sqlite-engine.ts';
import { idBytes, idText } from './sqlite-id.ts';
import { PAYLOAD_FIELDS, type ToldPayload, type ToldRun } from './told-run.ts';

/** The values of a row, in the order of its columns. */
type Values = readonly SqlValue[];

/** What a run adds to the figures of its trace. */
export interface Share {
  readonly traceId: string;
  readonly isPending: boolean;
  readonly isError: boolean;
  readonly endUs: number | undefined;
  readonly usage: Usage | undefined;
  readonly isModelCall: boolean;
  /** The position among the runs of the trace. */
  readonly dottedOrder: string;
}

/** A run that is being changed: its stored state, the changes since, and the code that writes it back. */
export class SqliteRun {
  readonly id: string;
  readonly #prices: Prices;
  /** The key of its rows; undefined before it has any. */
  n: number | undefined;
  place: Place | undefined;
  /** Of the run as it stands in the file; undefined while it cannot be shown. */
  writtenShare: Share | undefined;
  #posted: SmallFields = {};
  #patched: SmallFields = {};
  /** The text that a layer was read from or came as, as long as it is right. */
  #texts: { posted: string | null; patched: string | null } = { posted: null, patched: null };
  #fields: SmallFields = {};
  #facts: PayloadFacts = {};
  #writtenRun: Values = [];
  #writtenDetails: Values = [];
  /** By field: the text, and whether a patch told it. */
  readonly #payloads = new Map<PayloadField, ToldPayload & { readonly isPatched: boolean }>();

  constructor(id: string, prices: Prices) {
    this.id = id;
    this.#prices = prices;
  }

  /** The run as the file has it. */
  static read(connection: SqliteConnection, id: string, prices: Prices): SqliteRun | undefined {
    const row = connection.one(READ, idBytes(id));
    if (row === undefined) return undefined;
    const run = new SqliteRun(id, prices);
    run.n = row.n as number;
    run.#writtenRun = RUN_COLUMNS.map((column) => row[column] ?? null);
    run.#writtenDetails = DETAIL_COLUMNS.map((column) => row[column] ?? null);
    run.place = {
      traceId: idText(row.trace_id as Uint8Array),
      dottedOrder: (row.dotted_order as string | null) ?? undefined,
      level: row.level as number,
    };
    run.#texts = { posted: row.posted as string | null, patched: row.patched as string | null };
    run.#posted = parsed(run.#texts.posted);
    run.#patched = parsed(run.#texts.patched);
    run.#fields = merged(run.#posted, run.#patched);
    run.#facts = parsed(row.facts as string | null);
    const outputsUsage = row.outputs_usage as string | null;
    if (outputsUsage !== null) run.#facts.outputs_usage = parsed(outputsUsage);
    if (row.start_us !== null) {
      run.writtenShare = shareOf(
        run.place,
        row.status as RunStatus,
        (row.end_us as number | null) ?? undefined,
        row.run_type as string,
        usageIn(row),
      );
    }
    return run;
  }

  get fields(): SmallFields {
    return this.#fields;
  }

  take(connection: SqliteConnection, { kind, fields, payloads }: ToldRun): void {
    const layer = kind === 'post' ? 'posted' : 'patched';
    const isFirst = this.#texts[layer] === null;
    const told: SmallFields = JSON.parse(fields);
    if (kind === 'post') this.#posted = isFirst ? told : merged(this.#posted, told);
    else this.#patched = isFirst ? told : merged(this.#patched, told);
    this.#texts[layer] = isFirst ? fields : JSON.stringify(kind === 'post' ? this.#posted : this.#patched);
    this.#fields = merged(this.#posted, this.#patched);
    for (const payload of payloads) {
      if (kind === 'post' && this.#isPatched(connection, payload.field)) continue;
      this.#payloads.set(payload.field, { ...payload, isPatched: kind === 'patch' });
      this.#facts = { ...withoutFactsOf(payload.field, this.#facts), ...payload.facts };
    }
  }

  write(connection: SqliteConnection): void {
    const summary = this.#summary();
    const values = this.#runValues(summary);
    const details = this.#detailValues(summary);
    if (this.n === undefined) {
      this.n = connection.insert(INSERT_RUN, idBytes(this.id), ...values);
      connection.run(INSERT_DETAILS, this.n, ...details);
    } else {
      // Whether it is the root there, the trace that it has moved to says.
      const hasMoved = !isSame(this.#writtenRun[0], values[0]);
      update(connection, 'runs', this.n, RUN_COLUMNS, this.#writtenRun, values, hasMoved ? ['is_root = 0'] : []);
      update(connection, 'details', this.n, DETAIL_COLUMNS, this.#writtenDetails, details, []);
    }
    this.#writtenRun = values;
    this.#writtenDetails = details;
    for (const { field, text, isPatched } of this.#payloads.values()) {
      connection.run('INSERT OR REPLACE INTO payloads VALUES (?, ?, ?)', payloadKey(this.n, field), +isPatched, text);
    }
    this.#payloads.clear();
  }

  #isPatched(connection: SqliteConnection, field: PayloadField): boolean {
    const told = this.#payloads.get(field);
    if (told !== undefined) return told.isPatched;
    if (this.n === undefined) return false;
    return connection.number('SELECT patched FROM payloads WHERE n = ?', payloadKey(this.n, field)) === 1;
  }

  #summary(): RunSummary | undefined {
    if (this.place?.dottedOrder === undefined) return undefined;
    const told = summaryOf(this.id, this.place.traceId, this.#fields, this.#facts);
    return told && withCost(told, this.#prices);
  }

  #runValues(summary: RunSummary | undefined): Values {
    const { place } = this;
    const parentId = this.#fields.parent_run_id;
    const waits = waitsFor(this);
    const parentBytes = parentId === undefined ? null : idBytes(parentId);
    const traceBytes = idBytes(place?.traceId ?? this.id);
    const placed = [
      traceBytes,
      parentBytes,
      waits === undefined ? null : parentBytes,
      place?.dottedOrder ?? null,
      place?.level ?? 0,
    ];
    const startUs = parseIsoTimestamp(summary?.start_time ?? '');
    if (place === undefined || summary === undefined || startUs === undefined) {
      this.writtenShare = undefined;
      return [...placed, ...SHOWN_COLUMNS.map(() => null)];
    }
    const { session_id, usage, status, run_type } = summary;
    const endUs = summary.end_time === undefined ? undefined : parseIsoTimestamp(summary.end_time);
    const project = projectOf(summary);
    this.writtenShare = shareOf(place, status, endUs, run_type, usage);
    return [
      ...placed,
      startUs,
      endUs ?? null,
      endUs === undefined ? null : Math.max(0, endUs - startUs),
      project,
      // Asked for by project as well; few runs have both a name and an id of it.
      session_id === undefined || session_id === project ? null : session_id,
      summary.name,
      run_type,
      status,
      summary.model ?? null,
      usage?.input_tokens ?? null,
      usage?.output_tokens ?? null,
      usage?.total_tokens ?? null,
      usage?.total_cost ?? null,
    ];
  }

  #detailValues(summary: RunSummary | undefined): Values {
    const { outputs_usage, ...facts } = this.#facts;
    const { posted, patched } = this.#texts;
    const told = [jsonOrNull(facts), jsonOrNull(outputs_usage), posted, patched];
    if (summary === undefined) return [null, null, ...told];
    const { name, run_type, status, error, model, usage, session_name, session_id, tags } = summary;
    const outline = JSON.stringify({ name, run_type, status, error, model, usage });
    return [outline, jsonOrNull({ session_name, session_id, tags }), ...told];
  }
}

/** The key of a payload's row. */
export function payloadKey(n: number, field: PayloadField): number {
  return n * 4 + PAYLOAD_FIELDS.indexOf(field);
}

/** Those that are empty while the run cannot be shown. */
const SHOWN_COLUMNS: readonly string[] = [
  'start_us',
  'end_us',
  'latency_us',
  'project',
  'session_id',
  'name',
  'run_type',
  'status',
  'model',
  'input_tokens',
  'output_tokens',
  'total_tokens',
  'total_cost',
];
const RUN_COLUMNS: readonly string[] = [
  'trace_id',
  'parent_id',
  'waits_for',
  'dotted_order',
  'level',
  ...SHOWN_COLUMNS,
];
const DETAIL_COLUMNS: readonly string[] = ['outline', 'listing', 'facts', 'outputs_usage', 'posted', 'patched'];

const READ = `SELECT ${[...RUN_COLUMNS, ...DETAIL_COLUMNS].join(', ')}, runs.n AS n FROM runs JOIN details USING (n)
  WHERE id = ?`;
const INSERT_RUN = insertion('runs', ['id', ...RUN_COLUMNS]);
const INSERT_DETAILS = insertion('details', ['n', ...DETAIL_COLUMNS]);

function insertion(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
}

/** Names only columns that have changed: each that an index has costs an entry taken out and another put in. */
function update(
  connection: SqliteConnection,
  table: string,
  n: number,
  columns: readonly string[],
  from: Values,
  to: Values,
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

function shareOf(
  { traceId, dottedOrder = '' }: Place,
  status: RunStatus,
  endUs: number | undefined,
  runType: string,
  usage: Usage | undefined,
): Share {
  return {
    traceId,
    isPending: status === 'pending',
    isError: status === 'error',
    endUs,
    usage,
    isModelCall: MODEL_TYPES.includes(runType),
    dottedOrder,
  };
}

/** The usage that a row tells. */
export function usageIn(row: Row): Usage | undefined {
  const usage: Usage = {};
  for (const key of ['input_tokens', 'output_tokens', 'total_tokens', 'total_cost'] as const) {
    const value = row[key] ?? null;
    if (value !== null) usage[key] = value as number;
  }
  return Object.keys(usage).length === 0 ? undefined : usage;
}

function withoutFactsOf(field: PayloadField, facts: PayloadFacts): PayloadFacts {
  const { inputs_preview, outputs_preview, outputs_usage, first_token_time } = facts;
  const left: PayloadFacts = {};
  if (field !== 'inputs' && inputs_preview !== undefined) left.inputs_preview = inputs_preview;
  if (field !== 'outputs' && outputs_preview !== undefined) left.outputs_preview = outputs_preview;
  if (field !== 'outputs' && outputs_usage !== undefined) left.outputs_usage = outputs_usage;
  if (field !== 'events' && first_token_time !== undefined) left.first_token_time = first_token_time;
  return left;
}

function parsed<Value extends object>(text: string | null): Value {
  return JSON.parse(text ?? '{}');
}

/** JSON text of an object, null when nothing is in it. */
function jsonOrNull(value: object | undefined): string | null {
  const text = value === undefined ? '{}' : JSON.stringify(value);
  return text === '{}' ? null : text;
}
