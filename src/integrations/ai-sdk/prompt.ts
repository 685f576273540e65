import { UNKNOWN_TYPE } from '../../payload/attachment.ts';
import { defined, type Fields, fieldsOf, mapped, textOf } from '../fields.ts';
import { dataUriOf, toolCall } from '../media.ts';

/** Converts messages of the AI SDK to `{ role, content, tool_calls }`. Other values are returned unchanged. */
export function messagesOf(prompt: readonly unknown[]): unknown[] {
  return prompt.flatMap(messageOf);
}

function messageOf(message: unknown): unknown {
  const { role, content } = fieldsOf(message);
  if (!Array.isArray(content)) return message;
  if (role === 'tool') return content.map(toolAnswerOf);
  const isCall = (part: unknown): boolean => role === 'assistant' && fieldsOf(part).type === 'tool-call';
  const calls = content.filter(isCall).map(toolCallOf);
  const rest = content.filter((part) => !isCall(part));
  return defined({ role, content: contentOf(rest), tool_calls: calls.length === 0 ? undefined : calls });
}

/** Converts the parts of a message. A single text part becomes a string. */
function contentOf(parts: readonly unknown[]): unknown {
  if (parts.length === 0) return undefined;
  const [first] = parts.map(fieldsOf);
  return parts.length === 1 && first?.type === 'text' ? first.text : parts.map(partOf);
}

function partOf(part: unknown): unknown {
  const { type, text } = fieldsOf(part);
  if (type === 'text' || type === 'reasoning') return { type, text };
  return type === 'file' || type === 'image' ? fileOf(part) : part;
}

function toolAnswerOf(part: unknown): unknown {
  const { type, toolCallId, toolName, output, result } = fieldsOf(part);
  if (type !== 'tool-result') return { role: 'tool', content: [part] };
  return { role: 'tool', tool_call_id: toolCallId, name: toolName, content: withFiles(output ?? result) };
}

/** Converts the files in the result of a tool to data URIs. */
function withFiles(output: unknown): unknown {
  const { type, value } = fieldsOf(output);
  if (type !== 'content') return output;
  const parts = mapped(value, (part) => {
    const { data, mediaType } = fieldsOf(part);
    const converted = fileDataOf(data, mediaType);
    return converted === data ? part : { ...fieldsOf(part), data: converted };
  });
  return parts === value ? output : { ...fieldsOf(output), value: parts };
}

/** Converts a tool call, whose arguments are `args` in version 4 and `input` in later versions. */
export function toolCallOf(part: unknown): Fields {
  const { toolCallId, toolName, input, args } = fieldsOf(part);
  return toolCall(toolCallId, toolName, input ?? args);
}

/** Converts a file to the format of version 5. Base64 becomes a data URI. */
export function fileOf(part: unknown): Fields {
  const { type, mediaType, mimeType, filename, data, image, file } = fieldsOf(part);
  const inner = fieldsOf(file);
  const media_type = mediaType ?? mimeType ?? inner.mediaType ?? inner.mimeType;
  return defined({
    type: textOf(type) ?? 'file',
    media_type,
    filename,
    data: fileDataOf(data ?? image ?? inner.base64, media_type),
  }) as Fields;
}

/**
 * Converts the data of a file. A string is base64, a URL or a data URI. Version 7 wraps the data in `{ type, data }` or
 * `{ type, url }`.
 */
function fileDataOf(data: unknown, mediaType: unknown): unknown {
  if (typeof data === 'string') {
    const isUrl = /^(https?|data):/.test(data);
    return isUrl ? data : (dataUriOf(mediaType ?? UNKNOWN_TYPE, data) ?? data);
  }
  const inner = fieldsOf(data);
  return typeof inner.data === 'string' ? { ...inner, data: fileDataOf(inner.data, mediaType) } : data;
}

/** Returns the names of tools from a list or an object. */
export function toolNames(tools: unknown): unknown[] | undefined {
  if (Array.isArray(tools)) return tools.map((tool) => fieldsOf(tool).name);
  return tools === undefined || tools === null ? undefined : Object.keys(fieldsOf(tools));
}
