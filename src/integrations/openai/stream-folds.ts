import {
  emptyFields,
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  numberOf,
  textOf,
  without,
} from '../../payload/fields.ts';
import { laterUsage } from '../../services/usage.ts';
import type { Fold } from '../call-reader.ts';
import { addDelta, copyOf } from '../deltas.ts';

/**
 * Fields of a choice that chunks extend, besides the message. Chunks replace all other fields. For example, each chunk
 * contains Azure's complete content filter result.
 */
const EXTENDED: ReadonlySet<string> = new Set(['text', 'logprobs']);

/** Combines the chunks of a chat or text completion. */
export function choicesFold(): Fold {
  const answer = emptyFields();
  const choices = new Map<unknown, Fields>();
  const addChoice = (choice: Fields, isFull: boolean): number => {
    const { index = 0 } = choice;
    const known = choices.get(index) ?? Object.assign(emptyFields(), { index });
    choices.set(index, known);
    const target = isFull ? emptyFields() : known;
    let characters = 0;
    for (const [key, value] of Object.entries(choice)) {
      if (key === 'delta') characters += isFields(value) ? addDelta(target, { message: value }) : 0;
      else if (EXTENDED.has(key)) characters += addDelta(target, { [key]: value });
      else if (key !== 'index') replace(known, key, value);
    }
    return characters;
  };
  return {
    add(chunk, isFull) {
      let characters = 0;
      for (const [key, value] of Object.entries(fieldsOf(chunk))) {
        if (key === 'choices') for (const choice of listOf(value)) characters += addChoice(fieldsOf(choice), isFull);
        // `obfuscation` is random padding that hides the size of a chunk.
        else if (key !== 'obfuscation') replace(answer, key, value);
      }
      return characters;
    },
    result() {
      const object = answer.object === 'chat.completion.chunk' ? 'chat.completion' : answer.object;
      const sorted = [...choices.values()].sort(byIndex);
      return { ...answer, object, choices: sorted.map(withSortedToolCalls) };
    },
  };
}

/** Sets a field. Ignores null, because compatible services may send null for a field that is already set. */
function replace(target: Fields, key: string, value: unknown): void {
  if (key === 'usage' && isFields(value)) target[key] = laterUsage(target[key], copyOf(value));
  else if (value !== null || target[key] === undefined) target[key] = copyOf(value);
}

function byIndex(a: unknown, b: unknown): number {
  return Number(fieldsOf(a).index) - Number(fieldsOf(b).index);
}

/** Sorts tool calls by `index` and removes the `index`, because non-streamed responses have none. */
function withSortedToolCalls(choice: Fields): Fields {
  const { message } = choice;
  if (!isFields(message) || !Array.isArray(message.tool_calls)) return choice;
  const calls = [...message.tool_calls].sort(byIndex).map((call) => (isFields(call) ? without(call, INDEX) : call));
  return { ...choice, message: { ...message, tool_calls: calls } };
}

const INDEX: ReadonlySet<string> = new Set(['index']);

/** Maps each event type to the field of an item or part that the delta is appended to. */
const DELTA_FIELDS: ReadonlyMap<unknown, string> = new Map([
  ['response.output_text.delta', 'text'],
  ['response.refusal.delta', 'refusal'],
  ['response.reasoning_text.delta', 'text'],
  ['response.reasoning_summary_text.delta', 'text'],
  ['response.function_call_arguments.delta', 'arguments'],
  ['response.mcp_call_arguments.delta', 'arguments'],
  ['response.custom_tool_call_input.delta', 'input'],
  ['response.code_interpreter_call_code.delta', 'code'],
]);

/** Maximum index in a list. A larger index would create a huge sparse list. */
const INDEX_MAX = 10_000;

/**
 * Combines the events of a response. Some events contain the complete response and replace it. Between these events,
 * items and parts are built from deltas.
 */
export function responseFold(): Fold {
  let response: Fields = { object: 'response', output: [] };
  let error: unknown;
  const itemAt = (index: unknown): Fields => fieldsOf(listIn(response, 'output')[numberOf(index) ?? -1]);
  return {
    add(event, isFull) {
      const fields = fieldsOf(event);
      const { type, item, part, delta, output_index, content_index, summary_index } = fields;
      const [list, index] = content_index === undefined ? ['summary', summary_index] : ['content', content_index];
      if (isFields(fields.response)) response = copyOf(fields.response);
      else if (type === 'error') error = copyOf(event);
      else if (isFields(item)) put(listIn(response, 'output'), output_index, item);
      else if (isFields(part)) put(listIn(itemAt(output_index), list), index, part);
      const field = DELTA_FIELDS.get(type);
      const text = textOf(delta);
      if (field === undefined || text === undefined) return 0;
      if (!isFull) {
        const owner = itemAt(output_index);
        const target = index === undefined ? owner : fieldsOf(listOf(owner[list])[numberOf(index) ?? -1]);
        target[field] = (textOf(target[field]) ?? '') + text;
      }
      return text.length;
    },
    result: () => (error === undefined ? response : { ...response, error }),
  };
}

function listIn(object: Fields, key: string): unknown[] {
  if (!Array.isArray(object[key])) object[key] = [];
  return object[key] as unknown[];
}

function put(list: unknown[], index: unknown, value: unknown): void {
  const at = numberOf(index) ?? list.length;
  if (Number.isInteger(at) && at >= 0 && at < INDEX_MAX) list[at] = copyOf(value);
}

/** Event fields that are not part of the response. */
const EVENT_FIELDS: ReadonlySet<string> = new Set(['type', 'b64_json', 'created_at', 'partial_image_index']);

/** Collects the complete images in a stream and counts the partial images. */
export function imagesFold(): Fold {
  const data: Fields[] = [];
  let partialImages = 0;
  let answer: Fields = {};
  return {
    add(event) {
      const fields = fieldsOf(event);
      if (textOf(fields.type)?.endsWith('.completed')) {
        data.push({ b64_json: fields.b64_json });
        answer = { created: fields.created_at, ...without(fields, EVENT_FIELDS) };
      } else {
        partialImages++;
      }
      return 0;
    },
    result: () => ({ ...answer, data, ...(partialImages > 0 && { partial_images: partialImages }) }),
  };
}
