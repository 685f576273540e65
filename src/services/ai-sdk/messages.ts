/** Converts AI SDK messages for the AI SDK integration and for AI SDK spans. */
import { toBase64 } from '../../payload/describe.ts';
import { defined, type Fields, fieldsOf, isFields, mapped, textOf } from '../../payload/fields.ts';
import { type MessagePart, messagesOfParts, toolCall, urlOfBase64 } from '../chat.ts';

/** Minimum length of base64 text. Shorter strings may be words or file ids. */
const BASE64_MIN = 48;

/**
 * Converts AI SDK messages to `{ role, content, tool_calls }`. Each tool result becomes a separate message. Other
 * values are returned unchanged.
 */
export function aiSdkMessages(messages: readonly unknown[]): unknown[] {
  return messages.flatMap((message): unknown[] => {
    const { content, ...rest } = fieldsOf(message);
    return Array.isArray(content) ? messagesOfParts(rest, content.map(partOf)) : [message];
  });
}

function partOf(part: unknown): MessagePart {
  const { type } = fieldsOf(part);
  if (type === 'tool-call') return { call: aiSdkToolCall(part) };
  return type === 'tool-result' ? { result: toolResultOf(fieldsOf(part)) } : { block: blockOf(part) };
}

function blockOf(part: unknown): unknown {
  const { type, text } = fieldsOf(part);
  if (type === 'text') return { type, text };
  if (type === 'reasoning') return { type, reasoning: text };
  return type === 'file' || type === 'image' ? aiSdkFile(part) : part;
}

/** Converts a tool call. AI SDK 4 stores the arguments in `args`, and later versions in `input`. */
export function aiSdkToolCall(part: unknown): Fields {
  const { toolCallId, toolName, input, args } = fieldsOf(part);
  return toolCall(toolCallId, toolName, input ?? args);
}

/** Converts a tool result. AI SDK 4 stores the content in `result`, and later versions in the object `output`. */
function toolResultOf(part: Fields): Fields {
  const { toolCallId, toolName, output, result } = part;
  const given = isFields(output) && 'value' in output ? output.value : output;
  const content = fieldsOf(output).type === 'content' ? mapped(given, withDataUri) : given;
  return defined({ role: 'tool', tool_call_id: toolCallId, name: toolName, content: content ?? result });
}

function withDataUri(part: unknown): unknown {
  const { data, mediaType } = fieldsOf(part);
  return data === undefined ? part : { ...fieldsOf(part), data: urlOf(data, mediaType) };
}

/**
 * Converts a file in a message, or a generated file. Returns an image part for an image URL or base64 image. Returns a
 * `file` part for other media.
 */
export function aiSdkFile(part: unknown): Fields {
  const { type, mediaType, mimeType, filename, name, data, image, file } = fieldsOf(part);
  const generated = fieldsOf(file);
  const media = [mediaType, mimeType, generated.mediaType, generated.mimeType].find((given) => textOf(given));
  const url = urlOf(data ?? image ?? generated.base64, media ?? (type === 'image' ? 'image/*' : undefined));
  const isImage = type === 'image' || textOf(media)?.startsWith('image/') === true;
  if (isImage && typeof url === 'string') return { type: 'image_url', image_url: { url } };
  return defined({ type: 'file', media_type: media, filename: filename ?? name, data: url });
}

function urlOf(data: unknown, mediaType: unknown): unknown {
  if (data instanceof URL) return data.href;
  // AI SDK 7 wraps the data in an object with a `type`.
  const { type, data: inner, url } = fieldsOf(data);
  if (type === 'data') return urlOf(inner, mediaType);
  if (type === 'url') return url instanceof URL ? url.href : url;
  if (typeof data === 'string') return data.length < BASE64_MIN ? data : urlOfBase64(data, mediaType);
  const base64 = base64Of(data);
  return base64 === undefined ? data : urlOfBase64(base64, mediaType);
}

/**
 * Encodes bytes as base64. Also accepts bytes that `JSON.stringify` turned into an object:
 * `{ type: 'Buffer', data: [137, …] }` for a `Buffer`, `{ 0: 137, … }` for a `Uint8Array`.
 */
function base64Of(data: unknown): string | undefined {
  if (data instanceof Uint8Array) return toBase64(data);
  if (!isFields(data)) return undefined;
  const numbers = data.type === 'Buffer' ? data.data : indexed(data);
  const isBytes = Array.isArray(numbers) && numbers.length > 0 && numbers.every(isByte);
  return isBytes ? toBase64(Uint8Array.from(numbers)) : undefined;
}

/** Returns the values of an object whose keys are 0, 1, 2, and so on. */
function indexed(object: Fields): unknown[] | undefined {
  return Object.keys(object).every((key, at) => key === String(at)) ? Object.values(object) : undefined;
}

function isByte(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 255;
}
