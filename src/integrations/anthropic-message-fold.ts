import type { Run } from '../run/run.ts';
import { recordMessage } from './anthropic-messages.ts';
import { type Fields, fieldsOf } from './fields.ts';
import type { StreamFold } from './model-stream.ts';

type Block = Record<string, unknown>;

/**
 * Makes the message of its events, in the shape that the service gives unstreamed. Blocks come one by one, each with its
 * deltas; the counts of `message_delta` are those of the whole message and take the place of earlier ones.
 */
export class MessageFold implements StreamFold {
  #message: Block | undefined;
  readonly #blocks = new Map<unknown, Block>();
  /** The input of a tool comes as pieces of JSON text; those of blocks that have not ended. */
  readonly #inputs = new Map<unknown, string>();

  push(event: unknown): boolean {
    const { type, index, message, content_block, delta } = fieldsOf(event);
    switch (type) {
      case 'message_start':
        this.#message = copied(message);
        return false;
      case 'content_block_start':
        this.#startBlock(index, copied(content_block));
        return false;
      case 'content_block_delta':
        this.#addToBlock(index, fieldsOf(delta));
        return true;
      case 'content_block_stop':
        this.#endInput(index);
        return false;
      case 'message_delta':
        this.#endMessage(fieldsOf(event));
        return false;
      default:
        return false;
    }
  }

  record(run: Run): void {
    if (this.#message === undefined) return;
    for (const index of [...this.#inputs.keys()]) this.#endInput(index);
    recordMessage(run, { ...this.#message, content: [...this.#blocks.values()] });
  }

  #startBlock(index: unknown, block: Block): void {
    this.#blocks.set(index, block);
    const { model } = fieldsOf(block.to);
    // Where the service has changed over to another model, the message is told to be of that one.
    if (block.type === 'fallback' && this.#message !== undefined) this.#message.model = model;
  }

  #addToBlock(index: unknown, delta: Fields): void {
    const block = this.#blocks.get(index);
    if (block === undefined) return;
    switch (delta.type) {
      case 'text_delta':
        block.text = joined(block.text, delta.text);
        break;
      case 'thinking_delta':
        block.thinking = joined(block.thinking, delta.thinking);
        break;
      case 'input_json_delta':
        this.#inputs.set(index, joined(this.#inputs.get(index), delta.partial_json));
        break;
      case 'citations_delta':
        block.citations = [...(Array.isArray(block.citations) ? block.citations : []), copied(delta.citation)];
        break;
      default: {
        // Of a signature, or a kind that is not known here: whole values.
        const { type, ...values } = copied(delta);
        Object.assign(block, values);
      }
    }
  }

  #endInput(index: unknown): void {
    const text = this.#inputs.get(index);
    const block = this.#blocks.get(index);
    this.#inputs.delete(index);
    if (text === undefined || text === '' || block === undefined) return;
    try {
      block.input = JSON.parse(text);
    } catch {
      // The stream was left within the input, or the model wrote no JSON.
      block.input = text;
    }
  }

  #endMessage({ type, delta, usage, ...more }: Fields): void {
    if (this.#message === undefined) return;
    Object.assign(this.#message, copied(delta), given(more));
    this.#message.usage = { ...fieldsOf(this.#message.usage), ...given(fieldsOf(usage)) };
  }
}

function joined(text: unknown, more: unknown): string {
  return `${typeof text === 'string' ? text : ''}${typeof more === 'string' ? more : ''}`;
}

function copied(value: unknown): Block {
  return structuredClone(fieldsOf(value));
}

/** A copy without what is null, which says that it does not apply. */
function given(fields: Fields): Block {
  return Object.fromEntries(Object.entries(copied(fields)).filter(([, value]) => value !== null));
}
