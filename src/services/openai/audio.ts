import { fromBase64 } from '../../payload/describe.ts';
import { type Fields, fieldsOf, textOf, without } from '../../payload/fields.ts';
import { type AnswerReader, type Fold, objectReader } from '../answer.ts';
import { type CallReader, callReader } from '../call-reader.ts';
import { update } from '../deltas.ts';
import { uploadOf } from './calls.ts';
import { openaiUsage } from './usage.ts';

const object = objectReader(['text'], (answer) => ({ usage: openaiUsage(answer) }), transcriptFold);
/** Reads a transcription. The response is plain text if the request asks for text. */
const transcript: AnswerReader = {
  ...object,
  read: (value) => (typeof value === 'string' ? { outputs: { outputs: value } } : object.read(value)),
};

const audio = objectReader(
  ['audio'],
  (answer) => ({ outputs: { audio: answer.audio }, usage: openaiUsage(answer) }),
  speechFold,
);
/** Reads generated audio, which is recorded as an attachment. */
const speech: AnswerReader = {
  ...audio,
  read: (value) => audio.read(value instanceof Blob ? { audio: value } : value),
};

export const audioCalls: Readonly<Record<'transcription' | 'translation' | 'speech', CallReader>> = {
  transcription: call('openai.audio.transcriptions', ['file', 'prompt'], transcript),
  translation: call('openai.audio.translations', ['file', 'prompt'], transcript),
  speech: call('openai.audio.speech', ['input', 'instructions'], speech),
};

function call(name: string, inputKeys: readonly string[], answer: AnswerReader): CallReader {
  const inputs = (body: Fields): Fields => Object.fromEntries(inputKeys.map((key) => [key, uploadOf(body[key])]));
  return callReader(name, { modelType: 'llm', inputKeys, inputs }, answer);
}

const EVENT_FIELDS: ReadonlySet<string> = new Set(['type', 'delta', 'logprobs']);

/** Combines the events of a streamed transcription. The last event contains the complete text. */
function transcriptFold(): Fold {
  const answer = { text: '' };
  return {
    add(event, isFull) {
      const fields = fieldsOf(event);
      const delta = textOf(fields.delta) ?? '';
      if (fields.type === 'transcript.text.done') update(answer, without(fields, EVENT_FIELDS));
      else if (!isFull) answer.text += delta;
      return delta.length;
    },
    result: () => answer,
  };
}

function speechFold(): Fold {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let usage: unknown;
  return {
    add(event, isFull) {
      const fields = fieldsOf(event);
      const audio = textOf(fields.audio) ?? '';
      usage = fields.usage ?? usage;
      if (!isFull && audio !== '') parts.push(fromBase64(audio) as Uint8Array<ArrayBuffer>);
      return audio.length;
    },
    result: () => ({ audio: new Blob(parts), usage }),
  };
}
