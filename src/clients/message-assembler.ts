import type { BlockDelta, ContentBlock, MessageData, MessageEvent, MessageUsage, ThreadEvent } from './thread-event.ts';

/** A call of a tool that a message asks for. */
export interface AssembledToolCall {
  readonly id: string | undefined;
  readonly name: string | undefined;
  /** An object when it is whole; until then its text as far as it has come. */
  readonly args: unknown;
  readonly isWhole: boolean;
}

interface MessageParts {
  readonly id: string;
  readonly role: string;
  readonly namespace: readonly string[];
  readonly node: string | undefined;
  readonly status: 'streaming' | 'complete' | 'failed';
  readonly blocks: ReadonlyMap<number, ContentBlock>;
  readonly usage: MessageUsage | undefined;
  readonly error: string | undefined;
}

/** A message as far as it has come. It does not change: what comes next makes another. */
export class AssembledMessage {
  readonly #parts: MessageParts;

  /** @internal */
  constructor(parts: MessageParts) {
    this.#parts = parts;
  }

  get id(): string {
    return this.#parts.id;
  }

  get role(): 'ai' | 'human' | 'system' | (string & {}) {
    return this.#parts.role;
  }

  /** Where in the agent it is from; empty for the agent itself. */
  get namespace(): readonly string[] {
    return this.#parts.namespace;
  }

  get node(): string | undefined {
    return this.#parts.node;
  }

  get status(): 'streaming' | 'complete' | 'failed' {
    return this.#parts.status;
  }

  get blocks(): readonly ContentBlock[] {
    return [...this.#parts.blocks.values()];
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

  /** When it is complete, where its model tells. */
  get usage(): MessageUsage | undefined {
    return this.#parts.usage;
  }

  /** Why it failed. */
  get error(): string | undefined {
    return this.#parts.error;
  }

  /** @internal Another with these parts. */
  with(parts: Partial<MessageParts>): AssembledMessage {
    return new AssembledMessage({ ...this.#parts, ...parts });
  }

  /** @internal */
  withBlock(index: number, block: ContentBlock): AssembledMessage {
    return this.with({ blocks: new Map(this.#parts.blocks).set(index, block) });
  }

  /** @internal */
  block(index: number): ContentBlock | undefined {
    return this.#parts.blocks.get(index);
  }
}

/**
 * Puts messages together of the events of a thread. `take` is given every event and answers with the message that has changed by it:
 * a new object each time, so that a page sees by comparison what to draw anew.
 */
export class MessageAssembler {
  /** By place and id, in the order in which they began. */
  readonly #messages = new Map<string, AssembledMessage>();
  /** The message that is under way at a place, as a key of the others. */
  readonly #current = new Map<string, string>();

  /** All that have begun, in that order. */
  get messages(): readonly AssembledMessage[] {
    return [...this.#messages.values()];
  }

  /** The message that an event has changed; undefined where it has changed none. */
  take(event: ThreadEvent<unknown>): AssembledMessage | undefined {
    if (event.method !== 'messages') return undefined;
    const place = placeOf(event);
    const { data, namespace, node } = event.params;
    if (data.event === 'message-start') {
      const key = JSON.stringify([namespace, data.id]);
      this.#current.set(place, key);
      return this.#put(key, begun(data.id, data.role ?? 'ai', namespace, node));
    }
    const key = this.#current.get(place);
    const message = key === undefined ? undefined : this.#messages.get(key);
    // Its beginning was before what is read.
    if (key === undefined || message === undefined) return undefined;
    if (data.event === 'message-finish' || data.event === 'error') this.#current.delete(place);
    return this.#put(key, changed(message, data));
  }

  #put(key: string, message: AssembledMessage): AssembledMessage {
    this.#messages.set(key, message);
    return message;
  }
}

/** What tells messages apart that are under way at the same time: where they are from, and the call of the model. */
function placeOf({ params: { namespace, node, data } }: MessageEvent): string {
  return JSON.stringify([namespace, node ?? null, typeof data.run_id === 'string' ? data.run_id : null]);
}

function begun(id: string, role: string, namespace: readonly string[], node: string | undefined): AssembledMessage {
  const status = 'streaming';
  return new AssembledMessage({
    id,
    role,
    namespace,
    node,
    status,
    blocks: new Map(),
    usage: undefined,
    error: undefined,
  });
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
