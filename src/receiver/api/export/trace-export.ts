import { exactJson, parseExact } from '../../../payload/fields.ts';
import type { Attachment } from '../../../run/record.ts';
import { grouped } from '../../domain/grouped.ts';
import type { RunQuery } from '../../domain/query/query.ts';
import type { StoredRun } from '../../domain/run-view.ts';
import { type Parsed, parsedQuery } from '../../filter/run-filter.ts';
import { jsonPieces } from '../../http/json-pieces.ts';
import type { Reader } from '../../store/store.ts';

export const FORMAT = 'runspan-trace';
export const VERSION = 1;

/** Number of runs, and length of their JSON text, whose feedback is read at once. */
const BATCH_RUNS = 2_000;
const BATCH_LENGTH = 4 * 1024 * 1024;

/**
 * Yields the JSON text of a trace in pieces. The text contains all data, with attachments in base64. Returns undefined
 * if the trace is unknown.
 */
export async function exportPieces(reader: Reader, traceId: string): Promise<AsyncIterable<string> | undefined> {
  const { store, scope } = reader;
  const runs = store.runs(scope, parsedQuery({ traceId }))[Symbol.asyncIterator]();
  const [first, feedback] = await Promise.all([runs.next(), store.feedback(scope, [traceId])]);
  if (first.done === true) return undefined;
  const head = { format: FORMAT, version: VERSION, feedback };
  return jsonPieces(head, 'runs', exportedRuns(reader, first, runs));
}

export async function exportTrace(reader: Reader, traceId: string): Promise<string | undefined> {
  const pieces = await exportPieces(reader, traceId);
  return pieces && joined(pieces);
}

export async function joined(pieces: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += piece;
  return text;
}

/** Yields each run that matches the query as a line of JSON, with its attachments in base64 and its feedback. */
export async function* exportedLines(reader: Reader, query: Parsed<RunQuery>): AsyncGenerator<string> {
  const { store, scope } = reader;
  const runs = store.runs(scope, query)[Symbol.asyncIterator]();
  for await (const texts of batches(exportedRuns(reader, await runs.next(), runs), BATCH_RUNS, BATCH_LENGTH)) {
    const some = texts.map((text): StoredRun => parseExact(text));
    const traceIds = new Set(some.map(({ id, trace_id = id }) => trace_id));
    const given = grouped(await store.feedback(scope, [...traceIds]), ({ run_id }) => run_id);
    // Clients may send payloads with line breaks between values, so the text is written again.
    for (const run of some) yield `${exactJson({ ...run, feedback: given.get(run.id) })}\n`;
  }
}

/** Yields texts in batches that end with the text that reaches the maximum number or the total length. */
export async function* batches(
  texts: AsyncIterable<string>,
  textsMax: number,
  lengthMax: number,
): AsyncGenerator<string[]> {
  let batch: string[] = [];
  let length = 0;
  for await (const text of texts) {
    batch.push(text);
    length += text.length;
    if (batch.length < textsMax && length < lengthMax) continue;
    yield batch;
    [batch, length] = [[], 0];
  }
  if (batch.length > 0) yield batch;
}

async function* exportedRuns(reader: Reader, first: IteratorResult<string>, others: AsyncIterator<string>) {
  for (let next = first; next.done !== true; next = await others.next()) {
    // To save time, a run is parsed only if its JSON contains `"attachments":[`, which may also occur in a payload.
    yield next.value.includes('"attachments":[') ? await withAttachments(reader, next.value) : next.value;
  }
}

async function withAttachments({ store, scope }: Reader, text: string): Promise<string> {
  const { attachments, ...run } = parseExact<StoredRun>(text);
  if (attachments === undefined) return text;
  const stored = await Promise.all(attachments.map(({ name }) => store.attachment(scope, run.id, name)));
  return exactJson({ ...run, attachments: stored.filter((one) => one !== undefined).map(encodedAttachment) });
}

function encodedAttachment({ name, mimeType, bytes }: Attachment): { name: string; mime_type: string; data: string } {
  return { name, mime_type: mimeType, data: Buffer.from(bytes).toString('base64') };
}
