import { parsedJson } from '../../payload/fields.ts';
import type { AnswerReader, Fold } from '../../services/answer.ts';
import { isData, LineFold } from '../../services/deltas.ts';

/**
 * Maximum size of a body that is not a stream of events, in characters or bytes. Longer bodies are recorded as
 * unreadable.
 */
const BODY_MAX = 16 * 1024 * 1024;

/** Returns a reader for a content type: server-sent events, JSON lines, binary data or JSON. */
export function bodyReader(answer: AnswerReader, contentType: string): AnswerReader {
  const [type = ''] = contentType.toLowerCase().split(';');
  return { read: answer.read, fold: () => foldFor(answer, type.trim()) };
}

/** Combines a response that is a list of chunks, as Gemini sends it. Other responses are returned unchanged. */
export function wholeResponse({ read, fold }: AnswerReader, value: unknown): unknown {
  if (!Array.isArray(value) || fold === undefined || value.every((chunk) => read(chunk).isUnreadable)) return value;
  const combined = fold();
  for (const chunk of value) combined.add(chunk, false);
  return combined.result();
}

function foldFor(answer: AnswerReader, type: string): Fold {
  if (answer.fold !== undefined && type === 'text/event-stream') return new LineFold(answer.fold(), 'data:');
  const isLines = /^application\/(x-ndjson|jsonl|stream\+json)$/.test(type);
  return answer.fold !== undefined && isLines ? new LineFold(answer.fold(), '') : new WholeFold(answer, type);
}

const BINARY = /^(audio|image|video)\/|^application\/octet-stream$/;

/** Reads a body that consists of one JSON value, or of binary data. */
class WholeFold implements Fold {
  isUnreadable = false;
  readonly #answer: AnswerReader;
  readonly #type: string;
  #parts: (Blob | string | Uint8Array<ArrayBuffer>)[] = [];
  #size = 0;

  constructor(answer: AnswerReader, type: string) {
    this.#answer = answer;
    this.#type = type;
  }

  add(chunk: unknown): number {
    if (chunk instanceof Blob) this.#parts.push(chunk);
    if (!isData(chunk) || this.isUnreadable) return 0;
    this.#size += chunk.length;
    this.isUnreadable = this.#size > BODY_MAX;
    // The bytes are copied, because the application may reuse the buffer.
    if (this.isUnreadable) this.#parts = [];
    else this.#parts.push(chunk.slice());
    return 0;
  }

  result(): unknown {
    if (BINARY.test(this.#type)) return new Blob(this.#parts, { type: this.#type });
    const decoder = new TextDecoder();
    const texts = this.#parts
      .filter(isData)
      .map((part) => (typeof part === 'string' ? part : decoder.decode(part, STREAM)));
    return wholeResponse(this.#answer, parsedJson(texts.join('')));
  }
}

const STREAM = { stream: true };
