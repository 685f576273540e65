import { defined, emptyFields, type Fields, fieldsOf, isFields, withValues } from '../../payload/fields.ts';
import { type Fold, objectReader, vectorsOf, wholeReader } from '../answer.ts';
import { type CallReader, callReader } from '../call-reader.ts';
import { addDelta, update, withoutIndex } from '../deltas.ts';
import { withDataUris } from '../media.ts';
import { cohereUsage } from './usage.ts';

export const cohereChat: CallReader = callReader(
  'cohere.chat',
  {
    modelType: 'chat',
    inputKeys: ['messages', 'documents'],
    inputs: ({ messages, documents }) => ({ messages: withDataUris(messages), documents }),
  },
  wholeReader(['message'], ({ usage }) => ({ usage: cohereUsage(usage) }), chatFold),
);

export const cohereEmbedding: CallReader = callReader(
  'cohere.embed',
  { modelType: 'embedding', inputKeys: ['texts', 'images', 'inputs'] },
  objectReader(['embeddings'], (answer) => ({ outputs: vectorsOf(answer), usage: cohereUsage(answer.meta) })),
);

/** The fields are those of the AI SDK's `rerank`. */
export const cohereRerank: CallReader = callReader(
  'cohere.rerank',
  { modelType: 'rerank', inputKeys: ['query', 'documents'] },
  objectReader(['results'], ({ results, meta }) => ({ outputs: { ranking: results, meta } })),
);

/** Combines the events of a streamed message. An object in a message is one item of a list, at the position `index`. */
function chatFold(): Fold {
  const answer = emptyFields();
  const message: Fields = emptyFields();
  return {
    add(event, isFull) {
      const { id, index, delta } = fieldsOf(event);
      const { message: added, ...rest } = fieldsOf(delta);
      update(answer, defined({ id, ...rest }));
      const changes = withValues(fieldsOf(added), (value) => (isFields(value) ? [{ index, ...value }] : value));
      return addDelta(isFull ? emptyFields() : message, changes);
    },
    result: () => ({
      ...answer,
      message: withValues(message, (value) => (Array.isArray(value) ? withoutIndex(value) : value)),
    }),
  };
}
