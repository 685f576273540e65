import { errorLine } from '../payload/errors.ts';
import { type Fields, fieldsOf, firstText, idTextOf, isFields, listOf, textOf } from '../payload/fields.ts';
import type { UsageMetadata } from '../payload/usage.ts';
import { base64Bytes } from './media-type.ts';

/** The part of a model's response that is recorded. */
export interface Answer {
  readonly outputs: Readonly<Fields>;
  readonly usage?: UsageMetadata | undefined;
  /** The model that answered. May be a dated version of the requested model. */
  readonly model?: string | undefined;
  /** The id of the response, for example `chatcmpl-…`, `msg_…` or `resp_…`. */
  readonly responseId?: string | undefined;
  /** An error that the service reported in a response with a successful status. */
  readonly error?: unknown;
  /** Whether the response has an unknown format. If set, `outputs` contains the response unchanged. */
  readonly isUnreadable?: boolean;
}

/** Reads one kind of response. Responses are never modified. */
export interface AnswerReader {
  read(response: unknown): Answer;
  /**
   * Creates a fold that combines the chunks of a streamed response. Undefined if this kind of response is never
   * streamed.
   */
  readonly fold?: (() => Fold) | undefined;
  readonly isWhole?: true;
}

/** Combines the chunks of a streamed response. The data is copied, because the application may modify chunks. */
export interface Fold {
  /**
   * Adds a chunk and returns its number of generated characters. If `isFull` is set, the text is counted but not
   * stored.
   */
  add(chunk: unknown, isFull: boolean): number;
  /** Returns the combined response in the non-streamed format. */
  result(): unknown;
  /** The error that ended the stream, if the response does not contain it. */
  readonly error?: unknown;
  /**
   * Whether the last chunk of the response has arrived. Applications may stop reading there, before the stream ends.
   */
  readonly isComplete?: boolean;
  readonly isUnreadable?: boolean;
}

/**
 * Reads responses with an error or at least one of the `required` fields. `answerOf` returns what differs from the fields
 * that most services have. Any other response is recorded unchanged and marked as unreadable. If a stream has no chunks,
 * the response is `undefined`.
 */
export function objectReader(
  required: readonly string[],
  answerOf: (response: Fields) => Partial<Answer>,
  fold?: () => Fold,
): AnswerReader {
  const known = [...required, 'error'];
  return {
    read(value) {
      const isKnown = isFields(value) && known.some((key) => value[key] !== undefined && value[key] !== null);
      if (!isKnown) return { outputs: { outputs: value }, isUnreadable: value !== undefined };
      const { model, id } = value;
      const answer = { outputs: value, error: serviceError(value), model: textOf(model), responseId: textOf(id) };
      return { ...answer, ...answerOf(value) };
    },
    fold: fold && (() => endingFold(fold())),
  };
}

/** Returns a reader like `objectReader`, whose outputs are the response itself. */
export function wholeReader(...reader: Parameters<typeof objectReader>): AnswerReader {
  return { ...objectReader(...reader), isWhole: true };
}

/**
 * Returns the number of embedding vectors and their dimensions. The vectors themselves are not recorded. Cohere groups
 * them by number type, for example `{ float: [[…]] }`. OpenAI and Google have an object for each vector.
 */
export function vectorsOf({ embedding, embeddings, data }: Fields): { count: number; dimensions: number | undefined } {
  const given = embeddings ?? data ?? (embedding === undefined ? [] : [embedding]);
  const vectors = listOf(isFields(given) ? Object.values(given)[0] : given);
  const { embedding: vector = vectors[0], values = vector } = fieldsOf(vectors[0]);
  return { count: vectors.length, dimensions: dimensionsOf(values) };
}

/** Returns the number of dimensions of a vector. A vector is a list of numbers, or 4-byte floats in base64. */
function dimensionsOf(vector: unknown): number | undefined {
  if (typeof vector === 'string') return base64Bytes(vector) / 4;
  return Array.isArray(vector) || ArrayBuffer.isView(vector) ? (vector as unknown[]).length : undefined;
}

/** Event types that mark the end of a response. Applications stop reading at these events. */
const LAST_EVENTS: ReadonlySet<unknown> = new Set([
  'message_stop',
  'message-end',
  'response.completed',
  'response.failed',
  'response.incomplete',
]);

/** Completes a response at its last event. In all formats, an error is the last event: clients throw it. */
function endingFold(fold: Fold): Fold {
  const ending = {
    isComplete: false,
    error: undefined as string | undefined,
    add(event: unknown, isFull: boolean): number {
      if (ending.isComplete) return 0;
      ending.error = serviceError(event);
      const characters = fold.add(event, isFull);
      const isLast = LAST_EVENTS.has(fieldsOf(event).type) || fold.isComplete === true;
      ending.isComplete = isLast || ending.error !== undefined;
      return characters;
    },
    result: () => fold.result(),
  };
  return ending;
}

/**
 * Returns the error in a response or an event of any service, in the form `code: message`. Services report
 * `{ error: { code, message } }`, with `status` (Google) or `type` (Anthropic) besides or instead of `code`,
 * `{ error: message }` (Ollama, Cohere), `{ type: 'error', code, message }` (OpenAI's responses), or
 * `{ object: 'error', type, message }` (vLLM, known only from a report: https://github.com/block/goose/pull/8031).
 */
export function serviceError(value: unknown): string | undefined {
  const fields = fieldsOf(value);
  const { error } = fields;
  if (typeof error === 'string') return error || undefined;
  const isNested = isFields(error) && Object.keys(error).length > 0;
  if (!isNested && fields.type !== 'error' && fields.object !== 'error') return undefined;
  const { code, status, type, message } = isNested ? error : fields;
  return errorLine(firstText(code, status, type === 'error' ? '' : type, idTextOf(code)), message) ?? 'error';
}
