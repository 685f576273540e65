import { exactJson, parseExact } from '../../../payload/fields.ts';
import { parseIsoTimestamp } from '../../../run/time.ts';
import { grouped } from '../../domain/grouped.ts';
import { type Age, type FieldAges, identityOf, PATCH, withRecord } from '../../domain/identity.ts';
import type { RunFields, RunOperation } from '../../domain/run-message.ts';
import { PAYLOAD_FIELDS, type PayloadField } from '../../domain/run-view.ts';
import { factsIn, merged, payloadFactsOf, type SmallFields, type StoredFacts } from '../../domain/summary.ts';
import { AssembledRun } from '../../domain/trace/assemble.ts';
import { type ClickHouse, type InsertRow, type Sql, sql, string, uuids } from './connection.ts';

/** Kind of the rows that delete a trace. That of other rows in the table `messages` is their age. */
export const TOMBSTONE: number = PATCH + 1;
/** Kind of the rows that delete a run of a trace that stays. */
export const RUN_TOMBSTONE: number = PATCH + 2;

/** The group and the day under which all messages of a run are stored. */
export interface Place {
  readonly group_id: string;
  /** The day as `YYYY-MM-DD`. */
  readonly day: string;
}

/** A stored message, without its payloads. */
export interface MessageRow {
  readonly group_id: string;
  readonly id: string;
  readonly kind: number;
  readonly received_us: number;
  /** All other fields, as JSON. */
  readonly fields: string;
  /** The searchable fields other than payloads (name, error, tags and `extra`), as JSON. */
  readonly searched: string;
  /** `StoredFacts`, as JSON. */
  readonly facts: string;
}

/** A stored message, with its payloads as JSON. A missing payload is an empty string. */
export type WholeMessageRow = MessageRow & PayloadRow;

export type PayloadRow = Pick<MessageRow, 'id' | 'kind' | 'received_us'> & Readonly<Record<PayloadField, string>>;

export const MESSAGE_COLUMNS: Sql = sql('group_id, id, kind, received_us, fields, searched, facts');

/** A message to store. Messages of the same run and age in a batch are merged into one. */
export interface Message {
  readonly tenant: string;
  readonly id: string;
  readonly age: Age;
  fields: RunFields;
  texts: Partial<Record<PayloadField, string>>;
}

export function insertRowOf(
  { tenant, id, age, fields, texts }: Message,
  { group_id, day }: Place,
  receivedUs: number,
): InsertRow {
  const { inputs: _inputs, outputs: _outputs, events: _events, name, error, tags, extra, ...others } = fields;
  const facts: { -readonly [Field in keyof StoredFacts]: StoredFacts[Field] } = {};
  for (const field of PAYLOAD_FIELDS) {
    if (fields[field] === undefined) continue;
    facts[field] = payloadFactsOf(fields, field, { hasPreview: true, hasTools: true });
  }
  return {
    tenant,
    day,
    group_id,
    id,
    kind: age,
    received_us: receivedUs,
    fields: exactJson(others),
    searched: exactJson({ name, error, tags, extra }),
    facts: JSON.stringify(facts),
    payloads: PAYLOAD_FIELDS.map((field) => texts[field] ?? ''),
  };
}

export function messageTexts({ fields, texts }: RunOperation): Message['texts'] {
  const all: Message['texts'] = { ...texts };
  for (const field of PAYLOAD_FIELDS) {
    if (fields[field] !== undefined) all[field] = unescaped(all[field] ?? exactJson(fields[field]));
  }
  return all;
}

/** Decodes `\uXXXX` escapes in JSON, except those that JSON requires. The text index does not decode escapes. */
function unescaped(json: string): string {
  if (!json.includes('\\u')) return json;
  return json.replaceAll(ESCAPES, (found) => {
    if (!found.startsWith('\\u')) return found;
    const text: string = JSON.parse(`"${found}"`);
    return text.isWellFormed() && JSON.stringify(text) === `"${text}"` ? text : found;
  });
}

