import type { Answer, Fold } from './answer.ts';
import { addDelta, copyOf } from './delta.ts';
import { type Fields, fieldsOf, textOf } from './fields.ts';

/**
 * Makes the message of its events, in the shape that the service gives unstreamed. Blocks come one by one, each with its
 * deltas; the counts of `message_delta` are those of the whole message and take the place of earlier ones.
 */
export class MessageFold implements Fold {
  characters = 0;
  readonly #read: (message: Fields) => Answer;
  #message: Fields | undefined;
  readonly #blocks = new Map<unknown, Fields>();
  /** The input of a tool comes as pieces of JSON text; those of blocks that have not ended. */
  readonly #inputs = new Map<unknown, string>();

  #isFull = false;

  constructor(read: (message: Fields) => Answer) {
    this.#read = read;
  }

  add(event: unknown, isFull: boolean): void {
    this.#isFull = isFull;
    const { type, index, message, content_block, delta } = fieldsOf(event);
    switch (type) {
      case 'message_start':
        this.#message = copied(message);
        break;
      case 'content_block_start':
        this.#startBlock(index, copied(content_block));
        break;
      case 'content_block_delta':
        this.#addToBlock(index, fieldsOf(delta));
        break;
      case 'content_block_stop':
        this.#endInput(index);
        break;
      case 'message_delta':
        this.#endMessage(fieldsOf(event));
        break;
    }
  }

  answer(): Answer {
    if (this.#message === undefined) return { outputs: {} };
    for (const index of [...this.#inputs.keys()]) this.#endInput(index);
    return this.#read({ ...this.#message, content: [...this.#blocks.values()] });
  }

  #startBlock(index: unknown, block: Fields): void {
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
        block.text = this.#joined(block.text, delta.text);
        break;
      case 'thinking_delta':
        block.thinking = this.#joined(block.thinking, delta.thinking);
        break;
      case 'input_json_delta':
        this.#inputs.set(index, this.#joined(this.#inputs.get(index), delta.partial_json));
        break;
      case 'citations_delta':
        this.characters += addDelta(this.#isFull ? {} : block, { citations: [delta.citation] });
        break;
      default: {
        // Of a signature, or a kind that is not known here: whole values.
        const { type, ...values } = copied(delta);
        Object.assign(block, values);
      }
    }
  }

  #joined(text: unknown, more: unknown): string {
    const added = textOf(more) ?? '';
    this.characters += added.length;
    return (textOf(text) ?? '') + (this.#isFull ? '' : added);
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

function copied(value: unknown): Fields {
  return copyOf(fieldsOf(value)) as Fields;
}

/** A copy without what is null, which says that it does not apply. */
function given(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(copied(fields)).filter(([, value]) => value !== null));
}
