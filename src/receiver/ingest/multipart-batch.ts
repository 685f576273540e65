import { isObject } from '../../base/options.ts';
import type { Attachment } from '../../run/record.ts';
import type { Feedback } from '../feedback/feedback.ts';
import { FEEDBACK_BYTES_MAX, readFeedback } from '../feedback/feedback-fields.ts';
import { Findings, Refusal } from '../refusal.ts';
import type { PayloadField } from '../store/run-view.ts';
import type { RunFields, RunOperation } from '../store/store.ts';
import { type Json, JsonReader } from './json.ts';
import type { Part } from './multipart.ts';
import { type PartField, type PartName, parsePartName } from './part-name.ts';
import { type RunMessage, readRun, rulesFor } from './run-message.ts';

/** The content of a multipart request. */
export interface Batch {
  /** The operations, in the order in which their runs first appear. */
  readonly operations: RunOperation[];
  readonly feedback: Feedback[];
}

/**
 * Reads the parts of one request and validates all of them before returning. Refuses malformed or inconsistent parts with 400,
 * and invalid fields with 422.
 */
export function readBatch(parts: readonly Part[], strict: boolean): Batch {
  const drafts = new Map<string, Draft>();
  const names = new Set<string>();
  const json = new JsonReader();
  const attachments: { part: Part; id: string; name: string }[] = [];
  const said: { part: Part; id: string }[] = [];
  for (const part of parts) {
    const name = parsePartName(part.name, strict);
    const identity = identityOf(name);
    if (names.has(identity)) throw new Refusal(400, `There are two parts ${JSON.stringify(part.name)}`);
    names.add(identity);
    checkLength(part, name, strict);
    if (name.kind === 'attachment') attachments.push({ part, ...name });
    else if (name.kind === 'feedback') said.push({ part, ...name });
    else takeJson(part, name, drafts, json, strict);
  }
  if (drafts.size + said.length === 0) throw new Refusal(400, 'The body holds no run');

  const findings = new Findings();
  const operations = [...drafts.values()].map((draft) => operationOf(draft, strict, findings));
  const feedback = said.map(({ part, id }) => {
    if (part.bytes.length > FEEDBACK_BYTES_MAX) throw new Refusal(413, `Part ${part.name} is larger than 1 MiB`);
    const { value } = readJsonPart(part, json);
    // Feedback on a whole trace has no `run_id`. It belongs to the root run, which has the same id as the trace.
    const given = isObject(value) ? { ...value, id, run_id: value.run_id ?? value.trace_id } : value;
    return readFeedback(given, ['body', part.name], findings);
  });
  findings.refuseIfAny();
  for (const { part, id, name } of attachments) attachmentsOf(drafts, id, part).push(attachmentOf(part, name));
  return { operations, feedback };
}

interface Draft {
  readonly kind: 'post' | 'patch';
  readonly id: string;
  record: { readonly value: unknown; readonly partName: string } | undefined;
  readonly payloads: (Json & { readonly field: PartField; readonly partName: string })[];
  readonly attachments: Attachment[];
}

/** The name of a part with its id in one spelling. */
function identityOf(name: PartName): string {
  if (name.kind === 'attachment') return `attachment.${name.id}.${name.name}`;
  if (name.kind === 'feedback') return `feedback.${name.id}`;
  return name.kind === 'record' ? `${name.operation}.${name.id}` : `${name.operation}.${name.id}.${name.field}`;
}

/**
 * Checks the length of a part. Other clients send the length as a parameter of Content-Type, without a Content-Length. In
 * strict mode, each JSON part needs a Content-Length. A wrong Content-Length is refused in both modes.
 */
