import { type Fields, fieldsOf, isFields, mapped, textOf, without } from '../../payload/fields.ts';
import { openaiUsage } from '../../services/openai.ts';
import { type Answer, type AnswerReader, objectReader } from '../call-reader.ts';
import { base64Bytes, mediaMarker } from '../media.ts';
import { choicesFold, imagesFold, responseFold } from './stream-folds.ts';

/** Reads chat completions and text completions. */
export const choicesReader: AnswerReader = {
  ...objectReader(
    ['choices'],
    (answer) => ({ outputs: { ...answer, choices: mapped(answer.choices, markedAudio) }, ...facts(answer) }),
    choicesFold,
  ),
  isWhole: true,
};

/** Response fields that are not recorded. `output_text` repeats `output`, and the other fields repeat the request. */
const REPEATED: ReadonlySet<string> = new Set(['instructions', 'tools', 'prompt', 'output_text']);

export const responseReader: AnswerReader = {
  ...objectReader(
    ['output'],
    (answer) => ({
      outputs: { ...without(answer, REPEATED), output: mapped(answer.output, markedOutput) },
      ...facts(answer),
    }),
    responseFold,
  ),
  isWhole: true,
};

export const imagesReader: AnswerReader = objectReader(
  ['data'],
  (answer) => ({
    outputs: { ...answer, data: mapped(answer.data, (image) => marked(image, 'b64_json', 'Image')) },
    ...facts(answer),
  }),
  imagesFold,
);

/** Reads the number of embedding vectors and their dimensions. The vectors themselves are not recorded. */
export const embeddingsReader: AnswerReader = objectReader(['data'], (answer) => {
  const { object, model, usage } = answer;
  const data = Array.isArray(answer.data) ? answer.data : [];
  const dimensions = dimensionsOf(fieldsOf(data[0]).embedding);
  return { outputs: { object, model, count: data.length, dimensions, usage }, ...facts(answer) };
});

/** Replaces a generated image in an item with a marker. Input items may repeat an earlier output. */
export function markedOutput(item: unknown): unknown {
  return fieldsOf(item).type === 'image_generation_call' ? marked(item, 'result', 'Image') : item;
}

function markedAudio(choice: unknown): unknown {
  const { message } = fieldsOf(choice);
  if (!isFields(choice) || !isFields(message) || !isFields(message.audio)) return choice;
  return { ...choice, message: { ...message, audio: marked(message.audio, 'data', 'Audio') } };
}

function marked(object: unknown, key: string, kind: 'Image' | 'Audio'): unknown {
  const base64 = textOf(fieldsOf(object)[key]);
  return base64 === undefined ? object : { ...fieldsOf(object), [key]: mediaMarker(kind, base64) };
}

/** Returns the number of dimensions of a vector. A vector is a list of numbers, or 4-byte floats in base64. */
export function dimensionsOf(vector: unknown): number | undefined {
  if (typeof vector === 'string') return base64Bytes(vector) / 4;
  return Array.isArray(vector) || ArrayBuffer.isView(vector) ? (vector as unknown[]).length : undefined;
}

/** Reads the model, the id and the token counts. */
export function facts(answer: Fields): Omit<Answer, 'outputs'> {
  return {
    model: textOf(answer.model),
    responseId: textOf(answer.id),
    usage: openaiUsage(answer),
  };
}
