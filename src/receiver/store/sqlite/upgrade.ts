import type { Feedback } from '../../domain/feedback.ts';
import type { PriceList } from '../../domain/prices.ts';
import type { RunFields, RunOperation } from '../../domain/run-message.ts';
import { PAYLOAD_FIELDS, type PayloadField } from '../../domain/run-view.ts';
import { DEFAULT_SCOPE } from '../store.ts';
import { idBytes, idText, type SqliteConnection } from './database.ts';
import { encodedOperation } from './payloads.ts';
import { SqliteWriter } from './writer.ts';

/** Number of runs to copy per transaction. */
const BATCH = 500;

interface EarlierRow {
  n: number;
  id: Uint8Array;
  posted: string | null;
  patched: string | null;
}

/**
 * Copies a version 1 store to an empty store. Applies the posts of each run again, and then the patches. Traces are
 * copied in the order of their last change, which is the order in which stores delete traces.
 */
export function upgrade(from: SqliteConnection, to: SqliteConnection, prices: PriceList): void {
  const writer = new SqliteWriter(to, prices, Date.now);
  const { tenant } = DEFAULT_SCOPE;
  const inTransaction = (work: () => void): void => {
    to.exec('BEGIN');
    work();
    writer.counters.flush();
    to.exec('COMMIT');
  };
  const runs = from.all<{ n: number }>(
    'SELECT runs.n AS n FROM runs LEFT JOIN traces ON traces.id = runs.trace_id ORDER BY traces.seq, runs.n',
  );
  for (let at = 0; at < runs.length; at += BATCH) {
    inTransaction(() => {
      for (const { n } of runs.slice(at, at + BATCH)) {
        writer.apply(tenant, operationsOf(from, n).map(encodedOperation));
      }
    });
  }
  inTransaction(() => {
    for (const { json } of from.each<{ json: string }>('SELECT json FROM feedback ORDER BY n')) {
      writer.addFeedback(tenant, JSON.parse(json) as Feedback);
    }
    restoreChanges(from, to);
  });
}

function operationsOf(from: SqliteConnection, n: number): RunOperation[] {
  const row = from.one<EarlierRow>('SELECT n, id, posted, patched FROM runs JOIN details USING (n) WHERE n = ?', n);
  if (row === undefined) return [];
  const attachments = from
    .all<{ name: string; mime_type: string; bytes: Uint8Array }>(
      'SELECT * FROM attachments WHERE run = ? ORDER BY n',
      n,
    )
    .map(({ name, mime_type, bytes }) => ({ name, mimeType: mime_type, bytes: Uint8Array.from(bytes) }));
  const layer = (kind: RunOperation['kind'], json: string | null): RunOperation[] => {
    const texts = payloadsOf(from, n, kind === 'patch');
    if (json === null && Object.keys(texts).length === 0) return [];
    const fields: RunFields = JSON.parse(json ?? '{}');
    for (const [field, text] of Object.entries(texts)) Object.assign(fields, { [field]: JSON.parse(text) });
    return [{ kind, id: idText(row.id), fields, texts, attachments: [] }];
  };
  const operations = [...layer('post', row.posted), ...layer('patch', row.patched)];
  const attached =
    attachments.length === 0 ? [] : [{ kind: 'post' as const, id: idText(row.id), fields: {}, attachments }];
  return [...operations, ...attached];
}

function payloadsOf(from: SqliteConnection, n: number, isPatched: boolean): Partial<Record<PayloadField, string>> {
  const sql = 'SELECT n, text FROM payloads WHERE n >= ? AND n < ? AND patched = ?';
  const rows = from.all<{ n: number; text: string }>(sql, n * 4, n * 4 + 4, +isPatched);
  return Object.fromEntries(rows.map(({ n: key, text }) => [PAYLOAD_FIELDS[key % 4], text]));
}

/** Restores the time of each trace's last change. */
function restoreChanges(from: SqliteConnection, to: SqliteConnection): void {
  const rows = from.each<{ id: Uint8Array; seq: number; changed_ms: number }>('SELECT id, seq, changed_ms FROM traces');
  for (const { id, seq, changed_ms } of rows) {
    to.run('UPDATE traces SET seq = ?, changed_ms = ? WHERE id = ?', seq, changed_ms, idBytes(idText(id)));
  }
  to.run("UPDATE meta SET value = ? WHERE key = 'seq'", from.number("SELECT value FROM meta WHERE key = 'seq'"));
}
