import type { Run } from '../run/run.ts';
import { type Answer, type AnswerReader, type Fold, headlineOf } from './answer.ts';
import { AnswerReading } from './answer-reading.ts';
import { fieldsOf } from './fields.ts';

/** A response whose body is read by another part of a client than the one that asked. */
export interface HandedResponse {
  readonly response?: { readonly body?: object | null };
  readonly controller?: { readonly signal?: AbortSignal };
}

/**
 * The same as `followModelStream` for the body of a response, where the stream is made of it elsewhere. Only iteration is
 * followed, which is how these clients read; the body stays the same object. False when it has none.
 */
export function followEventBody({ response, controller }: HandedResponse, run: Run, reader: AnswerReader): boolean {
  const body = response?.body;
  if (reader.fold === undefined || typeof body !== 'object' || body === null) return false;
  const fold = new EventFold(reader.fold());
  return new AnswerReading(run, fold, controller?.signal).follow(body, Symbol.asyncIterator);
}

/** Takes the bytes of server-sent events whose data are one line of JSON each. */
class EventFold implements Fold {
  readonly #fold: Fold;
  readonly #decoder = new TextDecoder();
  #rest = '';
  #error: unknown;

  constructor(fold: Fold) {
    this.#fold = fold;
  }

  get characters(): number {
    return this.#fold.characters;
  }

  add(chunk: unknown, isFull: boolean): void {
    const lines = (this.#rest + this.#decoder.decode(chunk as Uint8Array, { stream: true })).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data:')) this.#take(line.slice('data:'.length), isFull);
  }

  answer(): Answer {
    const answer = this.#fold.answer();
    return this.#error === undefined ? answer : { ...answer, error: this.#error };
  }

  #take(data: string, isFull: boolean): void {
    try {
      const event: unknown = JSON.parse(data);
      const { type, error } = fieldsOf(event);
      if (type === 'error') this.#error ??= headlineOf(fieldsOf(error).type, fieldsOf(error).message) ?? 'error';
      this.#fold.add(event, isFull);
    } catch (thrown) {
      // The client fails on it as well.
      this.#error ??= thrown;
    }
  }
}
