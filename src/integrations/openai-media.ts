import { type Fields, fieldsOf, isFields, mapped, textOf } from './fields.ts';
import { dataUriOf, mediaMarker } from './media.ts';

/** Formats of sound whose type has another name. */
const AUDIO_TYPES: ReadonlyMap<unknown, string> = new Map([['mp3', 'audio/mpeg']]);

/**
 * Messages, or items of a response's input, as they are recorded: sound as a data URI, which leaves its payload for an
 * attachment, in the place of bare base64, and a marker for pictures that an earlier answer has made. Images and files that
 * are sent are data URIs already. What has none of it is handed on as it is.
 */
export function recordedMessages(messages: unknown): unknown {
  return mapped(messages, recordedMessage);
}

/** A part of a message, with its sound as a data URI. */
export function partWithDataUri(part: unknown): unknown {
  const { type, input_audio } = fieldsOf(part);
  const { data, format } = fieldsOf(input_audio);
  const uri = type === 'input_audio' ? dataUriOf(AUDIO_TYPES.get(format) ?? `audio/${format}`, data) : undefined;
  return uri === undefined ? part : { ...fieldsOf(part), input_audio: { ...fieldsOf(input_audio), data: uri } };
}

/** An item of a response's output, with a marker in the place of the pixels. */
export function withoutPixels(item: unknown): unknown {
  return fieldsOf(item).type === 'image_generation_call' ? marked(item, 'result', 'Image') : item;
}

/** An image of an answer, likewise. */
export function withoutBase64(image: unknown): unknown {
  return marked(image, 'b64_json', 'Image');
}

/** A choice of a chat completion, with a marker in the place of the sound. */
export function withoutSound(choice: unknown): unknown {
  const message = fieldsOf(choice).message;
  if (!isFields(choice) || !isFields(message) || !isFields(message.audio)) return choice;
  return { ...choice, message: { ...message, audio: marked(message.audio, 'data', 'Audio') } };
}

function recordedMessage(message: unknown): unknown {
  const fields: Fields = fieldsOf(message);
  const content = mapped(fields.content, partWithDataUri);
  return content === fields.content ? withoutPixels(message) : { ...fields, content };
}

function marked(object: unknown, key: string, kind: 'Image' | 'Audio'): unknown {
  if (!isFields(object)) return object;
  const base64 = textOf(object[key]);
  return base64 === undefined ? object : { ...object, [key]: mediaMarker(kind, base64) };
}
