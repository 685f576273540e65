import { type Fields, fieldsOf, stringOf } from './protocol.ts';

/** A part of what a message says, in the order in which it says it. */
export type Block =
  | { readonly kind: 'text' | 'reasoning'; readonly text: string }
  | { readonly kind: 'call'; readonly id: string; readonly name: string; readonly input: unknown }
  | { readonly kind: 'other' };

export interface Message {
  readonly id: string;
  readonly role: 'human' | 'ai' | 'tool' | 'system' | (string & {});
  readonly blocks: readonly Block[];
  /** It streams: `open`; it was left before its end: `cut`. */
  readonly state: 'open' | 'complete' | 'cut';
  readonly error?: string;
  /** The model may say no more at once: it is complete, and yet has no end. */
  readonly isAtLimit?: boolean;
}

/** Blocks that one message may have; the others are passed over. */
const BLOCKS_MAX = 1_000;

/** A message of a state. */
export function messageOf(message: Fields): Message | undefined {
  const id = stringOf(message.id);
  if (id === undefined) return undefined;
  const { content, tool_calls, response_metadata } = message;
  const blocks: Block[] = Array.isArray(content) ? content.map(blockOf) : [{ kind: 'text', text: textOf(content) }];
  const named = new Set(blocks.map((block) => (block.kind === 'call' ? block.id : undefined)));
  for (const call of Array.isArray(tool_calls) ? tool_calls : []) {
    const made = blockOf({ ...fieldsOf(call), type: 'tool_call' });
    if (made.kind === 'call' && !named.has(made.id)) blocks.push(made);
  }
  const isAtLimit = fieldsOf(response_metadata).finish_reason === 'length';
  return { id, role: roleOf(message), blocks, state: 'complete', ...(isAtLimit ? { isAtLimit } : {}) };
}

/** A block as it stands in a message, or as it begins while it streams. */
export function blockOf(value: unknown): Block {
  if (typeof value === 'string') return { kind: 'text', text: value };
  const { type, text, reasoning, id, name, args } = fieldsOf(value);
  switch (type) {
    case 'text':
      return { kind: 'text', text: textOf(text) };
    case 'reasoning':
      return { kind: 'reasoning', text: textOf(reasoning) };
    case 'tool_call':
    case 'tool_call_chunk':
    case 'invalid_tool_call':
      return { kind: 'call', id: textOf(id), name: textOf(name), input: args };
    default:
      return { kind: 'other' };
  }
}

/** A block with what has come of it since. */
export function grown(block: Block | undefined, delta: Fields): Block {
  switch (delta.type) {
    case 'text-delta':
      return { kind: 'text', text: said(block) + textOf(delta.text) };
    case 'reasoning-delta':
      return { kind: 'reasoning', text: said(block) + textOf(delta.reasoning) };
    case 'block-delta': {
      const fields = blockOf(delta.fields);
      if (fields.kind !== 'call' || block?.kind !== 'call') return fields.kind === 'other' ? (block ?? fields) : fields;
      // A later piece of a call need not repeat what it is called.
      return {
        ...fields,
        id: fields.id || block.id,
        name: fields.name || block.name,
        input: fields.input ?? block.input,
      };
    }
    default:
      return block ?? { kind: 'other' };
  }
}

/** A message with what has come of it since. */
export function withPiece(message: Message, { event, index, content, delta, reason, message: error }: Fields): Message {
  switch (event) {
    case 'content-block-start':
    case 'content-block-finish':
      return { ...message, blocks: replaced(message.blocks, index, () => blockOf(content)) };
    case 'content-block-delta':
      return { ...message, blocks: replaced(message.blocks, index, (block) => grown(block, fieldsOf(delta))) };
    case 'message-finish':
      return { ...message, state: 'complete', ...(reason === 'length' ? { isAtLimit: true } : {}) };
    case 'error':
      return { ...message, state: 'cut', error: stringOf(error) ?? 'The message was cut.' };
    default:
      return message;
  }
}

/** All that a message says in words. */
export function textIn({ blocks }: Message): string {
  return blocks
    .flatMap((block) => (block.kind === 'text' ? [block.text] : []))
    .join('\n\n')
    .trim();
}

/** What a call is called with. While it streams, and where it was stopped, that is JSON as far as it has come: what is whole of it is read. */
export function argumentsOf(input: unknown): Fields {
  if (typeof input !== 'string') return fieldsOf(input);
  // An escaped quotation mark ends no text.
  for (const text of [input, `${input}}`, `${/^.*[^\\]"(?=,)/s.exec(input)?.[0] ?? ''}}`]) {
    try {
      return fieldsOf(JSON.parse(text));
    } catch {
      // Less of it may be whole.
    }
  }
  return {};
}

/** What a tool answered, as text: words where it is words, JSON otherwise. */
export function outputText(output: unknown): string {
  if (typeof output === 'string') return output;
  const { content } = fieldsOf(output);
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) {
    const texts = content.map((part) => stringOf(part) ?? stringOf(fieldsOf(part).text));
    if (texts.every((text) => text !== undefined)) return texts.join('\n');
  }
  return output === undefined || output === null ? '' : (JSON.stringify(output, null, 2) ?? '');
}

function roleOf({ type, role }: Fields): string {
  const given = stringOf(type) ?? stringOf(role) ?? 'ai';
  return given === 'user' ? 'human' : given === 'assistant' ? 'ai' : given;
}

function said(block: Block | undefined): string {
  return block?.kind === 'text' || block?.kind === 'reasoning' ? block.text : '';
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);
}

function replaced(
  blocks: readonly Block[],
  index: unknown,
  make: (block: Block | undefined) => Block,
): readonly Block[] {
  if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= BLOCKS_MAX) return blocks;
  const made = [...blocks];
  while (made.length < (index as number)) made.push({ kind: 'other' });
  made[index as number] = make(made[index as number]);
  return made;
}
