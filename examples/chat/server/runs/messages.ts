import {
  type AIMessage,
  BaseMessage,
  type BaseMessageLike,
  coerceMessageLikeToMessage,
  HumanMessage,
  ToolMessage,
} from '@langchain/core/messages';
import { v7 as uuidv7 } from '@langchain/core/utils/uuid';
import { RequestError } from '../errors.ts';

export type Fields = Readonly<Record<string, unknown>>;

const TITLE_CHARS = 80;

/** Returns an untrusted value as an object, or an empty object if it is not one. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

/**
 * Converts a graph's value to JSON as clients of the protocol expect it. A message becomes a plain object with a `type`
 * instead of LangChain's envelope. A value that JSON cannot represent becomes `{ unreadable }`.
 */
export function plainJson(value: unknown): string {
  try {
    return JSON.stringify(value, plainly) ?? 'null';
  } catch (error) {
    return JSON.stringify({ unreadable: (error as Error).message });
  }
}

function plainly(this: unknown, key: string, value: unknown): unknown {
  // The original value is used, because `JSON.stringify` has already called the message's `toJSON`, which creates the
  // envelope.
  const original = fieldsOf(this)[key];
  if (BaseMessage.isInstance(original)) return plainMessage(original);
  if (original instanceof Error) return { name: original.name, message: original.message };
  if (typeof value === 'bigint') return value.toString();
  return value;
}

function plainMessage(message: BaseMessage): Fields {
  const { type, id, content, name, additional_kwargs, response_metadata } = message;
  const { tool_calls, invalid_tool_calls, usage_metadata } = message as AIMessage;
  const { tool_call_id, status, artifact } = message as ToolMessage;
  const own = { tool_calls, invalid_tool_calls, usage_metadata, tool_call_id, status, artifact };
  return { type, id, content, name, ...own, additional_kwargs, response_metadata };
}

/**
 * Converts the messages in an input to LangChain's objects, each with an id. Throws a RequestError if a message is
 * invalid. The graph would notice this only after it has stored the message, and could then never load the thread
 * again.
 */
export function withMessages(values: unknown, place: string, canRemove = false): unknown {
  const { messages } = fieldsOf(values);
  if (messages === undefined) return values;
  const list = Array.isArray(messages) ? messages : [messages];
  const coerced = list.map((message, index) => coerce(message, `${place}.messages.${index}`, canRemove));
  return { ...fieldsOf(values), messages: coerced };
}

function coerce(value: unknown, place: string, canRemove: boolean): BaseMessage {
  const refusal = (problem: string): RequestError => new RequestError('invalid_argument', `${place}: ${problem}`);
  const given = typeof value === 'string' ? { type: 'human', content: value } : fieldsOf(value);
  // In LangChain's envelope, the fields are in `kwargs`.
  const fields = given.lc === undefined ? { ...given, id: given.id ?? uuidv7() } : fieldsOf(given.kwargs);
  let message: BaseMessage;
  try {
    message = coerceMessageLikeToMessage((given.lc === undefined ? fields : given) as BaseMessageLike);
  } catch {
    throw refusal('Expected text, or an object with a role such as "user"');
  }
  if (message.type === 'remove') {
    if (canRemove && typeof given.id === 'string') return message;
    throw refusal(canRemove ? 'Expected an id with the type "remove"' : 'An input cannot remove messages');
  }
  if (ToolMessage.isInstance(message) && typeof message.tool_call_id !== 'string')
    throw refusal('Expected a tool_call_id with the type "tool"');
  const { content, tool_calls: calls } = fields as Fields;
  const isContent = Array.isArray(content) ? content.every(isBlock) : typeof content === 'string';
  if (!isContent && !((content === null || content === undefined) && calls !== undefined))
    throw refusal('Expected content to be a string, or a list of objects with a type');
  if (calls !== undefined && !(Array.isArray(calls) && calls.every(isCall)))
    throw refusal('Expected tool_calls to be a list of objects with a name');
  return message;
}

function isBlock(block: unknown): boolean {
  return typeof fieldsOf(block).type === 'string';
}

/** Whether a value is a tool call in the format of LangChain or OpenAI. */
function isCall(call: unknown): boolean {
  const fields = fieldsOf(call);
  return typeof (fields.function === undefined ? fields : fieldsOf(fields.function)).name === 'string';
}

/** Returns the messages in a state or in a validated input. */
export function messagesOf(values: unknown): readonly BaseMessage[] {
  const { messages } = fieldsOf(values);
  return Array.isArray(messages) ? messages.filter((message) => BaseMessage.isInstance(message)) : [];
}

/** Returns whether an input or a state has a message with content, or another field with a value. */
export function hasContent(values: unknown): boolean {
  const { messages: _, ...others } = fieldsOf(values);
  const isGiven = Object.values(others).some((value) => value !== undefined && value !== null);
  return isGiven || messagesOf(values).some((message) => !isBlank(message));
}

function isBlank(message: BaseMessage): boolean {
  const { content } = message;
  const { tool_calls: calls = [] } = message as AIMessage;
  return calls.length === 0 && (typeof content === 'string' ? content.trim() === '' : content.length === 0);
}

/** Returns the title of a thread: the beginning of the user's first message, or an empty string if there is none. */
export function titleOf(input: unknown): string {
  const question = messagesOf(input).find((message) => HumanMessage.isInstance(message));
  const characters = [...(question?.text ?? '').replace(/[\s\0]+/g, ' ').trim()];
  if (characters.length > TITLE_CHARS) characters.splice(TITLE_CHARS - 1, Number.POSITIVE_INFINITY, '…');
  return characters.join('');
}
