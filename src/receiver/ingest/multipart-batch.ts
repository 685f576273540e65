import { isObject } from '../../base/options.ts';
import { cut } from '../../base/text.ts';
import type { Attachment } from '../../run/record.ts';
import type { Feedback } from '../feedback/feedback.ts';
import { FEEDBACK_BYTES_MAX, readFeedback } from '../feedback/feedback-fields.ts';
import { HttpError, type Location, ValidationIssues } from '../http-error.ts';
import type { RunOperation } from '../store/store.ts';
import { JsonReader } from './json.ts';
import type { Part } from './multipart.ts';
import { parseUuid } from './run-fields.ts';
import { readRun, rulesFor } from './run-message.ts';

/** The content of a multipart request. */
export interface Batch {
  /** Operations in the order in which their runs first appear. */
  readonly operations: RunOperation[];
  readonly feedback: Feedback[];
}

/**
 * Converts all parts of a request to operations. Throws 400 for malformed or inconsistent parts, and 422 for invalid
 * fields.
 */
export function readBatch(parts: readonly Part[], strict: boolean): Batch {
  const named = new Map<string, { part: Part; name: PartName }>();
  for (const part of parts) {
    const name = parsePartName(part.name, strict);
    const key = `${name.kind}.${name.id}.${name.rest}`;
    if (named.has(key)) throw new HttpError(400, `The body has two parts ${JSON.stringify(part.name)}`);
    named.set(key, { part, name });
    checkLength(part, name, strict);
  }
  const json = new JsonReader();
  const issues = new ValidationIssues();
  const feedback: Feedback[] = [];
  const drafts = new Map<string, Draft>();
  for (const { part, name } of named.values()) {
    if (name.kind === 'feedback') feedback.push(feedbackIn(part, name, json, issues));
    else if (name.kind !== 'attachment')
      addJson(draftOf(drafts, name.kind, name.id), part, name.rest, json, issues, strict);
  }
  if (drafts.size + feedback.length === 0) throw new HttpError(400, 'The body has no run');
  const operations = [...drafts.values()].map((draft) => operationOf(draft, strict, issues));
  issues.throwIfAny();
  for (const { part, name } of named.values()) if (name.kind === 'attachment') attach(drafts, part, name);
  return { operations, feedback };
}

/**
 * The name of a part (interface, "POST /runs/multipart", rules 3 and 4):
 *
 *     <post|patch>.<run id>                           the run record
 *     <post|patch>.<run id>.<inputs|outputs|events>   a payload
 *     attachment.<run id>.<name>                      an attachment, whose name may contain dots
 *
 * Other clients also send `<post|patch>.<run id>.<extra|error|serialized>` and `feedback.<feedback id>`.
 */
interface PartName {
  readonly kind: 'post' | 'patch' | 'attachment' | 'feedback';
  readonly id: string;
  readonly rest: string | undefined;
}

const NAME = /^(post|patch|attachment|feedback)\.([^.]+)(?:\.(.+))?$/s;
const PAYLOADS = ['inputs', 'outputs', 'events'] as const;
const FIELDS_OF_OTHERS = ['extra', 'error', 'serialized'] as const;

function parsePartName(text: string, strict: boolean): PartName {
  const [, kind, run = '', rest] = NAME.exec(text) ?? [];
  const id = parseUuid(run, !strict);
  const fields: readonly string[] = strict ? PAYLOADS : [...PAYLOADS, ...FIELDS_OF_OTHERS];
  const isRest =
    kind === 'attachment' ? rest !== undefined : rest === undefined || (kind !== 'feedback' && fields.includes(rest));
  if (id !== undefined && isRest && !(strict && kind === 'feedback'))
    return { kind: kind as PartName['kind'], id, rest };
  const uuid = strict ? '<uuid with hyphens>' : '<uuid>';
  const names = [
    `<post|patch>.${uuid}[.${fields.join('|')}]`,
    ...(strict ? [] : [`feedback.${uuid}`]),
    `attachment.${uuid}.<name>`,
  ];
  throw new HttpError(400, `Expected the part name to be ${names.join(', ')}, got ${JSON.stringify(cut(text, 120))}`);
}

/**
 * Other clients send the length of a part as a parameter of Content-Type. In strict mode, each JSON part needs a
 * Content-Length. A wrong Content-Length is refused in both modes.
 */
