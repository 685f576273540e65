import {
  emptyFields,
  type Fields,
  fieldsOf,
  firstText,
  isFields,
  isPlainObject,
  numberOf,
  parsedJson,
  parseExact,
  textOf,
  without,
  withValues,
} from '../payload/fields.ts';
import { type AnswerReader, type Fold, serviceError } from './answer.ts';
import { laterUsage } from './usage.ts';

/** Keys in a delta whose text replaces earlier text. Text under all other keys is appended. */
const REPLACED: ReadonlySet<string> = new Set([
  ...['id', 'type', 'role', 'name', 'object', 'format', 'finish_reason', 'stop_reason', 'completionReason'],
]);

/**
 * Whether a value says nothing. Known only from reports: compatible services repeat such values in later chunks, for
 * example `name: ''` (https://github.com/symfony/ai/pull/2220).
 */
export function saysNothing(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value === undefined || !(value || value === false);
  return Array.isArray(value) ? value.length === 0 : isPlainObject(value) && Object.keys(value).length === 0;
}

/** Whether a block has a type, but nothing of its kind. */
export function hasOnlyType(block: Fields): boolean {
  return Object.entries(block).every(([key, value]) => key === 'type' || saysNothing(value));
}

/**
 * Merges a delta into `target`. Text is appended, objects and lists are merged, and other values are replaced. An empty
 * value never replaces a value. If the type of a value changes, both become blocks of a list. Returns the number of
 * appended characters. Objects and lists are copied, never shared with the delta.
 */
export function addDelta(target: Fields, delta: Fields): number {
  let characters = 0;
  for (const [key, value] of Object.entries(delta)) {
    const present = target[key];
    if (saysNothing(value)) {
      if (present === undefined) target[key] = copyOf(value);
    } else if (typeof value === 'string' && REPLACED.has(key)) {
      target[key] = value;
    } else if (!saysNothing(present) && kindOf(present) !== kindOf(value)) {
      const blocks = blocksOf(present);
      target[key] = blocks;
      characters += addItems(blocks, blocksOf(value), key);
    } else if (typeof value === 'string') {
      target[key] = (textOf(present) ?? '') + value;
      characters += value.length;
    } else if (Array.isArray(value)) {
      if (!Array.isArray(present)) target[key] = [];
      characters += addItems(target[key] as unknown[], value, key);
    } else if (isFields(value)) {
      if (!isFields(present)) target[key] = emptyFields();
      characters += addDelta(target[key] as Fields, value);
    } else {
      target[key] = value;
    }
  }
  return characters;
}

function kindOf(value: unknown): string {
  if (typeof value === 'string') return 'text';
  return Array.isArray(value) ? 'list' : isFields(value) ? 'fields' : 'other';
}

function blocksOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  return [typeof value === 'string' ? { type: 'text', text: value } : value];
}

/** Lists whose items are streamed in parts. */
const IN_PARTS: ReadonlySet<string> = new Set(['content', 'summary', 'thinking', 'tool_calls']);
/** Types of items that a later part without an index may continue. The text of the item has the same key. */
const CONTINUED: readonly string[] = ['text', 'thinking', 'function', 'custom'];

function addItems(target: unknown[], items: readonly unknown[], key: string): number {
  let characters = 0;
  for (const item of items) {
    const isPart = isFields(item) && IN_PARTS.has(key) && CONTINUED.some((type) => item[type] !== undefined);
    if (isPart || numberOf(fieldsOf(item).index) !== undefined) {
      characters += addDelta(itemFor(target, item as Fields), item as Fields);
    } else {
      characters += isFields(item) ? addDelta(emptyFields(), item) : 0;
      target.push(copyOf(item));
    }
  }
  return characters;
}

/** Only the last items may be continued. Otherwise, a long list takes quadratic time. */
const NEAR_MAX = 100;

/**
 * Returns the item of a list that `part` continues: the last one with its index and id, else the last one with its index.
 * A part without an index continues the last item. If there is none, or if the part starts another item, appends an item.
 */
