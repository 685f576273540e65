import { type Fields, fieldsOf, isFields, mapped, textOf } from '../fields.ts';
import { dataUriOf, mediaMarker } from '../media.ts';

/** Audio formats whose MIME type has a different name. */
const AUDIO_TYPES: ReadonlyMap<unknown, string> = new Map([['mp3', 'audio/mpeg']]);

/**
 * Returns messages, or the input items of a response, with audio as data URIs and with markers for images that a model
 * generated earlier. Input images and files are data URIs already. Returns the same list if nothing changes.
 */
export function recordedMessages(messages: unknown): unknown {
  return mapped(messages, (message) => {
    const fields: Fields = fieldsOf(message);
    const content = mapped(fields.content, partWithDataUri);
    return content === fields.content ? markedOutput(message) : { ...fields, content };
  });
}

/** Returns a part of a message with its audio as a data URI. */
export function partWithDataUri(part: unknown): unknown {
  const { type, input_audio } = fieldsOf(part);
  const { data, format } = fieldsOf(input_audio);
  const uri = type === 'input_audio' ? dataUriOf(AUDIO_TYPES.get(format) ?? `audio/${format}`, data) : undefined;
  return uri === undefined ? part : { ...fieldsOf(part), input_audio: { ...fieldsOf(input_audio), data: uri } };
}

/** Replaces the image of an output item by a marker. */
export function markedOutput(item: unknown): unknown {
  return fieldsOf(item).type === 'image_generation_call' ? marked(item, 'result', 'Image') : item;
}

/** Replaces the base64 of an image by a marker. */
export function markedImage(image: unknown): unknown {
  return marked(image, 'b64_json', 'Image');
}

/** Replaces the audio of a choice by a marker. */
export function markedAudio(choice: unknown): unknown {
  const { message } = fieldsOf(choice);
  if (!isFields(choice) || !isFields(message) || !isFields(message.audio)) return choice;
  return { ...choice, message: { ...message, audio: marked(message.audio, 'data', 'Audio') } };
}

function marked(object: unknown, key: string, kind: 'Image' | 'Audio'): unknown {
  if (!isFields(object)) return object;
  const base64 = textOf(object[key]);
  return base64 === undefined ? object : { ...object, [key]: mediaMarker(kind, base64) };
}
