import { AIMessage, type BaseMessage, type InvalidToolCall, ToolMessage } from '@langchain/core/messages';

/** A call of a tool with arguments that are no JSON. */
export type UnreadableCall = Pick<InvalidToolCall, 'id' | 'name' | 'args'>;

/** Those of a message. They are among its blocks where it was streamed, and apart where it was not. */
export function unreadableCalls(message: BaseMessage | undefined): UnreadableCall[] {
  if (!AIMessage.isInstance(message)) return [];
  const { content, invalid_tool_calls = [] } = message;
  const blocks = Array.isArray(content) ? content.filter(isUnreadable) : [];
  return [...invalid_tool_calls, ...blocks];
}

/** What the model is told of one, so that it calls again. */
export function refusalOf({ id = '', name = '', args = '' }: UnreadableCall): ToolMessage {
  const content = `The arguments are no JSON: ${faultOf(args)}; call it again.`;
  return new ToolMessage({ tool_call_id: id, name, status: 'error', content });
}

/** A message as models take it: a result has to be that of a call, and not all services take arguments that are no JSON. */
export function readable(message: BaseMessage): BaseMessage {
  const unreadable = unreadableCalls(message);
  if (!AIMessage.isInstance(message) || unreadable.length === 0) return message;
  const calls = unreadable.map(({ id = '', name = '' }) => ({ id, name, args: {}, type: 'tool_call' as const }));
  return new AIMessage({
    id: message.id ?? '',
    content: message.text,
    tool_calls: [...(message.tool_calls ?? []), ...calls],
  });
}

function isUnreadable(block: { readonly type: string }): block is InvalidToolCall & { readonly type: string } {
  return block.type === 'invalid_tool_call';
}

function faultOf(args: string): string {
  try {
    JSON.parse(args);
    return 'they could not be read';
  } catch (error) {
    return (error as Error).message;
  }
}
