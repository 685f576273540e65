import { type Fields, isFields, listOf, mapped } from '../../payload/fields.ts';
import type { RunType } from '../../run/record.ts';
import { type AnswerReader, type CallReader, describeRequest, type RequestFields } from '../call-reader.ts';
import { withDataUris } from '../media.ts';
import { choicesReader, embeddingsReader, imagesReader, markedOutput, responseReader } from './answers.ts';

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
  chat: call('openai.chat.completions', 'llm', chat, choicesReader),
  response: call('openai.responses', 'llm', response, responseReader),
  compaction: call('openai.responses.compact', 'llm', response, responseReader),
  completion: call('openai.completions', 'llm', completion, choicesReader),
  embeddings: call('openai.embeddings', 'embedding', embeddings, embeddingsReader),
  imageGeneration: call('openai.images.generate', 'llm', images, imagesReader),
  imageEdit: call('openai.images.edit', 'llm', images, imagesReader),
  imageVariation: call('openai.images.createVariation', 'llm', images, imagesReader),
};

function call(name: string, runType: RunType, fields: RequestFields, reader: AnswerReader): CallReader {
  return {
    ...reader,
    name,
    runType,
    describe(body, provider) {
      // Background requests are not recorded, because their response does not contain the answer.
      if (isFields(body) && body.background === true && body.stream !== true) return undefined;
      return describeRequest(body, provider, fields);
    },
  };
}

function responseInputs({ input, instructions, prompt }: Fields): Fields {
  const system = typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : [];
  const asked =
    typeof input === 'string' ? [{ role: 'user', content: input }] : listOf(mapped(withDataUris(input), markedOutput));
  return { messages: [...system, ...asked], prompt };
}

/** Describes an upload. For a stream or response, returns the type name, because reading the data would consume it. */
export function uploadOf(upload: unknown): unknown {
  if (Array.isArray(upload)) return upload.map(uploadOf);
  const isStream = isFields(upload) && ('pipe' in upload || 'body' in upload || Symbol.asyncIterator in upload);
  return isStream ? `[${upload.constructor?.name ?? 'Stream'}]` : upload;
}