function checkLength(
  { name, contentType = '', contentLength, bytes }: Part,
  { kind }: PartName,
  strict: boolean,
): void {
  if (strict && LENGTH_PARAMETER.test(contentType)) {
    throw new HttpError(400, `Part ${name} has its length in Content-Type; send it as Content-Length`);
  }
  if (strict && contentLength === undefined && kind !== 'attachment') {
    throw new HttpError(400, `Part ${name} has no Content-Length`);
  }
  if (contentLength !== undefined && contentLength !== String(bytes.length)) {
    throw new HttpError(400, `Part ${name} has ${bytes.length} bytes, but its Content-Length is ${contentLength}`);
  }
}

// The lookbehind avoids quadratic time for a long sequence of spaces.
const LENGTH_PARAMETER = /(?<!\s)\s*;\s*length=[^;]*/i;

/** The parts of one operation. */
interface Draft {
  readonly kind: 'post' | 'patch';
  readonly id: string;
  record?: Record<string, unknown>;
  readonly payloads: Record<string, unknown>;
  readonly payloadLocs: Map<string, Location>;
  readonly texts: Record<string, string>;
  readonly attachments: Attachment[];
}

function draftOf(drafts: Map<string, Draft>, kind: Draft['kind'], id: string): Draft {
  const key = `${kind}.${id}`;
  const draft = drafts.get(key) ?? { kind, id, payloads: {}, payloadLocs: new Map(), texts: {}, attachments: [] };
  drafts.set(key, draft);
  return draft;
}

function addJson(
  draft: Draft,
  part: Part,
  field: string | undefined,
  json: JsonReader,
  issues: ValidationIssues,
  strict: boolean,
): void {
  const { value, text } = readJsonPart(part, json);
  if (strict && part.hasFilename)
    throw new HttpError(400, `Part ${part.name} has a filename, which only attachments may have`);
  if (field === undefined) {
    if (!isObject(value)) throw new HttpError(400, `Part ${part.name} is not a JSON object`);
    draft.record = value;
    return;
  }
  const loc = ['body', part.name];
  draft.payloadLocs.set(field, loc);
  if (strict && isEmpty(value)) issues.add(loc, 'empty', 'Send this part only if its value is not empty');
  // Other clients describe model objects in `serialized`, for which a run record has no field.
  if (value === null || field === 'serialized') return;
  draft.payloads[field] = value;
  if (field !== 'extra' && field !== 'error') draft.texts[field] = text;
}

function readJsonPart({ name, contentType = '', bytes }: Part, json: JsonReader): { value: unknown; text: string } {
  if (!/^application\/json\s*(;|$)/i.test(contentType)) {
    throw new HttpError(400, `Expected part ${name} to be application/json, got ${JSON.stringify(contentType)}`);
  }
  return json.read(bytes, `Part ${name}`);
}

function isEmpty(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0);
}

function operationOf(draft: Draft, strict: boolean, issues: ValidationIssues): RunOperation {
  const { kind, id, record, payloads, payloadLocs, texts, attachments } = draft;
  const main = `${kind}.${id}`;
  if (record === undefined) {
    throw new HttpError(400, `The body has payload parts of ${main}, but no main part ${main}`);
  }
  const message = {
    rules: rulesFor('multipart', kind, strict),
    record,
    loc: ['body', main],
    id,
    payloads,
    payloadLocs,
  };
  return { kind, ...readRun(message, issues), texts, attachments };
}

function feedbackIn(part: Part, { id }: PartName, json: JsonReader, issues: ValidationIssues): Feedback {
  if (part.bytes.length > FEEDBACK_BYTES_MAX) throw new HttpError(413, `Part ${part.name} is larger than 1 MiB`);
  const { value } = readJsonPart(part, json);
  // Feedback on a whole trace has no `run_id`. It belongs to the root run, which has the same id as the trace.
  const given = isObject(value) ? { ...value, id, run_id: value.run_id ?? value.trace_id } : value;
  return readFeedback(given, ['body', part.name], issues);
}

/** Strict mode also accepts attachments, which our exporter and other clients send. */
function attach(
  drafts: ReadonlyMap<string, Draft>,
  { name: partName, contentType, bytes }: Part,
  { id, rest = '' }: PartName,
): void {
  const draft = drafts.get(`post.${id}`) ?? drafts.get(`patch.${id}`);
  if (draft === undefined) throw new HttpError(400, `Part ${partName} belongs to a run that is not in the body`);
  const mimeType = contentType?.replace(LENGTH_PARAMETER, '') || 'application/octet-stream';
  // Copied, because a view would keep the whole request in memory.
  draft.attachments.push({ name: rest, mimeType, bytes: Uint8Array.from(bytes) });
}