function checkLength({ name, contentType, contentLength, bytes }: Part, { kind }: PartName, strict: boolean): void {
  if (strict && LENGTH_PARAMETER.test(contentType ?? '')) {
    throw new Refusal(400, `Part ${name} gives its length in Content-Type; give it as Content-Length`);
  }
  if (contentLength === undefined) {
    if (strict && kind !== 'attachment') throw new Refusal(400, `Part ${name} has no Content-Length of its own`);
  } else if (contentLength !== String(bytes.length)) {
    throw new Refusal(400, `Part ${name} has ${bytes.length} bytes, and its Content-Length is ${contentLength}`);
  }
}

// Begins where white space does: tried at each of many spaces, it would take time by the square of their number.
const LENGTH_PARAMETER = /(?<!\s)\s*;\s*length=[^;]*/i;

function takeJson(
  part: Part,
  name: Exclude<PartName, { kind: 'attachment' | 'feedback' }>,
  drafts: Map<string, Draft>,
  json: JsonReader,
  strict: boolean,
): void {
  const read = readJsonPart(part, json);
  if (strict && part.hasFilename) throw new Refusal(400, `Part ${part.name} has a filename, as only attachments may`);
  const { operation: kind, id } = name;
  const key = `${kind}.${id}`;
  const draft = drafts.get(key) ?? { kind, id, record: undefined, payloads: [], attachments: [] };
  drafts.set(key, draft);
  if (name.kind === 'record') draft.record = { value: read.value, partName: part.name };
  else draft.payloads.push({ ...read, field: name.field, partName: part.name });
}

function readJsonPart({ name, contentType = '', bytes }: Part, json: JsonReader): Json {
  if (!/^application\/json\s*(;|$)/i.test(contentType)) {
    throw new Refusal(400, `Expected part ${name} to be application/json, got ${JSON.stringify(contentType)}`);
  }
  return json.read(bytes, `Part ${name}`);
}

function operationOf(draft: Draft, strict: boolean, findings: Findings): RunOperation {
  const { kind, id, record, attachments } = draft;
  if (record === undefined) {
    throw new Refusal(400, `Part ${draft.payloads[0]?.partName} has no main part ${kind}.${id}`);
  }
  if (!isObject(record.value)) throw new Refusal(400, `Part ${record.partName} is no JSON object`);
  const message: RunMessage = {
    rules: rulesFor('multipart', kind, strict),
    record: record.value,
    loc: ['body', record.partName],
    id,
    payloads: draft.payloads.flatMap(({ field, value, partName }) => {
      const loc = ['body', partName];
      if (strict && isEmpty(value)) findings.add(loc, 'empty', 'A part is sent only when its value is not empty');
      // The incumbent describes a model object in it; run records have no place for that.
      return field === 'serialized' ? [] : [{ field, value, loc }];
    }),
  };
  const read = readRun(message, findings);
  return { kind, ...read, texts: textsOf(draft, read.fields), attachments };
}

/** The texts of those payloads that have become fields, and were not told once more by the record. */
function textsOf({ payloads }: Draft, fields: RunFields): Partial<Record<PayloadField, string>> {
  const texts: Partial<Record<PayloadField, string>> = {};
  for (const { field, value, text } of payloads) {
    if ((field === 'inputs' || field === 'outputs' || field === 'events') && fields[field] === value)
      texts[field] = text;
  }
  return texts;
}

function isEmpty(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0);
}

function attachmentsOf(drafts: ReadonlyMap<string, Draft>, id: string, part: Part): Attachment[] {
  const draft = drafts.get(`post.${id}`) ?? drafts.get(`patch.${id}`);
  if (draft === undefined) throw new Refusal(400, `Part ${part.name} is of a run that the body does not hold`);
  return draft.attachments;
}

/** The interface has no attachments; they are taken in strict mode too, being our own wire and the field's. */
function attachmentOf({ contentType, bytes }: Part, name: string): Attachment {
  const mimeType = contentType?.replace(LENGTH_PARAMETER, '');
  // A copy, because the bytes are a view of the whole request and would keep that in memory.
  return { name, mimeType: mimeType || 'application/octet-stream', bytes: Uint8Array.from(bytes) };
}
