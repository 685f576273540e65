import { cut } from '../../base/text.ts';
import { isObject } from '../../config/checker.ts';
import type { Attachment } from '../../run/record.ts';
import type { Feedback } from '../domain/feedback.ts';
import { inTurns, mapInTurns } from '../domain/in-turns.ts';
import type { RunOperation } from '../domain/run-message.ts';
import { PAYLOAD_FIELDS } from '../domain/run-view.ts';
import { FEEDBACK_BYTES_MAX, feedbackOfBody } from '../http/feedback-fields.ts';
import { HttpError, ValidationIssues } from '../http/http-error.ts';
import { type Json, JsonReader } from '../http/json.ts';
import { parseUuid } from '../http/run-fields.ts';
import type { Part } from './multipart.ts';
import { readRun } from './run-message.ts';

export interface Batch {
  /** Run operations, in the order in which their first parts appear. */
  readonly operations: RunOperation[];
  readonly feedback: Feedback[];
}

/**
 * Converts the parts of a multipart request to run operations. Throws an HTTP 400 error if a part is malformed or
 * contradicts another part. Throws a 422 error if a field is invalid.
 */
export async function readBatch(parts: readonly Part[], strict: boolean): Promise<Batch> {
  const reader = new BatchReader(strict);
  for await (const part of inTurns(parts)) reader.add(part);
  return reader.end();
}

/** A run operation whose parts are still being collected. */
interface Draft {
  readonly kind: 'post' | 'patch';
  readonly id: string;
  record?: Record<string, unknown>;
  /** Field values that were sent in separate parts. */
  readonly payloads: Record<string, unknown>;
  readonly texts: Record<string, string>;
  readonly attachments: Attachment[];
}

class BatchReader {
  readonly #strict: boolean;
  readonly #json = new JsonReader();
  readonly #issues = new ValidationIssues();
  readonly #names = new Set<string>();
  /** Maps the kind and the run id to a draft operation. */
  readonly #drafts = new Map<string, Draft>();
  readonly #attachments: { readonly part: Part; readonly id: string; readonly name: string }[] = [];
  readonly #feedback: Feedback[] = [];

  constructor(strict: boolean) {
    this.#strict = strict;
  }