/** Matches either a sequence of `\uXXXX` escapes or a single other escape. */
const ESCAPES = /(?:\\u[\da-f]{4})+|\\./gi;

/** Merges a later message of the same run and age into a message. */
export function addTo(message: Message, { fields, texts }: Pick<RunOperation, 'fields' | 'texts'>): void {
  message.fields = merged(message.fields, fields);
  message.texts = { ...message.texts, ...texts };
}

/** Reads columns of the posts and patches of runs. Returns them by run id, sorted by arrival. */
export async function readMessages<Row extends Pick<MessageRow, 'id'>>(
  db: ClickHouse,
  tenant: string,
  runs: readonly { readonly id: string; readonly group_id: string }[],
  columns: Sql,
): Promise<ReadonlyMap<string, Row[]>> {
  const groups = uuids([...new Set(runs.map(({ group_id }) => group_id))]);
  const ids = uuids(runs.map(({ id }) => id));
  const rows = await db.rows<Row>(
    sql`SELECT ${columns} FROM messages WHERE tenant = ${string(tenant)} AND group_id IN (${groups}) AND id IN (${ids})
      AND kind < ${TOMBSTONE} ORDER BY received_us`,
  );
  return grouped(rows, ({ id }) => id);
}

/** A run of a group, merged from its messages. */
export interface GroupRun {
  readonly group_id: string;
  readonly run: AssembledRun;
  readonly startsUs: ReadonlySet<number>;
  readonly latestUs: number;
}

/** Merges a run's posts and patches. The rows must be sorted by arrival. */
export function mergedRun(id: string, rows: readonly MessageRow[]): GroupRun {
  const run = new AssembledRun(id, rows[0]?.received_us ?? 0);
  const startsUs = new Set<number>();
  const ages: FieldAges = {};
  for (const { kind, fields, searched } of rows) {
    const record: SmallFields = Object.assign(parseExact<SmallFields>(fields), parseExact(searched));
    run.fields = withRecord<SmallFields>(ages, run.fields, kind as Age, record).fields;
    const startUs = parseIsoTimestamp(record.start_time ?? '');
    if (startUs !== undefined) startsUs.add(startUs);
  }
  const facts = rows
    .toSorted(byPrecedence)
    .reduce((sum: StoredFacts, row) => Object.assign(sum, JSON.parse(row.facts)), {});
  run.facts = factsIn(facts);
  run.identity = identityOf(run.fields);
  return { group_id: rows[0]?.group_id ?? '', run, startsUs, latestUs: rows.at(-1)?.received_us ?? 0 };
}

export function payloadsIn(rows: readonly PayloadRow[]): Partial<Record<PayloadField, string>> {
  const ordered = rows.toSorted(byPrecedence);
  const payloads: Partial<Record<PayloadField, string>> = {};
  for (const row of ordered) for (const field of PAYLOAD_FIELDS) if (row[field] !== '') payloads[field] = row[field];
  return payloads;
}

/** Sorts the messages of a run, so that a later one takes precedence. */
export function byPrecedence(
  a: Pick<PayloadRow, 'kind' | 'received_us'>,
  b: Pick<PayloadRow, 'kind' | 'received_us'>,
): number {
  return a.kind - b.kind || a.received_us - b.received_us;
}

/** Returns the day of a time as `YYYY-MM-DD`. */
export function dayOfMs(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** Returns the day on which a trace starts, from the `dotted_order` or the start time of one of its runs. */
export function dayOf({ dotted_order: order, start_time: startTime }: RunFields): string | undefined {
  const digits = order === undefined ? undefined : /^(\d{4})(\d\d)(\d\d)T/.exec(order);
  if (digits) return digits.slice(1).join('-');
  return startTime === undefined || parseIsoTimestamp(startTime) === undefined ? undefined : startTime.slice(0, 10);
}
