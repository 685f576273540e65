import { type Fields, fieldsOf, isFields, listOf, mapped, textOf, without } from '../../payload/fields.ts';
import { type AnswerReader, objectReader, vectorsOf, wholeReader } from '../answer.ts';
import { type CallReader, callReader } from '../call-reader.ts';
import { mediaMarker, withDataUris, withField } from '../media.ts';
import { type RequestFields, withSystem } from '../request.ts';
import { choicesFold, imagesFold, responseFold } from './stream.ts';
import { openaiUsage } from './usage.ts';

const choicesReader: AnswerReader = wholeReader(
  ['choices'],
  (answer) => ({ outputs: { ...answer, choices: mapped(answer.choices, markedAudio) }, usage: openaiUsage(answer) }),
  choicesFold,
);

/** Response fields that are not recorded. `output_text` repeats `output`, and the other fields repeat the request. */
const REPEATED: ReadonlySet<string> = new Set(['instructions', 'tools', 'prompt', 'output_text']);

const responseReader: AnswerReader = wholeReader(
  ['output'],
  (answer) => ({
    outputs: { ...without(answer, REPEATED), output: mapped(answer.output, markedOutput) },
    usage: openaiUsage(answer),
  }),
  responseFold,
);

const imagesReader: AnswerReader = objectReader(
  ['data'],
  (answer) => ({
    outputs: { ...answer, data: mapped(answer.data, (image) => marked(image, 'b64_json', 'Image')) },
    usage: openaiUsage(answer),
  }),
  imagesFold,
);

const embeddingsReader: AnswerReader = objectReader(['data'], (answer) => {
  const { object, model, usage } = answer;
  return { outputs: { object, model, ...vectorsOf(answer), usage }, usage: openaiUsage(answer) };
});

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

/** Replaces a generated image in an item with a marker. Input items may repeat an earlier output. */
function markedOutput(item: unknown): unknown {
  return fieldsOf(item).type === 'image_generation_call' ? marked(item, 'result', 'Image') : item;
}

function markedAudio(choice: unknown): unknown {
  const { message } = fieldsOf(choice);
  return withField(choice, 'message', withField(message, 'audio', marked(fieldsOf(message).audio, 'data', 'Audio')));
}

function marked(object: unknown, key: string, kind: 'Image' | 'Audio'): unknown {
  const base64 = textOf(fieldsOf(object)[key]);
  return base64 === undefined ? object : withField(object, key, mediaMarker(kind, base64));
}
