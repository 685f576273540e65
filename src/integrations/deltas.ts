import { emptyFields, type Fields, fieldsOf, isFields, isPlainObject } from '../payload/fields.ts';
import { type AnswerReader, errorLine, type Fold } from './call-reader.ts';

/** Keys in a delta whose text replaces earlier text. Text under all other keys is appended. */
const REPLACED: ReadonlySet<string> = new Set(['id', 'type', 'role', 'name', 'object', 'format', 'finish_reason']);

/**
 * Merges a delta into `target`. Text is appended, objects and lists are merged, and other values are replaced. List
 * items are merged by `index`, or appended if they have none. Returns the number of appended characters. Objects and
 * lists are copied, never shared with the delta.
 */
export function addDelta(target: Fields, delta: Fields): number {
  let characters = 0;
  for (const [key, value] of Object.entries(delta)) {
    const present = target[key];
    if (typeof value === 'string' && !REPLACED.has(key)) {
      target[key] = typeof present === 'string' ? present + value : value;
      characters += value.length;
    } else if (Array.isArray(value)) {
      if (!Array.isArray(present)) target[key] = [];
      characters += addItems(target[key] as unknown[], value);
    } else if (isFields(value)) {
      if (!isFields(present)) target[key] = emptyFields();
      characters += addDelta(target[key] as Fields, value);
    } else if (present === undefined || (value !== null && value !== undefined)) {
      target[key] = value;
    }
  }
  return characters;
}

function addItems(target: unknown[], items: readonly unknown[]): number {
  let characters = 0;
  for (const item of items) {
    if (!isFields(item)) {
      target.push(copyOf(item));
      continue;
    }
    const { index } = item;
    const isSame = (known: unknown): known is Fields => isFields(known) && known.index === index;
    const known = typeof index === 'number' ? target.find(isSame) : undefined;
    const into = known ?? emptyFields();
    if (known === undefined) target.push(into);
    characters += addDelta(into, item);
  }
  return characters;
}

/** Deep-copies plain objects and lists. Class instances are not copied. */
export function copyOf<Value>(value: Value): Value;
export function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => copyOf(item));
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copyOf(item)]));
}

/** Returns a reader for server-sent events. Each event contains one line of JSON for `reader`. */
export function eventReader(reader: AnswerReader): AnswerReader {
  const { fold } = reader;
  return { ...reader, fold: fold && (() => new LineFold(fold(), 'data:')) };
}

/** Event types that mark the end of a response. Applications stop reading at these events. */
const LAST_EVENTS: ReadonlySet<unknown> = new Set([
  'message_stop',
  'message-end',
  'response.completed',
  'response.failed',
  'response.incomplete',
]);

/** Matches lines that are invalid in server-sent events: neither a field nor a comment. */
const OTHER_LINE = /^(?!:|(?:data|event|id|retry)(?::|$))\s*\S/;

/**
 * Reads a stream with one JSON value per line, after `prefix`. The stream contains server-sent events, or JSON lines if
 * the prefix is empty. All other lines are ignored. If an event stream contains only other lines, for example an HTML
 * page, the response is unreadable.
 */
export class LineFold implements Fold {
  isComplete = false;
  protected lineError: unknown;
  readonly #fold: Fold;
  readonly #prefix: string;
  readonly #decoder = new TextDecoder();
  #rest = '';
  #hasEvents = false;
  #hasOtherLines = false;

  constructor(fold: Fold, prefix: string) {
    this.#fold = fold;
    this.#prefix = prefix;
  }

  get error(): unknown {
    return this.lineError;
  }

  get isUnreadable(): boolean {
    return this.#hasOtherLines && !this.#hasEvents;
  }

  add(chunk: unknown, isFull: boolean): number {
    const text = typeof chunk === 'string' ? chunk : this.#decoder.decode(chunk as Uint8Array, { stream: true });
    const lines = text.split(/\r\n|\n|\r/);
    // A long line, for example with an image, is not split again for each chunk.
    lines[0] = this.#rest + lines[0];
    this.#rest = lines.pop() ?? '';
    let characters = 0;
    for (const line of lines) characters += this.#addLine(line, isFull);
    return characters;
  }

  result(): unknown {
    // The last line may have no line break. If the stream was cut off, the last line is incomplete and is ignored.
    const { lineError } = this;
    this.#addLine(this.#rest, false);
    this.#rest = '';
    if (this.lineError instanceof SyntaxError) this.lineError = lineError;
    return this.#fold.result();
  }

  #addLine(line: string, isFull: boolean): number {
    const isEvent = line.startsWith(this.#prefix);
    if (isEvent) this.#hasEvents = true;
    else if (!this.#hasEvents) this.#hasOtherLines ||= OTHER_LINE.test(line);
    const data = isEvent ? line.slice(this.#prefix.length).trim() : '';
    if (data === '[DONE]') this.isComplete = true;
    if (data === '' || data === '[DONE]') return 0;
    try {
      const value: unknown = JSON.parse(data);
      const { type, error } = fieldsOf(value);
      if (type === 'error') this.lineError ??= errorLine(fieldsOf(error).type, fieldsOf(error).message) ?? 'error';
      const characters = this.#fold.add(value, isFull);
      if (this.#fold.isComplete === true || LAST_EVENTS.has(type)) this.isComplete = true;
      return characters;
    } catch (thrown) {
      // The SDK also parses the line, so the application receives the same error.
      this.lineError ??= thrown;
      return 0;
    }
  }
}
