import {
  defined,
  emptyFields,
  type Fields,
  fieldsOf,
  firstText,
  isFields,
  listOf,
  textOf,
} from '../../payload/fields.ts';
import { type Fold, wholeReader } from '../answer.ts';
import { type CallReader, callReader } from '../call-reader.ts';
import { addDelta, hasOnlyType, update, withoutIndex } from '../deltas.ts';
import { openaiCounts } from '../openai/usage.ts';
import { withSystem } from '../request.ts';

/** Reads pages of documents. Images in the request and the answer are data URIs, which become attachments. */
export const mistralOcr: CallReader = callReader(
  'mistral.ocr',
  { modelType: 'llm', inputKeys: ['document'] },
  wholeReader(['pages'], () => ({})),
);

/** Reads the start of a conversation, and what is appended to it. https://docs.mistral.ai/agents/agents_basics */
export const mistralConversation: CallReader = callReader(
  'mistral.conversations',
  {
    modelType: 'chat',
    inputKeys: ['inputs', 'instructions'],
    inputs: ({ inputs, instructions }) => {
      const entries = typeof inputs === 'string' ? [{ role: 'user', content: inputs }] : inputs;
      return { messages: withSystem(textOf(instructions), entries) };
    },
    settings: ['completion_args'],
  },
  wholeReader(
    ['outputs'],
    ({ outputs, usage }) => ({
      model: firstText(...listOf(outputs).map((entry) => fieldsOf(entry).model)),
      usage: openaiCounts(usage),
    }),
    conversationFold,
  ),
);

/** Combines the events of a conversation. An entry has the type of its events without their last word. */
function conversationFold(): Fold {
  const answer = emptyFields();
  const entries: Fields[] = [];
  const byIdOrIndex = new Map<unknown, Fields>();
  const entryOf = (index: unknown, id: string | undefined): Fields => {
    const known = byIdOrIndex.get(id ?? index);
    const entry: Fields = known ?? Object.assign(emptyFields(), { index });
    if (known === undefined) entries.push(entry);
    for (const key of [index, id]) if (key !== undefined) byIdOrIndex.set(key, entry);
    return entry;
  };
  const fold = {
    isComplete: false,
    add(event: unknown, isFull: boolean): number {
      const { type: name, output_index: index, content_index: _, content, arguments: json, ...rest } = fieldsOf(event);
      const [, type, step] = /^(.*)\.(\w+)$/.exec(textOf(name) ?? '') ?? [];
      if (type === 'conversation.response') {
        fold.isComplete = step === 'done' || step === 'error';
        update(answer, step === 'error' ? { error: rest } : rest);
        return 0;
      }
      if (type === undefined) return 0;
      const entry = isFull ? emptyFields() : entryOf(index, firstText(rest.id));
      update(entry, { type, ...rest });
      const added = isFields(content) ? (hasOnlyType(content) ? undefined : [content]) : content;
      const result = rest.info === undefined ? 0 : JSON.stringify(rest.info).length;
      return result + addDelta(entry, defined({ content: added, arguments: json }));
    },
    result: () => ({ ...answer, outputs: withoutIndex(entries) }),
  };
  return fold;
}
