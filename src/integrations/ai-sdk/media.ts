import { defined, type Fields, fieldsOf, isFields, mapped, textOf } from '../../payload/fields.ts';
import { mediaMarker } from '../../services/media.ts';

/** Options of image, speech and transcription calls that contain no media. */
const OPTIONS = ['text', 'instructions', 'voice', 'outputFormat', 'speed', 'language', 'n', 'size', 'aspectRatio'];

/** Reads the options of image, speech and transcription calls. Markers replace images and audio. */
export function mediaInputs(options: Fields): Fields {
  const { prompt, images, files, mask, audio, mediaType } = options;
  return defined({
    ...Object.fromEntries(OPTIONS.map((key) => [key, options[key]])),
    prompt: isFields(prompt) ? mediaInputs(prompt) : prompt,
    images: marked('Image', images),
    files: marked('Image', files),
    mask: marked('Image', mask),
    audio: marked('Audio', audio, mediaType),
  });
}

/** Reads the result of an image, speech or transcription call. Returns undefined for any other result. */
export function mediaOutputs(result: Fields): Fields | undefined {
  const { images, audio, segments, text, language, durationInSeconds } = result;
  if ((images ?? audio ?? segments) === undefined) return undefined;
  const transcript = segments === undefined ? {} : { text, segments, language, durationInSeconds };
  return defined({ images: marked('Image', images), audio: marked('Audio', audio), ...transcript });
}

function marked(kind: 'Image' | 'Audio', media: unknown, type?: unknown): unknown {
  if (Array.isArray(media)) return mapped(media, (one) => marked(kind, one, type));
  if (media instanceof URL) return media.href;
  // The getters of generated files would convert the data.
  const { url, data, base64Data, uint8ArrayData, mediaType, mimeType } = fieldsOf(media);
  const content = url ?? data ?? base64Data ?? uint8ArrayData ?? media;
  if (/^https?:/.test(textOf(content) ?? '')) return content;
  const isMedia = typeof content === 'string' || ArrayBuffer.isView(content) || content instanceof ArrayBuffer;
  return isMedia ? mediaMarker(kind, content, textOf(mediaType ?? mimeType ?? type)) : undefined;
}
