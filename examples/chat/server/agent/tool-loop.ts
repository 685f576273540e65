import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { type AIMessage, type BaseMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import type { StructuredToolInterface } from '@langchain/core/tools';
import {
  type BaseCheckpointSaver,
  END,
  type MessagesAnnotation as Messages,
  MessagesAnnotation,
  Send,
  START,
  StateGraph,
} from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { readable, refusalOf, type UnreadableCall, unreadableCalls } from './unreadable-calls.ts';

export interface ToolLoopOptions {
  /** By which runs and namespaces tell of it. */
  readonly name: string;
  readonly model: BaseChatModel;
  readonly prompt: string;
  readonly tools: readonly StructuredToolInterface[];
  readonly checkpointer?: BaseCheckpointSaver;
}

export type ToolLoop = ReturnType<typeof toolLoop>;

/**
 * An agent: a model that is asked, the tools that it calls, and the model again, until it calls none. Each call of a tool is a task
 * of its own, so that calls run beside each other, each with a namespace of its own, and one that waits for an approval keeps none of the
 * others waiting.
 */
export function toolLoop({ name, model, prompt, tools, checkpointer }: ToolLoopOptions) {
  const asked = model.bindTools?.([...tools]) ?? model;
  const system = new SystemMessage(prompt);
  return new StateGraph(MessagesAnnotation)
    .addNode('model', async ({ messages }, config) => ({
      messages: [await asked.invoke([system, ...allAnswered(messages)], config)],
    }))
    .addNode('tools', new ToolNode([...tools]))
    .addNode('unreadable', (call: UnreadableCall) => ({ messages: [refusalOf(call)] }))
    .addEdge(START, 'model')
    .addConditionalEdges('model', callsOf, ['tools', 'unreadable', END])
    .addEdge('tools', 'model')
    .addEdge('unreadable', 'model')
    .compile({ name, ...(checkpointer === undefined ? {} : { checkpointer }) });
}

/** `lg_tool_call` is what ToolNode runs, `tool_call` where the stream finds what a subagent was started by. */
function callsOf({ messages }: typeof Messages.State): Send[] | typeof END {
  const answer = messages.at(-1);
  const calls = (answer as AIMessage | undefined)?.tool_calls ?? [];
  const sent = [
    ...calls.map((call) => new Send('tools', { lg_tool_call: call, tool_call: call })),
    ...unreadableCalls(answer).map((call) => new Send('unreadable', call)),
  ];
  return sent.length === 0 ? END : sent;
}

/** Models refuse a conversation in which a call has no result, as a run that was stopped leaves it. */
function allAnswered(messages: readonly BaseMessage[]): BaseMessage[] {
  const answered = new Set(
    messages.flatMap((message) => (ToolMessage.isInstance(message) ? [message.tool_call_id] : [])),
  );
  return messages.map(readable).flatMap((message) => {
    const open = ((message as AIMessage).tool_calls ?? []).filter(({ id }) => id !== undefined && !answered.has(id));
    return [
      message,
      ...open.map(
        ({ id = '', name }) => new ToolMessage({ tool_call_id: id, name, content: 'Stopped before it ended.' }),
      ),
    ];
  });
}
