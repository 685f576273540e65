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

/** The fields of a value from outside, or none if the value is not an object. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

/**
 * JSON of a value of a graph, as clients of the protocol expect it: a message is a plain object with a `type`, not the
 * envelope that LangChain writes. A value that JSON cannot represent becomes `{ unreadable }`.
 */
export function plainJson(value: unknown): string {
  try {
    return JSON.stringify(value, plainly) ?? 'null';
  } catch (error) {
    return JSON.stringify({ unreadable: (error as Error).message });
  }
}

function plainly(this: unknown, key: string, value: unknown): unknown {
  // `JSON.stringify` has called `toJSON` of a message already, which makes the envelope.
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
 * Returns the values of an input with messages as LangChain's objects, each with an id. Throws a RequestError if a message
 * has mistakes: a graph would only find them after storing the message, and could then never load its thread again.
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
  // The envelope of LangChain has the fields in `kwargs`.
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
    throw refusal('Expected content to be text, or a list of objects with a type');
  if (calls !== undefined && !(Array.isArray(calls) && calls.every(isCall)))
    throw refusal('Expected tool_calls to be a list of objects with a name');
  return message;
}

function isBlock(block: unknown): boolean {
  return typeof fieldsOf(block).type === 'string';
}

/** In the form of LangChain, or in the form of OpenAI. */
function isCall(call: unknown): boolean {
  const fields = fieldsOf(call);
  return typeof (fields.function === undefined ? fields : fieldsOf(fields.function)).name === 'string';
}

/** The messages of a state, or of an input that was checked. */
export function messagesOf(values: unknown): readonly BaseMessage[] {
  const { messages } = fieldsOf(values);
  return Array.isArray(messages) ? messages.filter((message) => BaseMessage.isInstance(message)) : [];
}

/** The title of a thread: the beginning of the first message of the user. Empty if there is none. */
export function titleOf(input: unknown): string {
  const question = messagesOf(input).find((message) => HumanMessage.isInstance(message));
  const characters = [...(question?.text ?? '').replace(/[\s\0]+/g, ' ').trim()];
  if (characters.length > TITLE_CHARS) characters.splice(TITLE_CHARS - 1, Number.POSITIVE_INFINITY, '…');
  return characters.join('');
}
