import { type Fields, fieldsOf, stringOf } from './client.ts';
import type { ThreadEvent } from './event-stream.ts';
import type { ContentBlock } from './message.ts';

/** An immutable snapshot of a message that streams, is complete or has failed. */
export interface StreamedMessage {
  readonly id: string;
  readonly role: string;
  /** Path of the subagent that sent the message, or an empty list for the main agent. */
  readonly namespace: readonly string[];
  readonly blocks: readonly ContentBlock[];
  readonly status: 'streaming' | 'complete' | 'failed';
  /** Error text of a failed message. */
  readonly error?: string | undefined;
}

type Draft = Omit<StreamedMessage, 'blocks'> & { readonly blocks: ReadonlyMap<unknown, ContentBlock> };

/** Assembles messages from a thread's `messages` events. */
export class MessageAssembler {
  /** The messages that are streaming, by their source. */
  readonly #drafts = new Map<string, Draft>();

  /** Applies an event. Returns the changed message, or undefined if no message changed. */
  take({ method, params }: ThreadEvent): StreamedMessage | undefined {
    if (method !== 'messages') return undefined;
    const { namespace, node } = params;
    const data = fieldsOf(params.data);
    // Several nodes and model calls may stream messages at the same time.
    const source = JSON.stringify([namespace, node, data.run_id]);
    const id = stringOf(data.id);
    const isStart = data.event === 'message-start';
    const known = this.#drafts.get(source);
    if (isStart ? id === undefined : known === undefined) return undefined;
    const draft = isStart
      ? { id: id ?? '', role: stringOf(data.role) ?? 'ai', namespace, blocks: new Map(), status: 'streaming' as const }
      : changed(known as Draft, data);
    if (draft.status === 'streaming') this.#drafts.set(source, draft);
    else this.#drafts.delete(source);
    return { ...draft, blocks: [...draft.blocks.values()] };
  }
}

function changed(draft: Draft, { event, index, content, delta, message }: Fields): Draft {
  const withBlock = (block: Fields): Draft => {
    return { ...draft, blocks: new Map(draft.blocks).set(index, { type: 'text', ...block }) };
  };
  switch (event) {
    case 'content-block-start':
    case 'content-block-finish':
      return withBlock(fieldsOf(content));
    case 'content-block-delta':
      return withBlock(grown(draft.blocks.get(index), fieldsOf(delta)));
    case 'message-finish':
      return { ...draft, status: 'complete' };
    case 'error':
      return { ...draft, status: 'failed', error: stringOf(message) };
    default:
      return draft;
  }
}

function grown(block: Fields | undefined, { type, text, reasoning, data, fields }: Fields): Fields {
  const joined = (name: string, more: unknown): string => `${block?.[name] ?? ''}${stringOf(more) ?? ''}`;
  switch (type) {
    case 'text-delta':
      return { ...block, text: joined('text', text) };
    case 'reasoning-delta':
      return { type: 'reasoning', ...block, reasoning: joined('reasoning', reasoning) };
    case 'data-delta':
      return { type: 'data', ...block, base64: joined('base64', data) };
    default:
      return { ...block, ...fieldsOf(fields) };
  }
}
