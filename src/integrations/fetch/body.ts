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
  const { fold } = answer;
  const type = withoutParameters(contentType);
  const prefix = LINES.get(type);
  return {
    read: (value) => answer.read(wholeResponse(answer, value)),
    fold: () => (fold === undefined || prefix === undefined ? new WholeFold(type) : new LineFold(fold(), prefix)),
  };
}

/** The text before the value in a line, for each content type of a stream of values. */
const LINES: ReadonlyMap<string, string> = new Map([
  ['text/event-stream', 'data:'],
  ['application/x-ndjson', ''],
  ['application/jsonl', ''],
  ['application/stream+json', ''],
]);

export function isStreamType(contentType: string): boolean {
  return LINES.has(withoutParameters(contentType));
}

function withoutParameters(contentType: string): string {
  return contentType.toLowerCase().replace(/;.*/s, '').trim();
}

/** Combines a response that is a list of chunks, as Gemini sends it. Other responses are returned unchanged. */
function wholeResponse({ read, fold }: AnswerReader, value: unknown): unknown {
  if (!Array.isArray(value) || fold === undefined || value.every((chunk) => read(chunk).isUnreadable)) return value;
  const combined = fold();
  for (const chunk of value) combined.add(chunk, false);
  return combined.result();
}

const BINARY = /^(audio|image|video)\/|^application\/octet-stream$/;

/** Reads a body that consists of one JSON value, or of binary data. */
class WholeFold implements Fold {
  isUnreadable = false;
  readonly #type: string;
  #parts: (Blob | string | Uint8Array<ArrayBuffer>)[] = [];
  #size = 0;

  constructor(type: string) {
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
    const textOf = (part: string | Uint8Array): string =>
      typeof part === 'string' ? part : decoder.decode(part, { stream: true });
    return parsedJson(this.#parts.filter(isData).map(textOf).join(''));
  }
}
