import {
  type AIMessage,
  BaseMessage,
  type BaseMessageLike,
  coerceMessageLikeToMessage,
  type ToolMessage,
} from '@langchain/core/messages';

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
 * Returns what is wrong with the messages of an input, or undefined. A graph would only detect it after storing them,
 * and could then never load its thread again.
 */
export function messagesProblem(input: unknown, canRemove = false): string | undefined {
  const { messages } = fieldsOf(input);
  if (messages === undefined) return undefined;
  const list = Array.isArray(messages) ? messages : [messages];
  for (const [index, message] of list.entries()) {
    const problem = messageProblem(message, canRemove);
    if (problem !== undefined) return `messages${Array.isArray(messages) ? `.${index}` : ''}: ${problem}`;
  }
  return undefined;
}

function messageProblem(message: unknown, canRemove: boolean): string | undefined {
  if (typeof message === 'string') return undefined;
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return 'Expected text or an object';
  const fields = fieldsOf(message);
  const type = fields.type ?? fields.role;
  if (type === 'remove') {
    if (!canRemove) return 'An input cannot remove messages; change the state of the thread instead';
    return typeof fields.id === 'string' ? undefined : 'Expected an id with the type "remove"';
  }
  if (type === 'tool' && typeof fields.tool_call_id !== 'string') return 'Expected a tool_call_id with the type "tool"';
  // The envelope of LangChain has the fields in `kwargs`.
  const { content, tool_calls: calls } = fields.lc === undefined ? fields : fieldsOf(fields.kwargs);
  const isContent = typeof content === 'string' || (Array.isArray(content) && content.every(isBlock));
  if (!isContent && !((content === null || content === undefined) && calls !== undefined))
    return 'Expected content to be text, or a list of objects with a type';
  if (calls !== undefined && !(Array.isArray(calls) && calls.every(isCall)))
    return 'Expected tool_calls to be a list of objects with a name';
  try {
    coerceMessageLikeToMessage(message as BaseMessageLike);
    return undefined;
  } catch {
    return `Expected a type such as "human", got ${JSON.stringify(type)?.slice(0, 100)}`;
  }
}

function isBlock(block: unknown): boolean {
  return typeof fieldsOf(block).type === 'string';
}

/** In the form of LangChain, or in the form of OpenAI. */
function isCall(call: unknown): boolean {
  const fields = fieldsOf(call);
  return typeof (fields.function === undefined ? fields : fieldsOf(fields.function)).name === 'string';
}

/** The title of a thread: the beginning of the first message of the user. Empty if there is none. */
export function titleOf(input: unknown): string {
  const { messages } = fieldsOf(input);
  const question = (Array.isArray(messages) ? messages : []).map(fieldsOf).find(isQuestion);
  const text = textOf(question?.content)
    .replace(/[\s\0]+/g, ' ')
    .trim();
  const characters = [...text];
  if (characters.length <= TITLE_CHARS) return text;
  return `${characters
    .slice(0, TITLE_CHARS - 1)
    .join('')
    .trimEnd()}…`;
}

/** Whether a message is one of the user. */
export function isQuestion({ type, role }: Fields): boolean {
  return type === 'human' || role === 'human' || role === 'user';
}

/** The text of the content of a message. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.flatMap((block) => fieldsOf(block).text ?? []).join(' ');
}
