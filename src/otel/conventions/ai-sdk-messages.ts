import { contentOfBlocks, toolCall, urlOfBase64 } from './model-messages.ts';
import { type Attributes, anyJson, defined, type Fields, filled, isObject, json, objects, text } from './values.ts';

/** Maps `ai.prompt.messages` to messages of the form `{ role, content, tool_calls }`. */
export function aiSdkMessages(value: unknown): Fields[] | undefined {
  return filled(objects(json(value)).flatMap(messagesOf));
}

/** Maps `ai.prompt`, the arguments `{ system, prompt, messages }` of a function of the SDK. */
export function aiSdkPrompt(value: unknown): Fields | undefined {
  const prompt = json(value);
  if (!isObject(prompt)) return undefined;
  const { messages, prompt: asked, ...rest } = prompt;
  return defined({ ...rest, prompt: aiSdkMessages(asked) ?? asked, messages: aiSdkMessages(messages) ?? messages });
}

/** Combines all attributes of the answer into one message. */
export function aiSdkAnswer(_: unknown, attributes: Attributes): Fields[] {
  const given = (name: string): unknown => attributes[`ai.response.${name}`] ?? attributes[`ai.result.${name}`];
  const message = {
    role: 'assistant',
    content: text(given('text')) ?? text(given('object')),
    reasoning: text(given('reasoning')),
    tool_calls: filled(objects(json(given('toolCalls'))).map(toolCallOf)),
    files: filled(objects(json(given('files'))).map(fileOf)),
    finish_reason: text(attributes['ai.response.finishReason'] ?? attributes['ai.finishReason']),
  };
  return [defined(message)];
}

/**
 * Parses the arguments of a tool. For dynamic tools, the arguments are JSON text that is encoded a second time as a
 * JSON string.
 */
export function aiSdkArguments(value: unknown): unknown {
  return json(anyJson(value));
}

/** Converts a message. The result may be several messages, because each tool result becomes a message. */
function messagesOf(message: Fields): Fields[] {
  const { role, content, ...rest } = message;
  if (!Array.isArray(content)) return [message];
  const calls: Fields[] = [];
  const answers: Fields[] = [];
  const blocks: Fields[] = [];
  for (const part of objects(content)) {
    if (part.type === 'tool-call') calls.push(toolCallOf(part));
    else if (part.type === 'tool-result') answers.push(toolResultOf(part));
    else blocks.push(blockOf(part));
  }
  if (role === 'tool' && blocks.length === 0) return answers;
  const own = { role, content: contentOfBlocks(blocks), tool_calls: filled(calls), ...rest };
  return [defined(own), ...answers];
}

function blockOf(part: Fields): Fields {
  const { type, text: words } = part;
  if (type === 'text') return { type, text: words };
  if (type === 'reasoning') return { type, reasoning: words };
  return type === 'file' || type === 'image' ? fileOf(part) : part;
}

/** Converts a tool call, whose arguments are `input` in version 5 and later, and `args` in version 4. */
function toolCallOf({ toolCallId, toolName, input, args }: Fields): Fields {
  return toolCall(toolCallId, toolName, input ?? args);
}

/**
 * Converts a tool result. The content of a tool result is `output`, an object with a type, in version 5 and later, and
 * `result` in version 4.
 */
function toolResultOf({ toolCallId, toolName, output, result }: Fields): Fields {
  const given = isObject(output) && 'value' in output ? output.value : output;
  return defined({ role: 'tool', tool_call_id: toolCallId, name: toolName, content: given ?? result });
}

/** Returns an image part for images and a `file` part for other media. */
function fileOf({ type, mediaType, mimeType, filename, name, data, image }: Fields): Fields {
  const media = text(mediaType) ?? text(mimeType);
  const url = urlOf(data ?? image, media ?? (type === 'image' ? 'image/*' : 'application/octet-stream'));
  const isImage = type === 'image' || media?.startsWith('image/') === true;
  if (isImage && typeof url === 'string') return { type: 'image_url', image_url: { url } };
  return defined({ type: 'file', media_type: media, filename: filename ?? name, data: url });
}

function urlOf(data: unknown, mediaType: string): unknown {
  // Version 7 wraps the data in an object with a type.
  if (isObject(data) && data.type === 'data') return urlOf(data.data, mediaType);
  if (isObject(data) && data.type === 'url') return data.url;
  const base64 = typeof data === 'string' ? data : base64Of(data);
  return base64 === undefined ? data : urlOfBase64(base64, mediaType);
}

/**
 * Returns the base64 of bytes that `JSON.stringify` has encoded as an object: `{ type: 'Buffer', data: [137, …] }`, or
 * `{ 0: 137, … }` for a `Uint8Array`.
 */
function base64Of(data: unknown): string | undefined {
  if (!isObject(data)) return undefined;
  const numbers = data.type === 'Buffer' ? data.data : Object.values(data);
  const isBytes = Array.isArray(numbers) && numbers.length > 0 && numbers.every(isByte);
  return isBytes ? Buffer.from(numbers).toString('base64') : undefined;
}

function isByte(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 255;
}
