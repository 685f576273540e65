import { type Fields, isFields, listOf, mapped, textOf } from '../../payload/fields.ts';
import { type CallReader, callReader } from '../call-reader.ts';
import { withDataUris } from '../media.ts';
import { type RequestFields, withSystem } from '../request.ts';
import { choicesReader, embeddingsReader, imagesReader, markedOutput, responseReader } from './answer.ts';

const chat: RequestFields = {
  modelType: 'chat',
  inputKeys: ['messages', 'prediction'],
  inputs: ({ messages, prediction }) => ({ messages: withDataUris(messages), prediction }),
};
const response: RequestFields = {
  modelType: 'chat',
  inputKeys: ['input', 'instructions', 'prompt'],
  inputs: responseInputs,
};
const completion: RequestFields = { modelType: 'llm', inputKeys: ['prompt', 'suffix'] };
const embeddings: RequestFields = { modelType: 'embedding', inputKeys: ['input'] };
const images: RequestFields = {
  modelType: 'llm',
  inputKeys: ['prompt', 'image', 'mask'],
  inputs: ({ prompt, image, mask }) => ({ prompt, image: uploadOf(image), mask: uploadOf(mask) }),
};

type OpenAICall =
  | 'chat'
  | 'response'
  | 'compaction'
  | 'completion'
  | 'embeddings'
  | 'imageGeneration'
  | 'imageEdit'
  | 'imageVariation';

export const openaiCalls: Readonly<Record<OpenAICall, CallReader>> = {
  chat: callReader('openai.chat.completions', chat, choicesReader),
  response: callReader('openai.responses', response, responseReader),
  compaction: callReader('openai.responses.compact', response, responseReader),
  completion: callReader('openai.completions', completion, choicesReader),
  embeddings: callReader('openai.embeddings', embeddings, embeddingsReader),
  imageGeneration: callReader('openai.images.generate', images, imagesReader),
  imageEdit: callReader('openai.images.edit', images, imagesReader),
  imageVariation: callReader('openai.images.createVariation', images, imagesReader),
};

function responseInputs({ input, instructions, prompt }: Fields): Fields {
  const asked =
    typeof input === 'string' ? [{ role: 'user', content: input }] : listOf(mapped(withDataUris(input), markedOutput));
  return { messages: withSystem(textOf(instructions), asked), prompt };
}

/** Describes an upload. For a stream or response, returns the type name, because reading the data would consume it. */
export function uploadOf(upload: unknown): unknown {
  if (Array.isArray(upload)) return upload.map(uploadOf);
  const isStream = isFields(upload) && ('pipe' in upload || 'body' in upload || Symbol.asyncIterator in upload);
  return isStream ? `[${upload.constructor?.name ?? 'Stream'}]` : upload;
}
