import * as v from 'valibot';
import { shown } from '../../base/text.ts';
import type { Attachment } from '../../run/record.ts';
import { isTimestamp, parseDottedOrder } from '../../run/time.ts';
import { type Feedback, hasContent } from '../domain/feedback.ts';
import type { RunCounts } from '../domain/query/query.ts';
import type { RunOperation } from '../domain/run-message.ts';
import { feedbackOfBody } from '../http/feedback-fields.ts';
import { HttpError, type Location, ValidationIssues } from '../http/http-error.ts';
import { JsonReader } from '../http/json.ts';
import { decompressed } from '../http/request-body.ts';
import { type Call, checkJsonType } from '../http/route.ts';
import { filledText, parsed, requiredObject, text, validate } from '../http/validation.ts';
import { ingest } from '../ingest/ingest-routes.ts';
import { readRun } from '../ingest/run-message.ts';
import { ExportReader, LineReader, notAnExport } from './export/export-reader.ts';
import { FORMAT, VERSION } from './export/trace-export.ts';

/** Number of runs to store at once. Of a larger export that is invalid, some runs may already be stored. */
const BATCH_RUNS = 5_000;
const BATCH_BYTES = 16 * 1024 * 1024;

/**
 * Imports a trace export, or runs as JSON lines, while the request body arrives. Throws an HTTP 400 error if the body
 * is not an export, or a 422 error if a field is invalid.
 */
export async function importTrace(call: Call): Promise<RunCounts> {
  const isLines = /^application\/(?:jsonl|x-ndjson)\s*(?:;|$)/i.test(call.request.headers['content-type'] ?? '');
  if (!isLines) checkJsonType(call.request);
  call.liftTimeout();
  const reader = isLines ? new LineReader() : new ExportReader();
  const trace = new TraceImport(call, isLines ? { format: FORMAT, version: VERSION } : {});
  for await (const chunk of decompressed(call.request)) {
    for (const entry of reader.write(chunk)) await trace.add(entry.key, entry.bytes, entry.index);
  }
  for (const entry of reader.end() ?? []) await trace.add(entry.key, entry.bytes, entry.index);
  return trace.end();
}

interface Header {
  format?: unknown;
  version?: unknown;
}

function checkHeader({ format, version }: Header): void {
  if (format !== FORMAT) throw notAnExport(`its \`format\` is not "${FORMAT}"`);
  if (version === VERSION) return;
  const detail = `Expected \`version\` of the export to be ${VERSION}, got ${shown(version)}`;
  throw new HttpError(400, `${detail}: import it with the version of runspan that exported it`);
}

/** An import in progress. Receives the entries of the export one at a time. */
class TraceImport {
  readonly #call: Call;
  readonly #issues = new ValidationIssues();
  readonly #header: Header;
  readonly #runIds = new Set<string>();
  readonly #traceIds = new Set<string>();
  readonly #withoutDerived = withoutDerived();
  readonly #feedback: { readonly value: Feedback; readonly loc: Location }[] = [];
  #batch: RunOperation[] = [];
  #batchBytes = 0;

  constructor(call: Call, header: Header) {
    this.#call = call;
    this.#header = header;
  }

  /** Adds an entry of the export: a field or an array element. */
  async add(key: string, bytes: Buffer, index: number | undefined): Promise<void> {
    const isList = key === 'runs' || key === 'feedback';
    if (isList && index === undefined) throw new HttpError(400, `Expected \`${key}\` to be an array`);
    const { value } = new JsonReader().parse(bytes, isList ? `${key}.${index}` : 'The body');
    if (index === undefined) {
      // Other fields of the export are ignored, because the body has no size limit.
      if (key === 'format' || key === 'version') this.#header[key] = value;
    } else if (key === 'runs') await this.#addRun(value, index, bytes.length);
    else if (key === 'feedback') this.#addFeedback(value, ['body', 'feedback', index]);
  }