export function itemFor(list: unknown[], part: Fields): Fields {
  const index = numberOf(part.index);
  const id = idOf(part);
  const isNear = (item: unknown): item is Fields => isFields(item) && (index === undefined || item.index === index);
  const near = list.slice(-NEAR_MAX);
  const known = (id && near.findLast((item) => isNear(item) && idOf(item) === id)) || near.findLast(isNear);
  if (isFields(known) && !isOther(known, part)) return known;
  const added = emptyFields();
  if (index !== undefined) added.index = index;
  list.push(added);
  return added;
}

/**
 * Whether a part starts another item than the known one with its index. Known only from reports: Gemini's endpoint for
 * OpenAI's clients gives all calls the index 0 (https://github.com/NousResearch/hermes-agent/issues/62937). A repeated id
 * and name, or another id without a name, start no other call.
 */
function isOther(known: Fields, part: Fields): boolean {
  const type = firstText(part.type);
  if (type !== undefined && (firstText(known.type) ?? type) !== type) return true;
  const isIndexed = numberOf(part.index) !== undefined;
  const name = nameOf(part);
  if (name === undefined) return !isIndexed && type !== undefined && !CONTINUED.includes(type);
  const [knownId, id] = [idOf(known), idOf(part)];
  if (knownId !== undefined && id !== undefined) return knownId !== id;
  return !isIndexed || (nameOf(known) ?? name) !== name;
}

function idOf({ id, toolUse }: Fields): string | undefined {
  return firstText(id, fieldsOf(toolUse).toolUseId);
}

/** Returns the name of a call. The result of a call is named after the call. */
function nameOf({ name, function: called, custom, toolUse, tool_use_id }: Fields): string | undefined {
  return firstText(name, fieldsOf(called).name, fieldsOf(custom).name, fieldsOf(toolUse).name, tool_use_id);
}

const INDEX: ReadonlySet<string> = new Set(['index']);

/** Removes the `index` of items, because responses that are not streamed have none. */
export function withoutIndex(items: readonly unknown[]): unknown[] {
  return items.map((item) => (isFields(item) ? without(item, INDEX) : item));
}

/** Fields with running totals of tokens. */
const TOTALS: ReadonlySet<string> = new Set(['usage', 'usageMetadata']);

/** Replaces fields by those of a later state. An empty value never replaces a value, however deep it is. */
export function update(target: Fields, later: unknown): void {
  for (const [key, value] of Object.entries(fieldsOf(later))) {
    const isTotal = TOTALS.has(key) && isFields(value);
    target[key] = isTotal ? laterUsage(target[key], copyOf(value)) : updated(target[key], value);
  }
}

/** Returns the later of two states of a value. Items of a list that have the same type are states of one item. */
export function updated(earlier: unknown, later: unknown): unknown {
  if (earlier !== undefined && saysNothing(later)) return earlier;
  if (Array.isArray(earlier) && Array.isArray(later)) {
    return later.map((item, at) => {
      const [one, other] = [fieldsOf(item), fieldsOf(earlier[at])];
      const isOne = one.type !== undefined && one.type === other.type && (one.id ?? other.id) === (other.id ?? one.id);
      return isOne ? completed(item, earlier[at]) : copyOf(item);
    });
  }
  if (!isPlainObject(earlier) || !isPlainObject(later)) return copyOf(later);
  const copy = Object.assign(emptyFields(), earlier);
  update(copy, later);
  return copy;
}

/** Returns the complete state of an item. Its empty values are those of an earlier state. */
function completed(item: unknown, earlier: unknown): Fields {
  const values = withValues(fieldsOf(item), (value, key) => updated(fieldsOf(earlier)[key], value));
  return Object.assign(emptyFields(), values);
}

/** Deep-copies plain objects and lists. Class instances are not copied. */
export function copyOf<Value>(value: Value): Value;
export function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => copyOf(item));
  if (!isPlainObject(value)) return value;
  const copy = emptyFields();
  for (const [key, item] of Object.entries(value)) copy[key] = copyOf(item);
  return copy;
}

