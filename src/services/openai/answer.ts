import { fieldsOf, mapped, textOf, without } from '../../payload/fields.ts';
import { type AnswerReader, objectReader, vectorsOf, wholeReader } from '../answer.ts';
import { mediaMarker, withField } from '../media.ts';
import { choicesFold, imagesFold, responseFold } from './stream.ts';
import { openaiUsage } from './usage.ts';

/** Reads chat completions and text completions. */
export const choicesReader: AnswerReader = wholeReader(
  ['choices'],
  (answer) => ({ outputs: { ...answer, choices: mapped(answer.choices, markedAudio) }, usage: openaiUsage(answer) }),
  choicesFold,
);

/** Response fields that are not recorded. `output_text` repeats `output`, and the other fields repeat the request. */
const REPEATED: ReadonlySet<string> = new Set(['instructions', 'tools', 'prompt', 'output_text']);

export const responseReader: AnswerReader = wholeReader(
  ['output'],
  (answer) => ({
    outputs: { ...without(answer, REPEATED), output: mapped(answer.output, markedOutput) },
    usage: openaiUsage(answer),
  }),
  responseFold,
);

export const imagesReader: AnswerReader = objectReader(
  ['data'],
  (answer) => ({
    outputs: { ...answer, data: mapped(answer.data, (image) => marked(image, 'b64_json', 'Image')) },
    usage: openaiUsage(answer),
  }),
  imagesFold,
);

export const embeddingsReader: AnswerReader = objectReader(['data'], (answer) => {
  const { object, model, usage } = answer;
  return { outputs: { object, model, ...vectorsOf(answer), usage }, usage: openaiUsage(answer) };
});

/** Replaces a generated image in an item with a marker. Input items may repeat an earlier output. */
export function markedOutput(item: unknown): unknown {
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