  async end(): Promise<RunCounts> {
    checkHeader(this.#header);
    for (const { value, loc } of this.#feedback) {
      if (!this.#runIds.has(value.run_id)) {
        this.#issues.add([...loc, 'run_id'], 'mismatch', 'The export does not contain this run');
      }
    }
    await this.#store();
    const { store, scope } = this.#call;
    for (const { value } of this.#feedback.filter((one) => hasContent(one.value))) {
      this.#keepConnection();
      await store.addFeedback(scope, value);
    }
    return { traces: this.#traceIds.size, runs: this.#runIds.size };
  }

  async #addRun(run: unknown, index: number, sizeBytes: number): Promise<void> {
    const loc: Location = ['body', 'runs', index];
    const { attachments, feedback = [], ...record } = requiredObject(run, loc);
    const format = { format: 'batch', kind: 'post', strict: false } as const;
    const { id, fields } = readRun(format, { record: this.#withoutDerived(record), loc }, this.#issues);
    const attached = attachmentsOf(attachments, [...loc, 'attachments'], this.#issues);
    // In JSON lines, each run contains its feedback.
    if (!Array.isArray(feedback)) this.#issues.add([...loc, 'feedback'], 'type', 'Expected an array');
    else for (const [at, value] of feedback.entries()) this.#addFeedback(value, [...loc, 'feedback', at]);
    this.#runIds.add(id);
    this.#traceIds.add(typeof record.trace_id === 'string' ? record.trace_id : id);
    this.#batch.push({ kind: 'post', id, fields, attachments: attached });
    this.#batchBytes += sizeBytes;
    if (this.#batch.length >= BATCH_RUNS || this.#batchBytes >= BATCH_BYTES) await this.#store();
  }

  #addFeedback(value: unknown, loc: Location): void {
    this.#feedback.push({ value: importedFeedback(value, loc), loc });
  }

  async #store(): Promise<void> {
    // In an export, the header may come after the runs.
    checkHeader({ format: FORMAT, version: VERSION, ...this.#header });
    this.#issues.throwIfAny();
    this.#keepConnection();
    await ingest(this.#call, this.#batch);
    this.#batch = [];
    this.#batchBytes = 0;
  }

  /** Restarts the idle timeout, because no bytes arrive while the store works. Ends the import if the client has left. */
  #keepConnection(): void {
    const { socket } = this.#call.request;
    if (socket.destroyed) throw new HttpError(400, 'The client closed the connection during the import');
    socket.setTimeout(socket.timeout ?? 0);
  }
}

/**
 * Returns a function that removes what the exporting store derived from the records of an export: a `dotted_order` that does
 * not fit the trace and the parent, and the place of runs whose trace was not known (see `isProvisional`).
 */
export function withoutDerived(): <Fields extends object>(record: Fields) => Partial<Fields> {
  const provisional = new Set<unknown>();
  return <Fields extends object>(record: Fields) => {
    const { dotted_order: order, trace_id, ...others } = record as Place & Fields;
    const { id, parent_run_id: parentId } = others;
    if (trace_id === id && parentId !== undefined) provisional.add(trace_id);
    if (provisional.has(trace_id)) return others as Partial<Fields>;
    const ids = typeof order === 'string' ? parseDottedOrder(order)?.map((segment) => segment.id) : undefined;
    const isOwn = ids === undefined || (ids[0] === trace_id && ids.at(-2) === parentId);
    return isOwn ? record : ({ ...others, trace_id } as Partial<Fields>);
  };
}

type Place = Readonly<Partial<Record<'id' | 'trace_id' | 'parent_run_id' | 'dotted_order', unknown>>>;

/** Reads feedback from an export and keeps its original times. */
function importedFeedback(value: unknown, loc: Location): Feedback {
  const feedback = feedbackOfBody(value, loc);
  const { created_at: created, modified_at: modified } = value as Record<string, unknown>;
  if (isTimestamp(created)) feedback.created_at = created;
  if (isTimestamp(modified)) feedback.modified_at = modified;
  return feedback;
}

const base64 = (value: unknown): Uint8Array | undefined =>
  typeof value === 'string' && value.length % 4 === 0 && /^[a-z0-9+/]*={0,2}$/i.test(value)
    ? Uint8Array.from(Buffer.from(value, 'base64'))
    : undefined;
const attachment = v.object({ name: filledText, mime_type: text, data: parsed('base64', base64) }, 'an object');
const attachmentsSchema = v.array(attachment, 'an array');

function attachmentsOf(value: unknown, loc: Location, issues: ValidationIssues): Attachment[] {
  const attachments = value === undefined ? [] : (validate(attachmentsSchema, value, loc, issues) ?? []);
  return attachments.map(({ name, mime_type: mimeType, data: bytes }) => ({ name, mimeType, bytes }));
}
