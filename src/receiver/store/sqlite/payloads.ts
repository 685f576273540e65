import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { exactJson, parseExact } from '../../../payload/fields.ts';
import type { Attachment } from '../../../run/record.ts';
import { type Identity, identityOf } from '../../domain/identity.ts';
import type { RunFields, RunOperation } from '../../domain/run-message.ts';
import { PAYLOAD_FIELDS, type PayloadField } from '../../domain/run-view.ts';
import { type PayloadFacts, payloadFactsOf } from '../../domain/summary.ts';
import type { SqliteConnection } from './file/database.ts';

const COMPRESSED_LENGTH_MIN = 1_024;
const PREVIEW_LENGTH_MIN = 8_192;
const PLAIN = 0;
const DEFLATED = 1;

export interface EncodedPayload {
  readonly field: PayloadField;
  readonly text: string;
  /** Short payloads have no stored preview, because lists create it from the payload. */
  readonly facts: PayloadFacts | undefined;
}

/** A run operation as it is sent to the writer thread. */
export interface EncodedOperation {
  readonly kind: RunOperation['kind'];
  readonly id: string;
  readonly identity: Identity;
  /** JSON text of all fields except the payloads. */
  readonly fields: string;
  readonly payloads: readonly EncodedPayload[];
  readonly attachments: readonly Attachment[];
  /** Approximate size of the operation in memory, in bytes. */
  readonly sizeBytes: number;
}

export function encodedOperation({ kind, id, fields, texts, attachments }: RunOperation): EncodedOperation {
  const { inputs, outputs, events, ...small } = fields;
  const payloads = PAYLOAD_FIELDS.flatMap((field) => {
    if (fields[field] === undefined) return [];
    const text = texts?.[field] ?? exactJson(fields[field]);
    // This search is faster than parsing messages. The keys of every format of tool calls and results contain one of the words.
    const hasTools = text.includes('tool') || text.includes('unction');
    const facts = payloadFactsOf(fields, field, { hasPreview: text.length > PREVIEW_LENGTH_MIN, hasTools });
    return { field, text, facts: Object.keys(facts).length === 0 ? undefined : facts };
  });
  const json = exactJson(small);
  const sizes = [json, ...payloads.map(({ text }) => text), ...attachments.map(({ bytes }) => bytes)];
  const sizeBytes = sizes.reduce((sum, { length }) => sum + length, 0);
  return {
    kind,
    id,
    identity: identityOf(fields),
    fields: json,
    payloads,
    attachments: attachments.map(withOwnBuffer),
    sizeBytes,
  };
}

/** A message with a view of a larger buffer would send the whole buffer to the other thread. */
function withOwnBuffer({ name, mimeType, bytes }: Attachment): Attachment {
  return { name, mimeType, bytes: bytes.byteLength === bytes.buffer.byteLength ? bytes : Uint8Array.from(bytes) };
}

function payloadKey(n: number, field: PayloadField): number {
  return n * 4 + PAYLOAD_FIELDS.indexOf(field);
}

export function writePayload(connection: SqliteConnection, n: number, field: PayloadField, text: string): void {
  const key = payloadKey(n, field);
  const sql = 'INSERT OR REPLACE INTO payloads VALUES (?, ?, ?, ?)';
  if (text.length > COMPRESSED_LENGTH_MIN) {
    const bytes = Buffer.from(text);
    // The output is shorter than the input, so one chunk of this size can hold it. With the default chunk size of 16
    // KiB, compression takes about 10 % longer.
    const data = deflateRawSync(bytes, { level: 1, chunkSize: bytes.length });
    connection.run(sql, key, DEFLATED, bytes.length, data);
  } else connection.run(sql, key, PLAIN, Buffer.byteLength(text), text);
}

export function payloadInRow(connection: SqliteConnection, n: number, field: PayloadField): string | undefined {
  const sql = 'SELECT codec, size, data FROM payloads WHERE n = ?';
  const row = connection.one<{ codec: number; size: number; data: string | Uint8Array }>(sql, payloadKey(n, field));
  if (row === undefined) return undefined;
  if (row.codec === PLAIN) return String(row.data);
  // The output fits into one chunk. If the output filled the chunk, Node would allocate a second chunk.
  return inflateRawSync(row.data as Uint8Array, { chunkSize: row.size + 1 }).toString();
}

export function parsedPayloads(connection: SqliteConnection, n: number, fields: readonly PayloadField[]): RunFields {
  const texts = fields.map((field) => [field, payloadInRow(connection, n, field)] as const);
  return Object.fromEntries(texts.flatMap(([field, text]) => (text === undefined ? [] : [[field, parseExact(text)]])));
}

/** Returns the size of each payload of a run as JSON text, in bytes. */
export function payloadSizes(connection: SqliteConnection, n: number): Partial<Record<PayloadField, number>> {
  const sql = 'SELECT n, size FROM payloads WHERE n >= ? AND n < ? ORDER BY n';
  const rows = connection.all<{ n: number; size: number }>(sql, n * 4, n * 4 + 4);
  return Object.fromEntries(rows.map(({ n: key, size }) => [PAYLOAD_FIELDS[key % 4], size]));
}