/** Returns a reader for server-sent events. Each event contains one line of JSON for `reader`. */
export function eventReader(reader: AnswerReader): AnswerReader {
  const { fold } = reader;
  return { ...reader, fold: fold && (() => new LineFold(fold(), 'data:', true)) };
}

/** Matches lines that are invalid in server-sent events: neither a field nor a comment. */
const OTHER_LINE = /^(?!:|(?:data|event|id|retry)(?::|$))\s*\S/;
/** Maximum length of an error that is not an event, in characters. */
const ERROR_MAX = 65_536;

/**
 * Reads a stream with one JSON value per line, after `prefix`. The stream contains server-sent events, or JSON lines if
 * the prefix is empty. Other lines are ignored, unless they are an error as JSON, at which Google's clients throw. If an
 * event stream contains only other lines, for example an HTML page, the response is unreadable.
 *
 * An invalid line fails the run if the client also parses the lines, and so throws the same error. Else it only makes the
 * response unreadable.
 */
export class LineFold implements Fold {
  readonly #fold: Fold;
  readonly #prefix: string;
  readonly #isParsed: boolean;
  #lineError: unknown;
  readonly #decoder = new TextDecoder();
  #rest = '';
  #others = '';
  #isDone = false;
  #hasEvents = false;

  constructor(fold: Fold, prefix: string, isParsed = false) {
    this.#fold = fold;
    this.#prefix = prefix;
    this.#isParsed = isParsed;
  }

  get error(): unknown {
    return this.#fold.error ?? (this.#isParsed ? this.#lineError : undefined);
  }

  get isComplete(): boolean {
    return this.#isDone || this.#fold.isComplete === true;
  }

  get isUnreadable(): boolean {
    return (this.#others !== '' && !this.#hasEvents) || (!this.#isParsed && this.#lineError !== undefined);
  }

  add(chunk: unknown, isFull: boolean): number {
    if (!isData(chunk)) return 0;
    const text = typeof chunk === 'string' ? chunk : this.#decoder.decode(chunk, { stream: true });
    const lines = text.split(/\r\n|\n|\r/);
    // A long line, for example with an image, is not split again for each chunk.
    lines[0] = this.#rest + lines[0];
    this.#rest = lines.pop() ?? '';
    let characters = 0;
    for (const line of lines) characters += this.#addLine(line, isFull);
    // The client may leave the rest of the body unread, so the error is not the beginning of a longer line.
    if (text.endsWith('}')) this.#addError(this.#others + this.#rest);
    return characters;
  }

  result(): unknown {
    // The last line may have no line break. If the stream was cut off, the last line is incomplete and is ignored.
    const lineError = this.#lineError;
    this.#addLine(this.#rest, false);
    this.#rest = '';
    if (this.#lineError instanceof SyntaxError) this.#lineError = lineError;
    return this.#fold.result();
  }

  #addLine(line: string, isFull: boolean): number {
    if (!line.startsWith(this.#prefix)) {
      if (OTHER_LINE.test(line) && this.#others.length < ERROR_MAX) this.#others += line;
      if (line.endsWith('}') && this.#others.length < ERROR_MAX) this.#addError(this.#others);
      return 0;
    }
    this.#hasEvents = true;
    const data = line.slice(this.#prefix.length).trim();
    if (data === '[DONE]') this.#isDone = true;
    if (data === '' || this.isComplete) return 0;
    try {
      return this.#fold.add(parseExact(data), isFull);
    } catch (thrown) {
      this.#lineError ??= thrown;
      return 0;
    }
  }

  #addError(json: string): void {
    const value = json.startsWith('{') && this.#prefix !== '' ? parsedJson(json) : undefined;
    if (serviceError(value) === undefined || this.isComplete) return;
    this.#hasEvents = true;
    this.#fold.add(value, false);
  }
}

export function isData(chunk: unknown): chunk is string | Uint8Array<ArrayBuffer> {
  return typeof chunk === 'string' || ArrayBuffer.isView(chunk);
}
