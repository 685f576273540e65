import { defined, type Fields, fieldsOf, listOf, textOf } from '../../payload/fields.ts';
import { type MessagePart, messagesOfParts, toolCall, urlOfBase64 } from '../chat.ts';

/** Converts a Gemini content to messages. Each function response becomes a separate message. */
export function geminiMessages(content: unknown): Fields[] {
  const { role = 'user', parts } = fieldsOf(content);
  const converted = listOf(parts).map(partOf);
  return converted.length === 0 ? [] : messagesOfParts({ role: role === 'model' ? 'assistant' : role }, converted);
}

function partOf(given: unknown): MessagePart {
  const part = fieldsOf(given);
  const call = part.functionCall ?? part.function_call;
  const result = part.functionResponse ?? part.function_response;
  const { id, name, args, response } = fieldsOf(call ?? result);
  if (call !== undefined) return { call: toolCall(id, name, args) };
  if (result === undefined) return { block: blockOf(part) };
  return { result: defined({ role: 'tool', tool_call_id: id, name, content: response }) };
}

/** Converts a message part. Parts of unknown types are not changed. */
function blockOf(part: Fields): unknown {
  const { text, thought } = part;
  if (typeof text === 'string')
    return thought === true ? { type: 'reasoning', reasoning: text } : { type: 'text', text };
  const { mimeType, mime_type, data } = fieldsOf(part.inlineData ?? part.inline_data);
  if (typeof data !== 'string') return part;
  const type = textOf(mimeType ?? mime_type);
  const url = urlOfBase64(data, type);
  return type?.startsWith('image/')
    ? { type: 'image_url', image_url: { url } }
    : { type: 'file', mime_type: type, data: url };
}
