import type { Answer, Fold } from './answer.ts';
import { copyOf } from './delta.ts';
import { type Fields, fieldsOf, isFields, numberOf, textOf } from './fields.ts';

/** The field of an item, or of a part of one, that the deltas of an event go on. */
const DELTAS: ReadonlyMap<unknown, string> = new Map([
  ['response.output_text.delta', 'text'],
  ['response.refusal.delta', 'refusal'],
  ['response.reasoning_text.delta', 'text'],
  ['response.reasoning_summary_text.delta', 'text'],
  ['response.function_call_arguments.delta', 'arguments'],
  ['response.mcp_call_arguments.delta', 'arguments'],
  ['response.custom_tool_call_input.delta', 'input'],
  ['response.code_interpreter_call_code.delta', 'code'],
]);

/** Items or parts that an index may name; a stream that counts higher is not one that a model sends. */
const INDEX_MAX = 10_000;

/**
 * Events of a streamed response. The last that carries the whole response stands; until it has come, items and their parts
 * are put together from the deltas.
 */
export class ResponseFold implements Fold {
  characters = 0;
  readonly #read: (answer: Fields) => Answer;
  #response: Fields = { object: 'response', output: [] };
  #error: unknown;

  constructor(read: (answer: Fields) => Answer) {
    this.#read = read;
  }

  add(event: unknown, isFull: boolean): void {
    const fields = fieldsOf(event);
    if (isFields(fields.response)) this.#response = copyOf(fields.response) as Fields;
    else if (fields.type === 'error') this.#error = copyOf(event);
    else if (isFields(fields.item)) put(this.#output, fields.output_index, fields.item);
    else if (isFields(fields.part)) this.#addPart(fields);
    else this.#addDelta(fields, isFull);
  }

  answer(): Answer {
    return this.#read(this.#error === undefined ? this.#response : { ...this.#response, error: this.#error });
  }

  #addPart({ part, output_index, content_index, summary_index }: Fields): void {
    const item = fieldsOf(this.#output[numberOf(output_index) ?? -1]);
    if (content_index !== undefined) put(listIn(item, 'content'), content_index, part);
    else put(listIn(item, 'summary'), summary_index, part);
  }

  #addDelta({ type, delta, output_index, content_index, summary_index }: Fields, isFull: boolean): void {
    const field = DELTAS.get(type);
    const text = textOf(delta);
    if (field === undefined || text === undefined) return;
    this.characters += text.length;
    if (isFull) return;
    const item = fieldsOf(this.#output[numberOf(output_index) ?? -1]);
    const parts = content_index !== undefined ? item.content : summary_index !== undefined ? item.summary : undefined;
    const at = numberOf(content_index ?? summary_index) ?? -1;
    const target = fieldsOf(Array.isArray(parts) ? parts[at] : item);
    target[field] = (textOf(target[field]) ?? '') + text;
  }

  get #output(): unknown[] {
    return listIn(this.#response, 'output');
  }
}

function listIn(object: Fields, key: string): unknown[] {
  const present = object[key];
  if (Array.isArray(present)) return present;
  const list: unknown[] = [];
  object[key] = list;
  return list;
}

function put(list: unknown[], index: unknown, value: unknown): void {
  const at = numberOf(index) ?? list.length;
  if (Number.isInteger(at) && at >= 0 && at < INDEX_MAX) list[at] = copyOf(value);
}
