import { type Fields, isPlainObject } from './fields.ts';
import { isMessage, plainMessage } from './langchain-messages.ts';

/** How deep, and at how many values, messages and documents are looked for in a payload; LangGraph nests its state. */
const DEPTH_MAX = 16;
const VALUES_MAX = 10_000;

/** The inputs of a step: a plain object itself, anything else as `{ input }`. */
export function plainInputs(inputs: unknown): Fields {
  return plainPayload('input', inputs);
}

/** The same for its outputs, as `{ output }`. */
export function plainOutputs(outputs: unknown): Fields {
  return plainPayload('output', outputs);
}

/** What a graph waits for, under the name that LangGraph gives it in a result. */
export function plainInterrupts(interrupts: readonly unknown[]): Fields {
  return plainOutputs({ __interrupt__: interrupts });
}

/** A tool gets text: as a rule the JSON of its arguments. */
export function toolInputs(input: unknown): Fields {
  if (typeof input !== 'string' || !input.startsWith('{')) return plainInputs(input);
  try {
    return plainInputs(JSON.parse(input));
  } catch {
    return { input };
  }
}

/**
 * A value with plain forms of the messages, prompts and documents in it; the value itself, where it has none. It gets a
 * key unless it was a plain object, or a list of messages that a prompt has come to.
 */
export function plainPayload(key: string, value: unknown): Fields {
  if (value === undefined) return {};
  try {
    const plain = converted(value, DEPTH_MAX, { left: VALUES_MAX });
    const isWhole = isPlainObject(plain) && (isPlainObject(value) || isPromptValue(value));
    return isWhole ? plain : { [key]: plain };
  } catch {
    // Reading the value ran code of the application that threw; it is recorded as it is, where each read is guarded.
    return { [key]: value };
  }
}

function converted(value: unknown, depth: number, budget: { left: number }): unknown {
  if (typeof value !== 'object' || value === null || depth === 0 || --budget.left < 0) return value;
  if (Array.isArray(value)) return convertedList(value, depth - 1, budget);
  if (isPlainObject(value)) return convertedFields(value, depth - 1, budget);
  if (isMessage(value)) return plainMessage(value);
  if (isPromptValue(value)) return plainPrompt(value, depth - 1, budget);
  if (isDocument(value)) return plainDocument(value);
  if (typeof (value as Fields).lg_name === 'string')
    return convertedFields(plainCommand(value as Fields), depth - 1, budget);
  return value;
}

function convertedList(items: readonly unknown[], depth: number, budget: { left: number }): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (let at = 0; at < items.length && budget.left > 0; at++) {
    const item = converted(items[at], depth, budget);
    if (item === items[at]) continue;
    copy ??= [...items];
    copy[at] = item;
  }
  return copy ?? items;
}

function convertedFields(fields: Fields, depth: number, budget: { left: number }): Fields {
  let copy: Fields | undefined;
  for (const key of Object.keys(fields)) {
    const before = fields[key];
    const after = converted(before, depth, budget);
    if (after === before) continue;
    copy ??= { ...fields };
    copy[key] = after;
  }
  return copy ?? fields;
}

/** What a LangGraph node answers with to go elsewhere, or a graph goes on with: Command, Send; without the marks that they are known by. */
function plainCommand({ lg_name: _, lc_direct_tool_output: __, ...fields }: Fields): Fields {
  const { goto, ...rest } = fields;
  return Array.isArray(goto) && goto.length === 0 ? rest : fields;
}

function isPromptValue(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && typeof (value as Fields).toChatMessages === 'function';
}

/** A prompt is a list of messages, or text. */
function plainPrompt(prompt: Fields, depth: number, budget: { left: number }): unknown {
  if (Array.isArray(prompt.messages)) return { messages: convertedList(prompt.messages, depth, budget) };
  return typeof prompt.value === 'string' ? prompt.value : prompt;
}

function isDocument(value: object): value is Fields {
  return typeof (value as Fields).pageContent === 'string' && 'metadata' in value;
}

function plainDocument({ pageContent, metadata, id }: Fields): Fields {
  const document = { page_content: pageContent, type: 'Document', metadata };
  return id === undefined ? document : { ...document, id };
}
