import type { BlockDelta, ContentBlock, MessageData, MessageEvent, MessageUsage, ThreadEvent } from './thread-event.ts';

/** A tool call in a model's message. */
export interface AssembledToolCall {
  readonly id: string | undefined;
  readonly name: string | undefined;
  /** Arguments of the tool call: an object once complete, or the raw JSON text received so far. */
  readonly args: unknown;
  readonly isWhole: boolean;
}

/** An immutable snapshot of a message that is complete or still streaming. */
export class AssembledMessage {
  readonly id: string;
  readonly role: 'ai' | 'human' | 'system' | (string & {});
  /** Path of the subagent that sent the message, or an empty list for the main agent. */
  readonly namespace: readonly string[];
  readonly node: string | undefined;
  readonly status: 'streaming' | 'complete' | 'failed';
  /** Token counts of a complete message, if the model reports them. */
  readonly usage: MessageUsage | undefined;
  /** Error text of a failed message. */
  readonly error: string | undefined;
  readonly #blocks: ReadonlyMap<number, ContentBlock>;

  /** @internal */
  constructor(parts: MessageParts, blocks: ReadonlyMap<number, ContentBlock>) {
    this.id = parts.id;
    this.role = parts.role;
    this.namespace = parts.namespace;
    this.node = parts.node;
    this.status = parts.status;
    this.usage = parts.usage;
    this.error = parts.error;
    this.#blocks = blocks;
  }

  get blocks(): readonly ContentBlock[] {
    return [...this.#blocks.values()];
  }

  get text(): string {
    return this.blocks.map(({ type, text }) => (type === 'text' ? (text ?? '') : '')).join('');
  }

  get reasoning(): string {
    return this.blocks.map(({ type, reasoning }) => (type === 'reasoning' ? (reasoning ?? '') : '')).join('');
  }

  get toolCalls(): readonly AssembledToolCall[] {
    return this.blocks.flatMap(({ type, id, name, args }) => {
      if (type !== 'tool_call' && type !== 'tool_call_chunk') return [];
      return [{ id: id ?? undefined, name: name ?? undefined, args: args ?? undefined, isWhole: type === 'tool_call' }];
    });
  }

  /** @internal */
  with(parts: Partial<MessageParts>): AssembledMessage {
    return new AssembledMessage({ ...this, ...parts }, this.#blocks);
  }

  /** @internal */
  withBlock(index: number, block: ContentBlock): AssembledMessage {
    return new AssembledMessage(this, new Map(this.#blocks).set(index, block));
  }

  /** @internal */
  block(index: number): ContentBlock | undefined {
    return this.#blocks.get(index);
  }
}

type MessageParts = Pick<AssembledMessage, 'id' | 'role' | 'namespace' | 'node' | 'status' | 'usage' | 'error'>;

/**
 * Assembles messages from a thread's streamed events. Pass every event to `take`. Each change creates a new message
 * object, so you can detect changes by comparing references.
 */
export class MessageAssembler {
  /** Messages in the order in which they started, keyed by namespace and id. */
  readonly #messages = new Map<string, AssembledMessage>();
  /** Maps each source to the key of the message it is streaming. */
  readonly #current = new Map<string, string>();

  /** All messages in the order in which they started. */
  get messages(): readonly AssembledMessage[] {
    return [...this.#messages.values()];
  }

  /** Applies an event and returns the changed message, or undefined if no message changed. */
  take(event: ThreadEvent<unknown>): AssembledMessage | undefined {
    if (event.method !== 'messages') return undefined;
    const source = sourceOf(event);
    const { data, namespace, node } = event.params;
    if (data.event === 'message-start') {
      const key = JSON.stringify([namespace, data.id]);
      this.#current.set(source, key);
      const { id, role = 'ai' } = data;
      const parts = { id, role, namespace, node, status: 'streaming', usage: undefined, error: undefined } as const;
      return this.#put(key, new AssembledMessage(parts, new Map()));
    }
    const key = this.#current.get(source);
    const message = key === undefined ? undefined : this.#messages.get(key);
    // The message's start event was never passed to `take`, for example because reading began later.
    if (key === undefined || message === undefined) return undefined;
    if (data.event === 'message-finish' || data.event === 'error') this.#current.delete(source);
    return this.#put(key, changed(message, data));
  }

  #put(key: string, message: AssembledMessage): AssembledMessage {
    this.#messages.set(key, message);
    return message;
  }
}

/**
 * Returns a key for the source of a message: its namespace, node and model call. Several sources may stream messages
 * concurrently.
 */
function sourceOf({ params: { namespace, node, data } }: MessageEvent): string {
  return JSON.stringify([namespace, node ?? null, typeof data.run_id === 'string' ? data.run_id : null]);
}

function changed(message: AssembledMessage, data: MessageData): AssembledMessage {
  switch (data.event) {
    case 'content-block-start':
    case 'content-block-finish':
      return message.withBlock(data.index, data.content);
    case 'content-block-delta':
      return message.withBlock(data.index, grown(message.block(data.index), data.delta));
    case 'message-finish':
      return message.with({ status: 'complete', usage: data.usage ?? undefined });
    case 'error':
      return message.with({ status: 'failed', error: data.message });
    default:
      return message;
  }
}

function grown(block: ContentBlock | undefined, delta: BlockDelta): ContentBlock {
  switch (delta.type) {
    case 'text-delta':
      return { ...(block ?? { type: 'text' }), text: (block?.text ?? '') + delta.text };
    case 'reasoning-delta':
      return { ...(block ?? { type: 'reasoning' }), reasoning: (block?.reasoning ?? '') + delta.reasoning };
    case 'data-delta': {
      const { base64, ...rest } = block ?? { type: 'data' };
      return { ...rest, base64: `${base64 ?? ''}${delta.data}` };
    }
    case 'block-delta':
      return { ...block, ...delta.fields };
  }
}
