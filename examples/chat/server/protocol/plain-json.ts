import type { AIMessage, BaseMessage, ToolMessage } from '@langchain/core/messages';
import { BaseMessage as Message } from '@langchain/core/messages';
import { fieldsOf } from './fields.ts';

/**
 * JSON of what a graph holds, as clients of the protocol read it: a message is a plain object with its `type`, not the envelope by which
 * LangChain makes the same class of it again. What JSON cannot say is left out, or told as text; of an object with a field that cannot be read, the others are there.
 */
export function plainJson(value: unknown): string {
  try {
    return JSON.stringify(value, plainly) ?? 'null';
  } catch (error) {
    const unreadable = JSON.stringify({ unreadable: (error as Error).message });
    return readableFields(value, unreadable) ?? unreadable;
  }
}

/** Undefined where none can be read. */
function readableFields(value: unknown, unreadable: string): string | undefined {
  let isAnyRead = false;
  const texts = Object.keys(fieldsOf(value)).flatMap((name) => {
    try {
      const text = JSON.stringify(fieldsOf(value)[name], plainly);
      isAnyRead ||= text !== undefined;
      return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
    } catch {
      return [`${JSON.stringify(name)}:${unreadable}`];
    }
  });
  return isAnyRead ? `{${texts.join(',')}}` : undefined;
}

function plainly(this: unknown, key: string, value: unknown): unknown {
  // A message's own `toJSON`, which makes the envelope, has been called by now.
  const original = (this as Readonly<Record<string, unknown>>)[key];
  if (Message.isInstance(original)) return plainMessage(original);
  if (original instanceof Error) return { name: original.name, message: original.message };
  if (typeof value === 'bigint') return value.toString();
  return value;
}

function plainMessage(message: BaseMessage): Readonly<Record<string, unknown>> {
  const { type, id, content, name, additional_kwargs, response_metadata } = message;
  const { tool_calls, invalid_tool_calls, usage_metadata } = message as AIMessage;
  const { tool_call_id, status, artifact } = message as ToolMessage;
  const own = { tool_calls, invalid_tool_calls, usage_metadata, tool_call_id, status, artifact };
  return { type, id, content, name, ...own, additional_kwargs, response_metadata };
}
