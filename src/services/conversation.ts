import { type Fields, fieldsOf, firstText, isFields, listOf, textOf } from '../payload/fields.ts';
import type { Message, Part, ToolCall, ToolResult } from './message.ts';
import { blockType, partsOf, readToolCall, readToolCalls, resultOf, textPart } from './message-parts.ts';

/** Matches the name of an attachment with a request and its response. The second request of a run is `exchange-2`. */
export const EXCHANGE_NAME: RegExp = /^exchange(-\d+)?$/;

/** Returns the messages in the inputs of a model call. Returns undefined if the format is unknown. */
export function messagesOfInputs(inputs: unknown): Message[] | undefined {
  const fields = unwrapValue(inputs);
  const items = itemsIn(fields);
  const found = items === undefined ? promptMessages(fields) : messagesOf(items);
  if (found === undefined) return undefined;
  const system = fields.system ?? fields.instructions ?? fields.systemInstruction ?? fields.system_instruction;
  const instructions = isFields(system) ? partsOf(system.parts ?? system) : partsOf(system);
  return instructions.length === 0 ? found : [{ role: 'system', parts: instructions }, ...found];
}

export function messagesOfOutputs(outputs: unknown): Message[] | undefined {
  const fields = unwrapValue(outputs);
  if (Array.isArray(fields.choices)) return fields.choices.map(choiceOf);
  if (Array.isArray(fields.candidates)) return fields.candidates.flatMap((one) => messagesOf([fieldsOf(one).content]));
  if (Array.isArray(fields.generations)) return fields.generations.flat(2).flatMap(generationOf);
  // In the first version of Gemini's Interactions API, `outputs` is the content of one message.
  if (listOf(fields.outputs).some((one) => fieldsOf(one).type === 'text'))
    return [{ role: 'assistant', parts: partsOf(fields.outputs) }];
  const items = [fields.output, fields.steps, fields.outputs].find((list) => listOf(list).some(isItem));
  if (items !== undefined) return messagesOf(listOf(items));
  if (Array.isArray(fields.messages)) return messagesOf(fields.messages.flat());
  if (isMessage(fields)) return messagesOf([fields]);
  const { message } = isFields(fields.output) ? fields.output : fields;
  if (isMessage(message)) return messagesOf([message]);
  const parts = [
    ...textPart('reasoning', firstText(fields.reasoning)),
    ...partsOf(firstText(fields.text, fields.output, fields.content, fields.completion, fields.answer)),
    ...readToolCalls(fields),
    ...listOf(fields.files).flatMap(partsOf),
  ];
  return parts.length === 0 ? undefined : [{ role: 'assistant', parts }];
}

/** Returns the tool calls among the blocks of a message, or the items of an answer. */
export function callsAmong(items: readonly unknown[]): ToolCall[] {
  const parts = items.flatMap((item) => itemOf(fieldsOf(item))?.parts ?? partsOf([item]));
  return parts.filter((part) => part.kind === 'call');
}

export function callsInOutputs(outputs: unknown): ToolCall[] {
  return partsIn(messagesOfOutputs(outputs) ?? []).filter((part) => part.kind === 'call');
}

/**
 * Returns the results of tools after the last answer in the inputs of a model call. Gemini and Ollama give no ids, so
 * `call` is then the first call of the answer with this name that no other result belongs to.
 */
export function resultsInInputs(inputs: unknown): (ToolResult & { readonly call?: ToolCall | undefined })[] {
  const items = itemsIn(unwrapValue(inputs)) ?? [];
  const answerAt = items.findLastIndex((item) => messageOf(item).role === 'assistant');
  const parts = partsIn(messagesOf(items.slice(Math.max(0, answerAt))));
  const calls = new Map<string | undefined, ToolCall[]>();
  for (const part of parts.toReversed()) {
    if (part.kind !== 'call' || part.id !== undefined) continue;
    const named = calls.get(part.name);
    if (named === undefined) calls.set(part.name, [part]);
    else named.push(part);
  }
  const results = parts.filter((part) => part.kind === 'result');
  return results.map((result) => {
    const call = result.id === undefined ? calls.get(result.name)?.pop() : undefined;
    return call === undefined ? result : { ...result, call };
  });
}

function partsIn(messages: readonly Message[]): Part[] {
  return messages.flatMap(({ parts }) => parts);
}

/** Unwraps a payload that contains only the argument or the result of a traced function. */
function unwrapValue(value: unknown): Fields {
  const fields = fieldsOf(value);
  const inner = fields.input ?? fields.output ?? fields.outputs ?? fields.kwargs;
  return isFields(inner) && Object.keys(fields).length === 1 ? inner : fields;
}

/** Returns the messages and other items in the inputs of a model call. Returns undefined if there is no list of them. */
function itemsIn(fields: Fields): unknown[] | undefined {
  // LangChain records a list of conversations, which usually has only one item.
  const lists = [fields.messages, fields.contents, fields.prompt, fields.chat_history, fields.input].map(listOf);
  return lists.map((list) => list.flat()).find((list) => list.some(isItem));
}

