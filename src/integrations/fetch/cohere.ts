import { defined, emptyFields, type Fields, fieldsOf, isFields, listOf } from '../../payload/fields.ts';
import { cohereUsage } from '../../services/cohere.ts';
import { type CallReader, describeRequest, type Fold, objectReader } from '../call-reader.ts';
import { addDelta, update, withoutIndex } from '../deltas.ts';
import { withDataUris } from '../media.ts';
import { dimensionsOf } from '../openai/answers.ts';

export const cohereChat: CallReader = {
  name: 'cohere.chat',
  runType: 'llm',
  isWhole: true,
  describe: (body, provider) =>
    describeRequest(body, provider, {
      modelType: 'chat',
      inputKeys: ['messages', 'documents'],
      inputs: ({ messages, documents }) => ({ messages: withDataUris(messages), documents }),
    }),
  ...objectReader(['message'], (answer) => ({ outputs: answer, usage: cohereUsage(answer.usage) }), chatFold),
};

export const cohereEmbedding: CallReader = {
  name: 'cohere.embed',
  runType: 'embedding',
  describe: (body, provider) =>
    describeRequest(body, provider, { modelType: 'embedding', inputKeys: ['texts', 'images', 'inputs'] }),
  ...objectReader(['embeddings'], (answer) => {
    // The vectors are grouped by number type, for example `{ float: [[…]] }`.
    const [vectors] = Object.values(fieldsOf(answer.embeddings)).map(listOf);
    return {
      outputs: { count: vectors?.length ?? 0, dimensions: dimensionsOf(vectors?.[0]) },
      usage: cohereUsage(answer.meta),
    };
  }),
};

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
