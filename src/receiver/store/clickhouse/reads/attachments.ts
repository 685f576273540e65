import type { Attachment } from '../../../../run/record.ts';
import { grouped } from '../../../domain/grouped.ts';
import type { RunOperation } from '../../../domain/run-message.ts';
import type { AttachmentInfo } from '../../../domain/run-view.ts';
import { refuseManyAttachments } from '../../store.ts';
import { type ClickHouse, type InsertRow, sql, string, uuidParam, uuids } from '../connection.ts';
import type { Place } from '../messages.ts';

/** Size of a chunk in bytes. As base64, a chunk has 1 MiB. Must be a multiple of 3. */
const CHUNK_BYTES = 768 * 1024;

export async function checkAttachments(
  db: ClickHouse,
  tenant: string,
  operations: readonly RunOperation[],
): Promise<void> {
  const attaching = operations.filter(({ attachments }) => attachments.length > 0);
  if (attaching.length === 0) return;
  const runIds = attaching.map(({ id }) => id);
  const stored = await attachmentInfos(db, tenant, runIds);
  refuseManyAttachments(attaching, (id) => stored.get(id)?.map(({ name }) => name));
}

/**
 * Returns the rows to insert for the attachments of operations. `places` is keyed by tenant + run id. `receivedUs` must
 * be greater than in all earlier rows of these runs.
 */
export function attachmentRows(
  tenant: string,
  operations: readonly RunOperation[],
  places: ReadonlyMap<string, Place>,
  receivedUs: number,
): InsertRow[] {
  const latest = new Map<string, { id: string; attachment: Attachment }>();
  for (const { id, attachments } of operations) {
    for (const attachment of attachments) latest.set(`${id} ${attachment.name}`, { id, attachment });
  }
  return [...latest.values()].flatMap(({ id, attachment: { name, mimeType, bytes } }) => {
    const shared = {
      tenant,
      day: places.get(tenant + id)?.day,
      run: id,
      name,
      mime_type: mimeType,
      size: bytes.length,
      received_us: receivedUs,
    };
    return chunksOf(bytes).map((data, chunk) => ({ ...shared, chunk, data }));
  });
}

function chunksOf(bytes: Uint8Array): string[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = Math.max(1, Math.ceil(buffer.length / CHUNK_BYTES));
  return Array.from({ length: count }, (_, at) => buffer.toString('base64', at * CHUNK_BYTES, (at + 1) * CHUNK_BYTES));
}

/** Returns the attachments of each run, sorted by name, without their bytes. Runs without attachments have no entry. */
export async function attachmentInfos(
  db: ClickHouse,
  tenant: string,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, AttachmentInfo[]>> {
  const rows = await db.rows<AttachmentInfo & { run: string }>(
    sql`SELECT run, name, argMax(mime_type, received_us) AS mime_type, argMax(size, received_us) AS size
      FROM attachments WHERE tenant = ${string(tenant)} AND run IN (${uuids(runIds)}) GROUP BY run, name ORDER BY name`,
  );
  const byRun = grouped(rows, ({ run }) => run);
  return new Map([...byRun].map(([run, own]) => [run, own.map(({ run: _, ...info }) => info)]));
}

/** Reads an attachment with its bytes. Does not check whether the run is visible. */
export async function readAttachment(
  db: ClickHouse,
  tenant: string,
  runId: string,
  name: string,
): Promise<Attachment | undefined> {
  const rows = await db.rows<{ mime_type: string; data: string; received_us: number }>(
    sql`SELECT mime_type, data, received_us FROM attachments
      WHERE tenant = ${string(tenant)} AND run = ${uuidParam(runId)} AND name = ${string(name)}
      ORDER BY chunk, received_us DESC LIMIT 1 BY chunk`,
  );
  const [first] = rows;
  if (first === undefined) return undefined;
  // Chunks of a replaced attachment with the same name may remain.
  const chunks = rows.filter((row) => row.received_us === first.received_us);
  const bytes = new Uint8Array(Buffer.concat(chunks.map(({ data }) => Buffer.from(data, 'base64'))));
  return { name, mimeType: first.mime_type, bytes };
}