function promptMessages(fields: Fields): Message[] | undefined {
  const text = firstText(fields.input ?? fields.prompt ?? fields.contents ?? fields.question ?? fields.query);
  const prompts = fields.prompts ?? (text && [text]);
  return Array.isArray(prompts) ? prompts.map((one) => ({ role: 'user', parts: partsOf(one) })) : undefined;
}

/** Returns whether a value is a message, a step of Gemini, or another item of OpenAI's Responses API or Mistral's. */
function isItem(value: unknown): boolean {
  return isMessage(value) || ITEM.test(blockType(value));
}

const ITEM = /^(reasoning|thought|tool.execution|.*[._](call|result)(_output)?)$/;

function isMessage(value: unknown): boolean {
  const { role, content, parts, kwargs, type, data } = fieldsOf(value);
  if (typeof role === 'string') return true;
  if (isFields(kwargs) && 'content' in kwargs) return true;
  if (typeof type === 'string' && isFields(data) && 'content' in data) return true;
  return parts !== undefined || (content !== undefined && typeof type === 'string' && ROLES.has(type));
}

/** Maps LangChain's message types, Gemini's steps, and Gemini's and OpenAI's roles, to the roles that the page shows. */
const ROLES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ human: 'user', user_input: 'user', system: 'system', developer: 'system', tool: 'tool', function: 'tool' },
    ...{ ai: 'assistant', AIMessageChunk: 'assistant', model: 'assistant', model_output: 'assistant' },
  }),
);

function messagesOf(list: readonly unknown[]): Message[] {
  const names = new Map<string | undefined, string>();
  /** Adds the name of its call to a result. Only few services repeat the name. */
  const named = (part: Part): Part => {
    if (part.kind === 'call') names.set(part.id, part.name);
    return part.kind === 'result' && part.id !== undefined ? { ...part, name: part.name ?? names.get(part.id) } : part;
  };
  const messages = list.map(messageOf).filter(({ parts }) => parts.length > 0);
  return messages.map((message) => ({ ...message, parts: message.parts.map(named) }));
}

function messageOf(value: unknown): Message {
  if (typeof value === 'string') return { role: 'user', parts: partsOf(value) };
  const fields = unwrapEnvelope(fieldsOf(value));
  const item = itemOf(fields);
  if (item !== undefined) return item;
  const type = firstText(fields.role, fields.type) ?? 'user';
  const role = ROLES.get(type) ?? type;
  const name = firstText(fields.name);
  const content = fields.content ?? fields.parts ?? fields.text;
  if (role === 'tool' && fields.parts === undefined) {
    const isListed = Array.isArray(content) && content.some((block) => /result/.test(blockType(block)));
    return { role, parts: isListed ? partsOf(content) : [resultOf(fields, content)] };
  }
  const parts: Part[] = [
    ...textPart('reasoning', firstText(fields.reasoning_content, fields.reasoning, fields.thinking)),
    ...partsOf(content),
    ...textPart('refusal', firstText(fields.refusal)),
    ...withoutRepeated(readToolCalls(fields), content),
  ];
  const shown = parts.length === 0 && Object.keys(fields).length > 2 ? [{ kind: 'other', value } as const] : parts;
  return { role, name, parts: shown };
}

/**
 * Unwraps a LangChain message. A serialized message is `{ lc, type: 'constructor', id, kwargs }`, and a stored message
 * is `{ type, data }`.
 */
function unwrapEnvelope(fields: Fields): Fields {
  if (isFields(fields.kwargs)) {
    const type = (textOf(listOf(fields.id).at(-1)) ?? '').replace(/Message(Chunk)?$/, '').toLowerCase();
    return { type, ...fields.kwargs, ...(type === '' ? {} : { role: fields.kwargs.role ?? type }) };
  }
  return isFields(fields.data) && firstText(fields.type) ? { ...fields.data, role: fields.type } : fields;
}

function itemOf(fields: Fields): Message | undefined {
  const type = blockType(fields).replace('.', '_');
  if (fields.role !== undefined || !ITEM.test(type)) return undefined;
  if (type === 'reasoning' || type === 'thought') return { role: 'assistant', parts: partsOf([fields]) };
  if (/_(output|result)$/.test(type)) {
    return { role: 'tool', parts: [resultOf(fields, fields.output ?? fields.result ?? fields.content)] };
  }
  const isNamed = fields.name !== undefined || fields.arguments !== undefined;
  return { role: 'assistant', parts: isNamed ? [readToolCall(fields)] : [{ kind: 'other', value: fields }] };
}

/**
 * Drops tool calls that the content already contains. Some libraries list tool calls both in the content and in a
 * separate field.
 */
function withoutRepeated(calls: readonly Part[], content: unknown): readonly Part[] {
  const isRepeated = listOf(content).some((block) => /^tool[_-](use|call)$/.test(blockType(block)));
  return isRepeated ? [] : calls;
}

function choiceOf(choice: unknown): Message {
  const { message, text, delta } = fieldsOf(choice);
  return messageOf({ role: 'assistant', ...fieldsOf(message ?? delta ?? { content: text }) });
}

function generationOf(generation: unknown): Message[] {
  const { message, text } = fieldsOf(generation);
  if (message !== undefined) return messagesOf([message]);
  return firstText(text) === undefined ? [] : [{ role: 'assistant', parts: partsOf(text) }];
}
