import { UNKNOWN_TYPE } from '../../payload/attachment.ts';
import {
  defined,
  definedOrNone,
  emptyFields,
  type Fields,
  fieldsOf,
  listOf,
  mapped,
  textOf,
} from '../../payload/fields.ts';
import { type AnswerReader, type Fold, objectReader, vectorsOf, wholeReader } from '../answer.ts';
import { type CallReader, callReader } from '../call-reader.ts';
import { addDelta, update } from '../deltas.ts';
import { dataUriOf } from '../media.ts';
import { typeOfBytes } from '../media-type.ts';
import type { RequestFields } from '../request.ts';
import { ollamaUsage } from './usage.ts';

const generated = wholeReader(['message', 'response'], (answer) => ({ usage: ollamaUsage(answer) }), generationFold);

const embedded = objectReader(['embedding', 'embeddings'], (answer) => ({
  outputs: vectorsOf(answer),
  usage: ollamaUsage(answer),
}));

/** The Ollama requests that are recorded. `embeddings` is the older form of `embed`. */
export const ollamaCalls: Readonly<Record<'chat' | 'generate' | 'embed' | 'embeddings', CallReader>> = {
  chat: call('ollama.chat', 'chat', generated, ({ messages }) => ({ messages: mapped(messages, withImages) })),
  generate: call('ollama.generate', 'llm', generated, ({ prompt, system, suffix, images }) =>
    defined({ prompt, system, suffix, images: images && listOf(images).map(imageUri) }),
  ),
  embed: call('ollama.embed', 'embedding', embedded, ({ input }) => ({ input })),
  embeddings: call('ollama.embed', 'embedding', embedded, ({ prompt }) => ({ input: prompt })),
};

function call(
  name: string,
  modelType: RequestFields['modelType'],
  answer: AnswerReader,
  inputs: (body: Fields) => Fields,
): CallReader {
  const inputKeys = ['messages', 'prompt', 'system', 'suffix', 'images', 'input'];
  return callReader(name, { modelType, inputKeys, inputs, settings: ['options'] }, answer);
}

/** Combines the lines of a streamed answer. Text and tool calls are appended. All other fields are replaced. */
function generationFold(): Fold {
  const answer = emptyFields();
  return {
    add(line, isFull) {
      const { message, response, thinking, ...rest } = fieldsOf(line);
      update(answer, rest);
      return addDelta(isFull ? emptyFields() : answer, defined({ message, response, thinking }));
    },
    result: () => definedOrNone(answer),
    get isComplete() {
      return answer.done === true;
    },
  };
}

function withImages(message: unknown): unknown {
  const { images, content, ...rest } = fieldsOf(message);
  if (!Array.isArray(images) || images.length === 0) return message;
  const blocks = images.map((image) => ({ type: 'image_url', image_url: { url: imageUri(image) } }));
  return { ...rest, content: [{ type: 'text', text: content }, ...blocks] };
}

function imageUri(image: unknown): unknown {
  return dataUriOf(typeOfBytes(textOf(image) ?? '') ?? UNKNOWN_TYPE, image) ?? image;
}
