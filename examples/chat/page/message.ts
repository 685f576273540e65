import { type Fields, fieldsOf, stringOf } from './client.ts';

/** A part of a message, in the order of the message. */
export type Block =
  | { readonly kind: 'text' | 'reasoning'; readonly text: string }
  | { readonly kind: 'call'; readonly id: string; readonly name: string; readonly input: unknown }
  | { readonly kind: 'image'; readonly url: string }
  | { readonly kind: 'other' };

export interface Message {
  readonly id: string;
  readonly role: string;
  readonly blocks: readonly Block[];
  /** A message that streams is `open`. If its run ends before the message is complete, it is `cut`. */
  readonly state: 'open' | 'complete' | 'cut';
  readonly error?: string;
  /** Whether the answer reached the maximum length of the model. */
  readonly isAtLimit?: boolean;
}

/** Further blocks of a message are ignored. */
const BLOCKS_MAX = 1_000;

/** A message of a state. */
export function messageOf(message: Fields): Message | undefined {
  const id = stringOf(message.id);
  if (id === undefined) return undefined;
  const { content, type, role = type ?? 'ai', response_metadata } = message;
  const calls = (Array.isArray(message.tool_calls) ? message.tool_calls : []).map((call) => {
    return blockOf({ ...fieldsOf(call), type: 'tool_call' }) as Extract<Block, { kind: 'call' }>;
  });
  const blocks: Block[] = Array.isArray(content) ? content.map(blockOf) : [{ kind: 'text', text: textOf(content) }];
  // A call that the user edited has its new arguments in `tool_calls` alone.
  const shown = blocks.map((block) =>
    block.kind === 'call' ? (calls.find(({ id }) => id === block.id) ?? block) : block,
  );
  const isAtLimit = fieldsOf(response_metadata).finish_reason === 'length';
  return {
    id,
    role: role === 'user' ? 'human' : role === 'assistant' ? 'ai' : String(role),
    blocks: [...shown, ...calls.filter((call) => !shown.includes(call))],
    state: 'complete',
    ...(isAtLimit ? { isAtLimit } : {}),
  };
}

/** A message after one of its events. */
export function withEvent(message: Message, { event, index, content, delta, reason, message: error }: Fields): Message {
  switch (event) {
    case 'content-block-start':
    case 'content-block-finish':
      return withBlock(message, index, () => blockOf(content));
    case 'content-block-delta':
      return withBlock(message, index, (block) => extended(block, fieldsOf(delta)));
    case 'message-finish':
      return { ...message, state: 'complete', ...(reason === 'length' ? { isAtLimit: true } : {}) };
    case 'error':
      return { ...message, state: 'cut', error: stringOf(error) ?? 'The message was cut off.' };
    default:
      return message;
  }
}

/** The text of a message. */
export function textIn({ blocks }: Message): string {
  const texts = blocks.flatMap((block) => (block.kind === 'text' ? block.text : []));
  return texts.join('\n\n').trim();
}

/** The arguments of a call. While the call streams, they are incomplete JSON, whose complete part is returned. */
export function argumentsOf(input: unknown): Fields {
  if (typeof input !== 'string') return fieldsOf(input);
  for (const text of [input, `${input}}`, `${/^.*[^\\]"(?=,)/s.exec(input)?.[0] ?? ''}}`]) {
    try {
      return fieldsOf(JSON.parse(text));
    } catch {
      // A shorter part may be complete.
    }
  }
  return {};
}

/** The output of a tool as text. */
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

function blockOf(value: unknown): Block {
  if (typeof value === 'string') return { kind: 'text', text: value };
  const { type, text, reasoning, id, name, args, image_url, url } = fieldsOf(value);
  switch (type) {
    case 'text':
      return { kind: 'text', text: textOf(text) };
    case 'reasoning':
      return { kind: 'reasoning', text: textOf(reasoning) };
    case 'tool_call':
    case 'tool_call_chunk':
    case 'invalid_tool_call':
      return { kind: 'call', id: textOf(id), name: textOf(name), input: args };
    case 'image_url':
      return { kind: 'image', url: stringOf(image_url) ?? textOf(fieldsOf(image_url).url) };
    case 'image':
      return { kind: 'image', url: textOf(url) };
    default:
      return { kind: 'other' };
  }
}

function extended(block: Block | undefined, delta: Fields): Block {
  const text = block?.kind === 'text' || block?.kind === 'reasoning' ? block.text : '';
  if (delta.type === 'text-delta') return { kind: 'text', text: text + textOf(delta.text) };
  if (delta.type === 'reasoning-delta') return { kind: 'reasoning', text: text + textOf(delta.reasoning) };
  const fields = delta.type === 'block-delta' ? blockOf(delta.fields) : undefined;
  if (fields?.kind !== 'call' || block?.kind !== 'call') return block ?? { kind: 'other' };
  // A later part of a call need not repeat its id and name.
  const { id, name, input } = block;
  return { ...fields, id: fields.id || id, name: fields.name || name, input: fields.input ?? input };
}

function withBlock(message: Message, index: unknown, change: (block: Block | undefined) => Block): Message {
  if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= BLOCKS_MAX) return message;
  const blocks = [...message.blocks];
  while (blocks.length < (index as number)) blocks.push({ kind: 'other' });
  blocks[index as number] = change(blocks[index as number]);
  return { ...message, blocks };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);
}
