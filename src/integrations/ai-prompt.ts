import { UNKNOWN_TYPE } from '../payload/attachment.ts';
import { defined, type Fields, fieldsOf, listOf, mapped, textOf } from './fields.ts';
import { dataUriOf } from './media.ts';
import { toolCall } from './tool-call.ts';

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
  return { role: 'tool', tool_call_id: toolCallId, name: toolName, content: withFiles(output ?? result) };
}

/** What a tool has answered may have parts of its own, pictures for example. */
function withFiles(output: unknown): unknown {
  const { type, value } = fieldsOf(output);
  if (type !== 'content') return output;
  const parts = mapped(value, (part) => {
    const { data, mediaType } = fieldsOf(part);
    const kept = keptData(data, mediaType);
    return kept === data ? part : { ...fieldsOf(part), data: kept };
  });
  return parts === value ? output : { ...fieldsOf(output), value: parts };
}

/** A call of a tool, `input` of majors 5 and later or `args` of 4, which models give as text. */
export function toolCallOf(part: unknown): Fields {
  const { toolCallId, toolName, input, args } = fieldsOf(part);
  return toolCall(toolCallId, toolName, input ?? args);
}

/** A file whose base64 is a data URI, which leaves its payload for an attachment, as bytes do. */
export function fileOf(part: unknown): Fields {
  const { type, mediaType, mimeType, filename, data, image, file } = fieldsOf(part);
  const inner = fieldsOf(file);
  const media_type = mediaType ?? mimeType ?? inner.mediaType ?? inner.mimeType;
  return defined({
    type: textOf(type) ?? 'file',
    media_type,
    filename,
    data: keptData(data ?? image ?? inner.base64, media_type),
  }) as Fields;
}

/** Text is base64 of any length, an address, or a data URI already. */
function keptData(data: unknown, mediaType: unknown): unknown {
  if (typeof data === 'string') {
    const isAddress = /^(https?|data):/.test(data);
    return isAddress ? data : (dataUriOf(mediaType ?? UNKNOWN_TYPE, data) ?? data);
  }
  // 7 says of what kind the data are: `{ type: 'data', data }` or `{ type: 'url', url }`.
  const inner = fieldsOf(data);
  return typeof inner.data === 'string' ? { ...inner, data: keptData(inner.data, mediaType) } : data;
}

/** The tools of a prompt, or of a call, by their names. */
export function toolNames(tools: unknown): unknown[] | undefined {
  if (Array.isArray(tools)) return listOf(tools).map((tool) => fieldsOf(tool).name);
  return tools === undefined || tools === null ? undefined : Object.keys(fieldsOf(tools));
}
