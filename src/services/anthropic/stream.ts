import { emptyFields, type Fields, fieldsOf, listOf, parsedJson, textOf } from '../../payload/fields.ts';
import type { Fold } from '../answer.ts';
import { addDelta, itemFor, update, withoutIndex } from '../deltas.ts';

/** The field that each type of delta extends. The field has the same name in the delta and in the block. */
const APPENDED: ReadonlyMap<unknown, string> = new Map([
  ['text_delta', 'text'],
  ['thinking_delta', 'thinking'],
]);

export function messageFold(): Fold {
  const message = emptyFields();
  const blocks: unknown[] = [];
  /** Incomplete JSON text of tool inputs. */
  const inputs = new Map<Fields, string>();

  const addToBlock = (block: Fields, { type, ...values }: Fields, isFull: boolean): number => {
    const field = APPENDED.get(type);
    const target = isFull ? {} : block;
    if (field !== undefined) {
      block.type ??= field;
      return addDelta(target, { [field]: values[field] });
    }
    if (type === 'citations_delta') return addDelta(target, { citations: [values.citation] });
    if (type !== 'input_json_delta') {
      // All other deltas, such as signatures, contain complete values that replace earlier values.
      update(block, values);
      return 0;
    }
    const json = textOf(values.partial_json) ?? '';
    inputs.set(block, (inputs.get(block) ?? '') + (isFull ? '' : json));
    return json.length;
  };

  return {
    add(event, isFull) {
      const { type, index, delta, content_block, ...fields } = fieldsOf(event);
      if (type === 'content_block_delta') return addToBlock(itemFor(blocks, { index }), fieldsOf(delta), isFull);
      if (type === 'message_start') {
        update(message, fields.message);
      } else if (type === 'content_block_start') {
        const block = itemFor(blocks, { index, ...fieldsOf(content_block) });
        update(block, content_block);
        // If the service falls back to another model, that model generates the rest of the message.
        if (block.type === 'fallback') update(message, { model: fieldsOf(block.to).model });
      } else if (type === 'message_delta') {
        // Each token count is a running total, so later counts replace earlier counts.
        update(message, { ...fieldsOf(delta), ...fields });
      }
      return 0;
    },
    result() {
      if (blocks.length === 0 && Object.keys(message).length === 0) return undefined;
      for (const [block, json] of inputs) if (json !== '') block.input = parsedJson(json);
      return { ...message, content: blocks.length === 0 ? listOf(message.content) : withoutIndex(blocks) };
    },
  };
}
