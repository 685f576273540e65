import { type Fields, fieldsOf, parsedJson, textOf } from '../../payload/fields.ts';
import { laterUsage } from '../../services/usage.ts';
import type { Fold } from '../call-reader.ts';
import { addDelta, copyOf } from '../deltas.ts';

/** The field that each type of delta extends. The field has the same name in the delta and in the block. */
const APPENDED: ReadonlyMap<unknown, string> = new Map([
  ['text_delta', 'text'],
  ['thinking_delta', 'thinking'],
]);

/** Combines the events of a streamed message. */
export function messageFold(): Fold {
  let message: Fields | undefined;
  const blocks = new Map<unknown, Fields>();
  /** Incomplete JSON text of tool inputs. */
  const inputs = new Map<unknown, string>();

  const addToBlock = (index: unknown, delta: Fields, isFull: boolean): number => {
    const block = blocks.get(index);
    if (block === undefined) return 0;
    const field = APPENDED.get(delta.type);
    if (field !== undefined) {
      const text = textOf(delta[field]) ?? '';
      if (!isFull) block[field] = (textOf(block[field]) ?? '') + text;
      return text.length;
    }
    if (delta.type === 'citations_delta') return addDelta(isFull ? {} : block, { citations: [delta.citation] });
    if (delta.type === 'input_json_delta') {
      const json = textOf(delta.partial_json) ?? '';
      inputs.set(index, (inputs.get(index) ?? '') + (isFull ? '' : json));
      return json.length;
    }
    // All other deltas, such as signatures, contain complete values that replace earlier values.
    const { type: _, ...values } = copyOf(delta);
    Object.assign(block, values);
    return 0;
  };
  const endInput = (index: unknown): void => {
    const json = inputs.get(index);
    const block = blocks.get(index);
    inputs.delete(index);
    if (json && block !== undefined) block.input = parsedJson(json);
  };

  return {
    add(event, isFull) {
      const fields = fieldsOf(event);
      const { type, index } = fields;
      if (type === 'content_block_delta') return addToBlock(index, fieldsOf(fields.delta), isFull);
      if (type === 'message_start') {
        message = copyOf(fieldsOf(fields.message));
      } else if (type === 'content_block_start') {
        const block = copyOf(fieldsOf(fields.content_block));
        blocks.set(index, block);
        // If the service falls back to another model, that model generates the rest of the message.
        if (block.type === 'fallback' && message !== undefined) message.model = fieldsOf(block.to).model;
      } else if (type === 'content_block_stop') {
        endInput(index);
      } else if (type === 'message_delta' && message !== undefined) {
        const { type: _, delta, usage, ...others } = fields;
        Object.assign(message, copyOf(fieldsOf(delta)), withoutNulls(others));
        message.usage = laterUsage(message.usage, copyOf(usage));
      }
      return 0;
    },
    result() {
      if (message === undefined) return undefined;
      for (const index of [...inputs.keys()]) endInput(index);
      return { ...message, content: [...blocks.values()] };
    },
  };
}

function withoutNulls(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(copyOf(fields)).filter(([, value]) => value !== null));
}
