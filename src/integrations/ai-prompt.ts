import { defined, type Fields, fieldsOf, listOf, textOf } from './fields.ts';
import { toolCall } from './tool-call.ts';

/** Base64 text of a file up to this many characters is recorded; of a longer one its length. */
const BASE64_CHARACTERS_MAX = 1_024;

/**
 * Messages as models take them, `{ role, content, tool_calls }`, out of those of the AI SDK. What has no place in that
 * shape stays as it is.
 */
export function messagesOf(prompt: readonly unknown[]): unknown[] {
  return prompt.flatMap(messageOf);
}

function messageOf(message: unknown): unknown {
  const { role, content } = fieldsOf(message);
  if (!Array.isArray(content)) return message;
  if (role === 'tool') return content.map(toolAnswerOf);
  if (role !== 'assistant') return { role, content: contentOf(content) };
  const calls = content.filter((part) => fieldsOf(part).type === 'tool-call').map(toolCallOf);
  const rest = content.filter((part) => fieldsOf(part).type !== 'tool-call');
  return defined({ role, content: contentOf(rest), tool_calls: calls.length === 0 ? undefined : calls });
}

/** One piece of text stands for itself. */
function contentOf(parts: readonly unknown[]): unknown {
  if (parts.length === 0) return undefined;
  const [first] = parts.map(fieldsOf);
  return parts.length === 1 && first?.type === 'text' ? first.text : parts.map(partOf);
}

function partOf(part: unknown): unknown {
  const { type, text: words } = fieldsOf(part);
  if (type === 'text' || type === 'reasoning') return { type, text: words };
  return type === 'file' || type === 'image' ? fileOf(part) : part;
}

function toolAnswerOf(part: unknown): unknown {
  const { type, toolCallId, toolName, output, result } = fieldsOf(part);
  if (type !== 'tool-result') return { role: 'tool', content: [part] };
  return { role: 'tool', tool_call_id: toolCallId, name: toolName, content: output ?? result };
}

/** A call of a tool, `input` of majors 5 and later or `args` of 4, which models give as text. */
export function toolCallOf(part: unknown): Fields {
  const { toolCallId, toolName, input, args } = fieldsOf(part);
  return toolCall(toolCallId, toolName, input ?? args);
}

/** A file without the bytes of a large one. */
export function fileOf(part: unknown): Fields {
  const { type, mediaType, mimeType, filename, data, image, file } = fieldsOf(part);
  const inner = fieldsOf(file);
  return defined({
    type: textOf(type) ?? 'file',
    media_type: mediaType ?? mimeType ?? inner.mediaType ?? inner.mimeType,
    filename,
    data: bytesOf(data ?? image ?? inner.base64),
  }) as Fields;
}

function bytesOf(data: unknown): unknown {
  if (typeof data === 'string') {
    const isShort = data.length <= BASE64_CHARACTERS_MAX || /^https?:/.test(data);
    return isShort ? data : `[${data.length} characters of base64]`;
  }
  // 7 says of what kind the data are: `{ type: 'data', data }` or `{ type: 'url', url }`.
  const inner = fieldsOf(data);
  return typeof inner.data === 'string' ? { ...inner, data: bytesOf(inner.data) } : data;
}

/** The tools of a prompt, or of a call, by their names. */
export function toolNames(tools: unknown): unknown[] | undefined {
  if (Array.isArray(tools)) return listOf(tools).map((tool) => fieldsOf(tool).name);
  return tools === undefined || tools === null ? undefined : Object.keys(fieldsOf(tools));
}
