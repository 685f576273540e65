import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { PAYLOAD_FIELDS, type PayloadField } from '../run-view.ts';
import type { SqliteConnection } from './database.ts';

/** Longer payloads are compressed. */
const COMPRESSED_LENGTH_MIN = 1_024;
const SMALL_WINDOW_BYTES = 8_192;
const PREVIEW_LENGTH_MIN = 8_192;
const PLAIN = 0;
const DEFLATED = 1;

interface PayloadRow {
  codec: number;
  data: string | Uint8Array;
}

/** Returns the key of the row of a payload. */
export function payloadKey(n: number, field: PayloadField): number {
  return n * 4 + PAYLOAD_FIELDS.indexOf(field);
}

/** Whether the preview of a payload is stored. Other previews are made from the payload when a list is read. */
export function hasStoredPreview(text: string): boolean {
  return text.length > PREVIEW_LENGTH_MIN;
}

export function writePayload(connection: SqliteConnection, n: number, field: PayloadField, text: string): void {
  const key = payloadKey(n, field);
  const sql = 'INSERT OR REPLACE INTO payloads VALUES (?, ?, ?, ?)';
  if (text.length > COMPRESSED_LENGTH_MIN) {
    const bytes = Buffer.from(text);
    connection.run(sql, key, DEFLATED, bytes.length, deflated(bytes));
  } else connection.run(sql, key, PLAIN, Buffer.byteLength(text), text);
}

function deflated(bytes: Buffer): Buffer {
  // A window of the size of most payloads takes a third less time.
  const isSmall = bytes.length <= SMALL_WINDOW_BYTES;
  return deflateRawSync(bytes, isSmall ? { level: 1, windowBits: 13, memLevel: 6 } : { level: 1 });
}

/** Returns the JSON text of a payload. */
export function readPayload(connection: SqliteConnection, n: number, field: PayloadField): string | undefined {
  const row = connection.one<PayloadRow>('SELECT codec, data FROM payloads WHERE n = ?', payloadKey(n, field));
  if (row === undefined) return undefined;
  return row.codec === PLAIN ? String(row.data) : inflateRawSync(row.data as Uint8Array).toString();
}

/** Returns the bytes of JSON text of each payload of a run. */
export function payloadSizes(connection: SqliteConnection, n: number): Partial<Record<PayloadField, number>> {
  const rows = connection.all<{ n: number; size: number }>(
    'SELECT n, size FROM payloads WHERE n >= ? AND n < ? ORDER BY n',
    n * 4,
    n * 4 + 4,
  );
  return Object.fromEntries(rows.map(({ n: key, size }) => [PAYLOAD_FIELDS[key % 4], size]));
}
