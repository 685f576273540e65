import { blockWithDataUris } from './anthropic-media.ts';
import { type Fields, fieldsOf, mapped } from './fields.ts';
import { dataUriOf } from './media.ts';
import { partWithDataUri } from './openai-media.ts';
import { toolCall } from './tool-call.ts';

/** The roles that models know, by LangChain's types of messages; any other type stands for itself. */
const ROLES: ReadonlyMap<unknown, string> = new Map([
  ['human', 'user'],
  ['ai', 'assistant'],
]);

/** What repeats other fields of a message, or has a field of its own below. */
const SPENT = new Set(['tool_calls', 'function_call', 'refusal', 'reasoning', 'reasoning_content']);

export function isMessage(value: object): value is Fields {
  return typeof (value as Fields)._getType === 'function' && 'content' in value;
}

/**
 * A message in the shape that models take: `{ role, content, tool_calls, … }`, instead of LangChain's own envelope. Fields
 * that say nothing are left out.
 */
export function plainMessage(message: Fields): Fields {
  const more = (message.additional_kwargs ?? {}) as Fields;
  const calls = list(message.tool_calls);
  const plain: Fields = { role: roleOf(message), content: mapped(message.content, plainBlock) };
  add(plain, 'name', message.name);
  add(plain, 'tool_calls', calls?.map(plainToolCall) ?? more.tool_calls);
  add(plain, 'invalid_tool_calls', list(message.invalid_tool_calls));
  add(plain, 'tool_call_id', message.tool_call_id);
  add(plain, 'status', message.status);
  add(plain, 'artifact', message.artifact);
  add(plain, 'function_call', more.function_call);
  add(plain, 'refusal', more.refusal);
  add(plain, 'reasoning', more.reasoning_content ?? more.reasoning);
  add(plain, 'id', message.id);
  const rest = Object.entries(more).filter(([key]) => !SPENT.has(key) && !key.startsWith('__'));
  if (rest.length > 0) plain.additional_kwargs = Object.fromEntries(rest);
  return plain;
}

/** The name of a role may be the message's own, and that of a system message one that OpenAI has renamed. */
function roleOf(message: Fields): unknown {
  const type = (message._getType as () => unknown)();
  if (type === 'generic') return message.role ?? type;
  const renamed = (message.additional_kwargs as Fields | undefined)?.__openai_role__;
  return renamed ?? ROLES.get(type) ?? type;
}

/** Images, files and sound as data URIs, which leave their payload for attachments: blocks of LangChain and of providers. */
function plainBlock(block: unknown): unknown {
  const { data, mime_type, mimeType } = fieldsOf(block);
  const uri = dataUriOf(mime_type ?? mimeType, data);
  return uri === undefined ? partWithDataUri(blockWithDataUris(block)) : { ...fieldsOf(block), data: uri };
}

function plainToolCall(call: unknown): unknown {
  if (typeof call !== 'object' || call === null) return call;
  const { id, name, args } = call as Fields;
  return toolCall(id, name, args);
}

/** A list with something in it. */
function list(value: unknown): unknown[] | undefined {
  return Array.isArray(value) && value.length > 0 ? value : undefined;
}

function add(fields: Fields, key: string, value: unknown): void {
  if (value !== undefined && value !== null) fields[key] = value;
}
