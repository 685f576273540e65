import type { AnswerReader, Fold } from '../call-reader.ts';
import { LineFold } from '../deltas.ts';

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
  if (answer.fold !== undefined && type === 'text/event-stream') return new StreamFold(answer.fold(), 'data:');
  if (answer.fold !== undefined && /^application\/(x-ndjson|jsonl|stream\+json)$/.test(type)) {
    return new StreamFold(answer.fold(), '');
  }
  return /^(audio|image|video)\/|^application\/octet-stream$/.test(type) ? new BinaryFold(type) : new TextFold(answer);
}

/** Reads a stream of JSON values. An invalid line makes the response unreadable but does not fail the run. */
class StreamFold extends LineFold {
  override get isUnreadable(): boolean {
    return super.isUnreadable || this.lineError !== undefined;
  }

  override get error(): unknown {
    return this.fold.error;
  }

  override add(chunk: unknown, isFull: boolean): number {
    return isData(chunk) ? super.add(chunk, isFull) : 0;
  }
}

/** Reads a body that consists of one JSON value. */
class TextFold implements Fold {
  isUnreadable = false;
  readonly #answer: AnswerReader;
  readonly #decoder = new TextDecoder();
  #text = '';

  constructor(answer: AnswerReader) {
    this.#answer = answer;
  }

  add(chunk: unknown): number {
    if (!isData(chunk) || this.isUnreadable) return 0;
    this.#text += typeof chunk === 'string' ? chunk : this.#decoder.decode(chunk, { stream: true });
    if (this.#text.length > BODY_MAX) {
      this.isUnreadable = true;
      this.#text = '';
    }
    return 0;
  }

  result(): unknown {
    try {
      return wholeResponse(this.#answer, JSON.parse(this.#text));
    } catch {
      return this.#text;
    }
  }
}

class BinaryFold implements Fold {
  isUnreadable = false;
  readonly #type: string;
  #parts: (Blob | Uint8Array<ArrayBuffer>)[] = [];
  #bytes = 0;

  constructor(type: string) {
    this.#type = type;
  }

  add(chunk: unknown): number {
    if (chunk instanceof Blob) this.#parts.push(chunk);
    if (!ArrayBuffer.isView(chunk) || this.isUnreadable) return 0;
    this.#bytes += chunk.byteLength;
    this.isUnreadable = this.#bytes > BODY_MAX;
    // The bytes are copied, because the application may reuse the buffer.
    if (this.isUnreadable) this.#parts = [];
    else this.#parts.push((chunk as Uint8Array<ArrayBuffer>).slice());
    return 0;
  }

  result(): Blob {
    return new Blob(this.#parts, { type: this.#type });
  }
}

function isData(chunk: unknown): chunk is string | Uint8Array {
  return typeof chunk === 'string' || ArrayBuffer.isView(chunk);
}
