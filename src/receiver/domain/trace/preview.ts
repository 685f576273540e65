import { cut } from '../../../base/text.ts';
import { exactJson, type Fields, fieldsOf, isFields, listOf, numberOf, without } from '../../../payload/fields.ts';
import { vectorsOf } from '../../../services/answer.ts';
import { callsAmong } from '../../../services/conversation.ts';
import type { ToolCall } from '../../../services/message.ts';
import { isAside, readToolCalls } from '../../../services/message-parts.ts';
import type { RunFields } from '../run-message.ts';

const LENGTH_MAX = 200;
/** Maximum number of nested levels to search for text, and of items at the end of an array. */
const LEVELS_MAX = 8;
const ITEMS_MAX = 20;
/** Maximum number of arguments of a tool call that are shown as a list, and of characters of one and of all others. */
const [ARGUMENTS_MAX, ARGUMENT_MAX, JSON_MAX] = [3, 40, 60];

/** Names of fields that contain text in the payloads of chat models and chains. Earlier names take precedence. */
const MESSAGES = ['messages', 'message', 'choices', 'candidates', 'generations', 'kwargs', 'parts'] as const;
const OF_INPUTS = ['input', 'question', 'query', 'prompt'] as const;
const OF_OUTPUTS = ['answer', 'output', 'outputs', 'result', 'response', 'steps'] as const;
const INPUT_KEYS: readonly string[] = ['content', 'text', ...MESSAGES, ...OF_INPUTS, ...OF_OUTPUTS];
/** `text` comes late, because the answers of OpenAI's Responses API have the format of the text there. */
const OUTPUT_KEYS: readonly string[] = ['content', ...MESSAGES, ...OF_OUTPUTS, 'text', ...OF_INPUTS];
const IN_INPUTS: ReadonlySet<string> = new Set(OF_INPUTS);

/**
 * Returns a one-line preview of a run's inputs, with at most 200 characters. The preview is the last message of a
 * conversation, the text field of an object, or the beginning of the JSON. Returns undefined if there are no inputs.
 */
export function inputsPreview({ inputs }: RunFields): string | undefined {
  return isEmpty(inputs) ? undefined : lineOf(textIn(inputs, INPUT_KEYS, LEVELS_MAX) ?? exactJson(inputs));
}

/**
 * Returns a preview like `inputsPreview`. Fields with the names of inputs are left out, if there are others. An answer
 * without text has its tool calls as the preview, and embeddings have their size.
 */
export function outputsPreview({ outputs, run_type }: RunFields): string | undefined {
  if (isEmpty(outputs)) return undefined;
  const text = textIn(outputs, OUTPUT_KEYS, LEVELS_MAX) ?? embeddingText(outputs, run_type);
  return lineOf(text ?? exactJson(withoutInputs(outputs)));
}

/** Leaves out the fields with the names of inputs, unless there are no others. */
function withoutInputs(outputs: Fields): Fields {
  if (!isFields(outputs) || !OF_INPUTS.some((key) => Object.hasOwn(outputs, key))) return outputs;
  const others = without(outputs, IN_INPUTS);
  return isEmpty(others) ? outputs : others;
}

function isEmpty(payload: unknown): payload is undefined {
  return payload === undefined || payload === null || (isFields(payload) && Object.keys(payload).length === 0);
}

/** Returns the first line that a list can show. Single spaces are not matched, because replacing them would only cost time. */
function lineOf(text: string): string | undefined {
  const joined = (part: string): string => part.replace(/\s{2,}|[^\S ]/g, ' ').trim();
  // The beginning of the text is usually long enough. A longer part is used if the beginning is mostly white space.
  const beginning = joined(text.slice(0, 2 * LENGTH_MAX));
  const line = beginning.length > LENGTH_MAX ? beginning : joined(text.slice(0, 8 * LENGTH_MAX));
  return line === '' ? undefined : cut(line, LENGTH_MAX);
}

function textIn(value: unknown, keys: readonly string[], levels: number): string | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : value;
  if (levels === 0) return undefined;
  if (Array.isArray(value)) return textOfItems(value.slice(-ITEMS_MAX).reverse(), keys, levels);
  if (!isFields(value)) return undefined;
  const fields = keys === OUTPUT_KEYS ? withoutInputs(value) : value;
  for (const key of keys) {
    const text = Object.hasOwn(fields, key) ? textIn(fields[key], keys, levels - 1) : undefined;
    if (text !== undefined) return text;
  }
  const [only, ...others] = Object.values(fields);
  return callsText(readToolCalls(value)) ?? (others.length === 0 ? textIn(only, keys, levels - 1) : undefined);
}

/** Returns the text of the last item that has one. Tool calls, and then reasoning, only count if there is no other text. */
function textOfItems(items: readonly unknown[], keys: readonly string[], levels: number): string | undefined {
  const asides: unknown[] = [];
  for (const item of items) {
    const text = isAside(item) ? void asides.push(item) : textIn(item, keys, levels - 1);
    if (text !== undefined) return text;
  }
  if (asides.length === 0) return undefined;
  const calls = callsText(callsAmong(asides.toReversed()));
  return calls ?? asides.map((item) => textIn(item, keys, levels - 1)).find((text) => text !== undefined);
}

/** Formats tool calls, for example `→ lookup_order(1042), search("refund")`. A text is quoted, unless it is alone and an id. */
function callsText(calls: readonly ToolCall[]): string | undefined {
  const texts = calls.slice(0, ITEMS_MAX).map(({ name, input }) => `${name}(${argumentsText(input)})`);
  return texts.length === 0 ? undefined : `→ ${texts.join(', ')}`;
}

function argumentsText(input: unknown): string {
  const values = isFields(input) ? Object.values(input) : [input];
  if (values.length > ARGUMENTS_MAX || values.some((value) => isFields(value) || Array.isArray(value)))
    return cut(exactJson(input), JSON_MAX);
  const isId = values.length === 1 && /^(?=.*\d)[\w.:-]+$/.test(`${values[0]}`);
  const textOf = (value: unknown): string => cut(`${value}`, ARGUMENT_MAX);
  return values.map((one) => (typeof one === 'string' && !isId ? JSON.stringify(textOf(one)) : textOf(one))).join(', ');
}

/** Returns the size of embeddings. Most integrations record it instead of the numbers. */
function embeddingText(outputs: Fields, runType: string | undefined): string | undefined {
  const { embedding, embeddings, data, count, dimensions } = outputs;
  const first = fieldsOf(listOf(embeddings ?? data)[0]);
  const hasVectors = (embedding ?? embeddings ?? first.embedding) !== undefined;
  const size = hasVectors ? vectorsOf(outputs) : { count, dimensions };
  const [vectors, numbers] = [numberOf(size.count), numberOf(size.dimensions ?? first.dimensions)];
  const isEmbedding = hasVectors || runType === 'embedding';
  if (!isEmbedding || vectors === undefined || numbers === undefined) return undefined;
  const [one, other] = [vectors, numbers].map((number) => number.toLocaleString('en-US'));
  return vectors === 1 ? `1 embedding, ${other} numbers` : `${one} embeddings, ${other} numbers each`;
}
