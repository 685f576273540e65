import { type Fields, fieldsOf, stringOf } from './client.ts';

/**
 * A part of a message. Common types are `text`, `reasoning`, `tool_call`, `tool_call_chunk` and `image`. The arguments
 * (`args`) of a `tool_call_chunk` are partial JSON text.
 */
export interface ContentBlock {
  readonly type: string;
  readonly text?: string;
  readonly reasoning?: string;
  readonly id?: string | null;
  readonly name?: string | null;
  readonly args?: unknown;
  readonly [field: string]: unknown;
}

export interface Message {
  readonly id: string;
  readonly role: string;
  readonly blocks: readonly ContentBlock[];
  /** `open` while the message streams. `cut` if its run ended before the message was complete. */
  readonly state: 'open' | 'complete' | 'cut';
  readonly error?: string | undefined;
  /** Why the model ended the message, if a state contains the message. */
  readonly finishReason?: string | undefined;
  /** The run that wrote the message, if its events are known. */
  readonly runId?: string | undefined;
  /** Id of the tool call that started the subagent which wrote the message. */
  readonly callId?: string | undefined;
  /** Id of the message that this one answers. Undefined once a state contains this message. */
  readonly questionId?: string | undefined;
}

/** A message of a state. */
export function messageOf(fields: Fields): Message | undefined {
  const { id, type, content, tool_calls, invalid_tool_calls, response_metadata } = fields;
  if (typeof id !== 'string') return undefined;
  const calls = [...callsOf(tool_calls, 'tool_call'), ...callsOf(invalid_tool_calls, 'invalid_tool_call')];
  const blocks = Array.isArray(content) ? content.map(blockOf) : [blockOf(content)];
  // If the user edited a tool call, only `tool_calls` contains the new arguments.
  const shown = blocks.map((block) => (isCall(block) && calls.find((call) => call.id === block.id)) || block);
  const others = calls.filter((call) => !shown.includes(call));
  const finishReason = stringOf(fieldsOf(response_metadata).finish_reason);
  return { id, role: String(type), blocks: [...shown, ...others], state: 'complete', finishReason };
}

function callsOf(calls: unknown, type: string): ContentBlock[] {
  return listOf(calls).map((call) => ({ ...fieldsOf(call), type }));
}

export function isCall({ type }: ContentBlock): boolean {
  return type === 'tool_call' || type === 'tool_call_chunk' || type === 'invalid_tool_call';
}

/** Returns the text of a message. */
export function textIn({ blocks }: Message): string {
  const texts = blocks.flatMap(({ type, text }) => (type === 'text' ? (text ?? '') : []));
  return texts.join('\n\n').trim();
}

/**
 * Returns the arguments of a tool call. While the call streams, the arguments are incomplete JSON, and the complete
 * part of them is returned.
 */
export function argumentsOf(input: unknown): Fields {
  if (typeof input !== 'string') return fieldsOf(input);
  for (const text of [input, `${input}}`, `${/^.*[^\\]"(?=,)/s.exec(input)?.[0] ?? ''}}`]) {
    try {
      return fieldsOf(JSON.parse(text));
    } catch {
      // This part is not valid JSON. A shorter part may be.
    }
  }
  return {};
}

/** Returns the output of a tool as text. */
export function outputText(output: unknown): string {
  if (typeof output === 'string') return output;
  const { content } = fieldsOf(output);
  if (typeof content === 'string') return content;
  const texts = listOf(content).map((part) => stringOf(part) ?? stringOf(fieldsOf(part).text));
  if (texts.length > 0 && texts.every((text) => text !== undefined)) return texts.join('\n');
  return output === undefined || output === null ? '' : JSON.stringify(output, null, 2);
}

function blockOf(value: unknown): ContentBlock {
  if (typeof value === 'object' && value !== null) return value as ContentBlock;
  return { type: 'text', text: stringOf(value) ?? '' };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
