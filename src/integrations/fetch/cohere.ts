import { defined, emptyFields, type Fields, fieldsOf, isFields, listOf } from '../../payload/fields.ts';
import { cohereUsage } from '../../services/cohere.ts';
import { type CallReader, callReader, type Fold, objectReader, vectorsOf } from '../call-reader.ts';
import { addDelta, update, withoutIndex } from '../deltas.ts';
import { withDataUris } from '../media.ts';

export const cohereChat: CallReader = callReader(
  'cohere.chat',
  {
    modelType: 'chat',
    inputKeys: ['messages', 'documents'],
    inputs: ({ messages, documents }) => ({ messages: withDataUris(messages), documents }),
  },
  { ...objectReader(['message'], ({ usage }) => ({ usage: cohereUsage(usage) }), chatFold), isWhole: true },
);

export const cohereEmbedding: CallReader = callReader(
  'cohere.embed',
  { modelType: 'embedding', inputKeys: ['texts', 'images', 'inputs'] },
  objectReader(['embeddings'], (answer) => ({ outputs: vectorsOf(answer), usage: cohereUsage(answer.meta) })),
);

/** Message fields that are lists. Each event contains one list item and its position `index`. */
const LISTS: ReadonlySet<string> = new Set(['content', 'tool_calls', 'citations']);

/** Combines the events of a streamed message. */
function chatFold(): Fold {
  const answer = emptyFields();
  const message: Fields = emptyFields();
  return {
    add(event, isFull) {
      const { id, index, delta } = fieldsOf(event);
      const { message: added, ...rest } = fieldsOf(delta);
      update(answer, defined({ id, ...rest }));
      let characters = 0;
      for (const [key, value] of Object.entries(fieldsOf(added))) {
        const change = { [key]: LISTS.has(key) && isFields(value) ? [{ index, ...value }] : value };
        characters += addDelta(isFull ? emptyFields() : message, change);
      }
      return characters;
    },
    result: () => {
      const entries = Object.entries(message).map(([key, value]) => [
        key,
        LISTS.has(key) ? withoutIndex(listOf(value)) : value,
      ]);
      return { ...answer, message: Object.fromEntries(entries) };
    },
  };
}
