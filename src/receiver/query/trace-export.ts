import { isObject } from '../../base/options.ts';
import type { Attachment } from '../../run/record.ts';
import { parseDottedOrder, parseIsoTimestamp } from '../../run/time.ts';
import type { Feedback } from '../feedback/feedback.ts';
import { readFeedback } from '../feedback/feedback-fields.ts';
import { HttpError, type Location, ValidationIssues } from '../http-error.ts';
import { jsonPieces } from '../ingest/json-pieces.ts';
import { readRun, rulesFor } from '../ingest/run-message.ts';
import type { StoredRun } from '../store/run-view.ts';
import type { RunOperation, Store } from '../store/store.ts';

/** How an export says what it is. */
const FORMAT = 'runspan-trace';
const VERSION = 1;

/** The trace as JSON in pieces, everything that a store has of it, attachments in base64; undefined when it is unknown. */
export async function exportPieces(store: Store, traceId: string): Promise<AsyncIterable<string> | undefined> {
  const [runs, feedback] = await Promise.all([store.trace(traceId), store.feedback(traceId)]);
  if (runs.length === 0) return undefined;
  return jsonPieces({ format: FORMAT, version: VERSION, feedback }, 'runs', exportedRuns(store, runs));
}

/** The same as one text. */
export async function exportTrace(store: Store, traceId: string): Promise<string | undefined> {
  const pieces = await exportPieces(store, traceId);
  if (pieces === undefined) return undefined;
  let text = '';
  for await (const piece of pieces) text += piece;
  return text;
}

async function* exportedRuns(store: Store, runs: readonly StoredRun[]): AsyncGenerator<object> {
  for (const { attachments = [], ...run } of runs) {
    const kept = await Promise.all(attachments.map(({ name }) => store.attachment(run.id, name)));
    const exported = kept.filter((attachment) => attachment !== undefined).map(encoded);
    yield exported.length === 0 ? run : { ...run, attachments: exported };
  }
}

/** An export as it was read: its runs as posts. */
export interface ReadExport {
  readonly operations: readonly RunOperation[];
  readonly feedback: readonly Feedback[];
}

/** 400 for what is no export, 422 for wrong fields. */
export function readExport(body: unknown): ReadExport {
  if (!isObject(body) || body.format !== FORMAT)
    throw new HttpError(400, 'The body is no trace that runspan has exported');
  if (body.version !== VERSION) {
    throw new HttpError(
      400,
      `The trace was exported in version ${JSON.stringify(body.version)} of the format; this runspan reads ${VERSION}`,
    );
  }
  const { runs, feedback = [] } = body;
  if (!Array.isArray(runs)) throw new HttpError(400, 'Expected `runs` to be an array');
  if (!Array.isArray(feedback)) throw new HttpError(400, 'Expected `feedback` to be an array');
  const issues = new ValidationIssues();
  const operations = runs.map((run: unknown, at): RunOperation => {
    const loc: Location = ['body', 'runs', at];
    if (!isObject(run)) throw new HttpError(400, `runs[${at}] is no JSON object`);
    const { attachments, ...record } = run;
    const read = readRun({ rules: rulesFor('batch', 'post', false), record: asItCame(record), loc }, issues);
    return { kind: 'post', ...read, attachments: attachmentsOf(attachments, [...loc, 'attachments'], issues) };
  });
  const ids = new Set(operations.map(({ id }) => id));
  const said = feedback.map((one: unknown, at) => feedbackOf(one, ids, ['body', 'feedback', at], issues));
  issues.throwIfAny();
  return { operations, feedback: said };
}

/**
 * A run whose parent had not come stands at the root by an order that the store has made for it, which is not that of its
 * parent or its trace. Without it the store makes it once more.
 */
function asItCame(record: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { dotted_order: order, trace_id: traceId, parent_run_id: parentId, ...others } = record;
  const ids = typeof order === 'string' ? parseDottedOrder(order)?.map(({ id }) => id) : undefined;
  if (ids === undefined || (ids[0] === traceId && ids.at(-2) === parentId)) return record;
  return { ...others, trace_id: traceId, parent_run_id: parentId };
}

/** As it was given, and when. */
function feedbackOf(value: unknown, runIds: ReadonlySet<string>, loc: Location, issues: ValidationIssues): Feedback {
  const feedback = readFeedback(value, loc, issues);
  if (!runIds.has(feedback.run_id)) issues.add([...loc, 'run_id'], 'mismatch', 'The export has no such run');
  const { created_at: created, modified_at: modified } = value as Record<string, unknown>;
  if (isTime(created)) feedback.created_at = created;
  if (isTime(modified)) feedback.modified_at = modified;
  return feedback;
}

function isTime(value: unknown): value is string {
  return typeof value === 'string' && parseIsoTimestamp(value) !== undefined;
}

function encoded({ name, mimeType, bytes }: Attachment): { name: string; mime_type: string; data: string } {
  return { name, mime_type: mimeType, data: Buffer.from(bytes).toString('base64') };
}

function attachmentsOf(value: unknown, loc: Location, issues: ValidationIssues): Attachment[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) {
    issues.add(loc, 'array', 'Expected an array of attachments');
    return [];
  }
  return value.flatMap((one: unknown, at) => {
    const { name, mime_type: mimeType, data } = isObject(one) ? one : {};
    if (typeof name === 'string' && name !== '' && typeof mimeType === 'string' && isBase64(data)) {
      return { name, mimeType, bytes: Uint8Array.from(Buffer.from(data, 'base64')) };
    }
    issues.add([...loc, at], 'object', 'Expected an object with `name` and `mime_type`, and `data` in base64');
    return [];
  });
}

function isBase64(data: unknown): data is string {
  return typeof data === 'string' && data.length % 4 === 0 && /^[a-z0-9+/]*={0,2}$/i.test(data);
}
