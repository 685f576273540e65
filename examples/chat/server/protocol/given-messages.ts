import { BaseMessage, type BaseMessageLike, coerceMessageLikeToMessage } from '@langchain/core/messages';

type Fields = Readonly<Record<string, unknown>>;

/**
 * What is wrong with the messages of an input, where that has any; undefined where nothing is. A graph finds it out only when it takes them over, and its
 * thread cannot be read any more then.
 */
export function messagesFault(input: unknown, mayRemove = false): string | undefined {
  const messages = fieldsOf(input)?.messages;
  if (messages === undefined) return undefined;
  const list = Array.isArray(messages) ? messages : [messages];
  for (const [index, message] of list.entries()) {
    const fault = messageFault(message, mayRemove);
    if (fault !== undefined) return Array.isArray(messages) ? `messages.${index}: ${fault}` : `messages: ${fault}`;
  }
  return undefined;
}

function messageFault(message: unknown, mayRemove: boolean): string | undefined {
  if (typeof message === 'string') return undefined;
  const fields = fieldsOf(message);
  if (fields === undefined) return 'Expected text, or an object';
  const kind = fields.type ?? fields.role;
  if (kind === 'remove') {
    if (!mayRemove) return 'Messages are removed by the state of the thread, and not by an input';
    return typeof fields.id === 'string' ? undefined : 'Expected an id with the type "remove"';
  }
  if (kind === 'tool' && typeof fields.tool_call_id !== 'string') return 'Expected a tool_call_id with the type "tool"';
  // The envelope of LangChain has them further in.
  const said = fields.lc === undefined ? fields : (fieldsOf(fields.kwargs) ?? {});
  if (!isContent(said)) return 'Expected content that is text, or a list of objects with a type';
  const calls = said.tool_calls;
  if (calls !== undefined && !(Array.isArray(calls) && calls.every(isCall)))
    return 'Expected tool_calls to be a list of objects with a name';
  try {
    return coerceMessageLikeToMessage(message as BaseMessageLike) instanceof BaseMessage
      ? undefined
      : 'Expected a message';
  } catch {
    return `Expected a type such as "human", got ${JSON.stringify(kind)?.slice(0, 100)}`;
  }
}

function isContent({ content, tool_calls }: Fields): boolean {
  if (typeof content === 'string') return true;
  if (content === null || content === undefined) return tool_calls !== undefined;
  return Array.isArray(content) && content.every((block) => typeof fieldsOf(block)?.type === 'string');
}

/** In the form of LangChain, or in that of OpenAI. */
function isCall(call: unknown): boolean {
  const fields = fieldsOf(call);
  return typeof (fieldsOf(fields?.function) ?? fields)?.name === 'string';
}

function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}