  add(part: Part): void {
    const { kind, id, rest = '' } = parsePartName(part.name, this.#strict);
    const name = `${kind}.${id}.${rest}`;
    if (this.#names.has(name)) throw new HttpError(400, `The body has two parts named ${JSON.stringify(part.name)}`);
    this.#names.add(name);
    this.#checkLength(part, kind);
    if (kind === 'attachment') this.#attachments.push({ part, id, name: rest });
    else if (kind === 'feedback') this.#addFeedback(part, id);
    else this.#addJson(part, kind, id, rest);
  }

  async end(): Promise<Batch> {
    if (this.#drafts.size + this.#feedback.length === 0) throw new HttpError(400, 'The body contains no run');
    for (const { part, id, name } of this.#attachments) {
      const draft = this.#drafts.get(`post.${id}`) ?? this.#drafts.get(`patch.${id}`);
      if (draft === undefined) throw new HttpError(400, `Part ${part.name} belongs to a run that is not in the body`);
      const mimeType = part.contentType?.replace(LENGTH_PARAMETER, '') || 'application/octet-stream';
      // Copies the bytes, because a view would keep the whole request in memory.
      draft.attachments.push({ name, mimeType, bytes: Uint8Array.from(part.bytes) });
    }
    const operations = await mapInTurns(this.#drafts.values(), (draft) => this.#operationOf(draft));
    this.#issues.throwIfAny();
    return { operations, feedback: this.#feedback };
  }

  /**
   * Validates the length in a part's headers. A wrong `Content-Length` is always rejected. In strict mode, each JSON
   * part must have a `Content-Length`. Strict mode rejects a length in `Content-Type`, which LangSmith clients send.
   */
  #checkLength({ name, contentType = '', contentLength, bytes }: Part, kind: PartName['kind']): void {
    if (this.#strict && LENGTH_PARAMETER.test(contentType)) {
      throw new HttpError(400, `Part ${name} has its length in Content-Type; send the length as Content-Length`);
    }
    if (this.#strict && contentLength === undefined && kind !== 'attachment') {
      throw new HttpError(400, `Part ${name} has no Content-Length`);
    }
    if (contentLength !== undefined && contentLength !== String(bytes.length)) {
      throw new HttpError(400, `Part ${name} has ${bytes.length} bytes, but its Content-Length is ${contentLength}`);
    }
  }

  #addJson(part: Part, kind: Draft['kind'], id: string, field: string): void {
    const key = `${kind}.${id}`;
    const draft = this.#drafts.get(key) ?? { kind, id, payloads: {}, texts: {}, attachments: [] };
    this.#drafts.set(key, draft);
    const { value, text } = this.#parse(part);
    if (this.#strict && part.hasFilename) {
      throw new HttpError(400, `Part ${part.name} has a filename, which only attachments may have`);
    }
    if (field === '') {
      if (!isObject(value)) throw new HttpError(400, `Part ${part.name} is not a JSON object`);
      draft.record = value;
      return;
    }
    if (this.#strict && isEmpty(value)) {
      this.#issues.add(['body', part.name], 'empty', 'Send this part only if its value is not empty');
    }
    // LangSmith clients describe model objects in `serialized`. Run records have no field for model objects, so
    // `serialized` is dropped.
    if (value === null || field === 'serialized') return;
    draft.payloads[field] = value;
    if (field !== 'extra' && field !== 'error') draft.texts[field] = text;
  }

  #addFeedback(part: Part, id: string): void {
    if (part.bytes.length > FEEDBACK_BYTES_MAX) throw new HttpError(413, `Part ${part.name} is larger than 1 MiB`);
    const { value } = this.#parse(part);
    // Feedback on a whole trace has no `run_id`. The root run gets feedback on the trace, because its id is the trace
    // id.
    const given = isObject(value) ? { ...value, id, run_id: value.run_id ?? value.trace_id } : value;
    this.#feedback.push(feedbackOfBody(given, ['body', part.name]));
  }

  #parse({ name, contentType = '', bytes }: Part): Json {
    if (!/^application\/json\s*(;|$)/i.test(contentType)) {
      throw new HttpError(400, `Expected part ${name} to be application/json, got ${JSON.stringify(contentType)}`);
    }
    return this.#json.parse(bytes, `Part ${name}`);
  }

  #operationOf({ kind, id, record, payloads, texts, attachments }: Draft): RunOperation {
    const main = `${kind}.${id}`;
    if (record === undefined) {
      throw new HttpError(400, `The body has payload parts of ${main}, but no main part ${main}`);
    }
    const format = { format: 'multipart', kind, strict: this.#strict } as const;
    const operation = readRun(format, { record, loc: ['body', main], id, payloads }, this.#issues);
    return { ...operation, texts, attachments };
  }
}

/**
 * A parsed part name. Forms of part names:
 *
 *     <post|patch>.<run id>                           the run record
 *     <post|patch>.<run id>.<inputs|outputs|events>   a payload
 *     attachment.<run id>.<name>                      an attachment, whose name may contain dots
 *
 * LangSmith clients also send `<post|patch>.<run id>.<extra|error|serialized>` and `feedback.<feedback id>`, which
 * strict mode rejects.
 */
interface PartName {
  readonly kind: 'post' | 'patch' | 'attachment' | 'feedback';
  readonly id: string;
  readonly rest: string | undefined;
}

const NAME = /^(post|patch|attachment|feedback)\.([^.]+)(?:\.(.+))?$/s;
const LENIENT_PAYLOADS: readonly string[] = [...PAYLOAD_FIELDS, 'extra', 'error', 'serialized'];

function parsePartName(text: string, strict: boolean): PartName {
  const [, kind, run = '', rest] = NAME.exec(text) ?? [];
  const id = parseUuid(run, !strict);
  const payloads: readonly string[] = strict ? PAYLOAD_FIELDS : LENIENT_PAYLOADS;
  const isValid =
    kind === 'attachment'
      ? rest !== undefined
      : rest === undefined
        ? !(strict && kind === 'feedback')
        : kind !== 'feedback' && payloads.includes(rest);
  if (id !== undefined && isValid) return { kind: kind as PartName['kind'], id, rest };
  const uuid = strict ? '<uuid with hyphens>' : '<uuid>';
  const names = [`<post|patch>.${uuid}[.${payloads.join('|')}]`, `attachment.${uuid}.<name>`];
  if (!strict) names.push(`feedback.${uuid}`);
  throw new HttpError(400, `Expected the part name to be ${names.join(', ')}, got ${JSON.stringify(cut(text, 120))}`);
}

// Without the lookbehind, matching a long sequence of spaces would take quadratic time.
const LENGTH_PARAMETER = /(?<!\s)\s*;\s*length=[^;]*/i;

function isEmpty(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0);
}
