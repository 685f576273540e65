import { type Fields, fieldsOf, filled, isPlainObject, listOf, mapped, parsedJson } from '../../payload/fields.ts';
import { toolCall } from '../../services/chat.ts';
import { blockWithDataUri } from '../../services/media.ts';

/**
 * Maximum depth and number of values to search for messages and documents. The depth is large, because LangGraph nests
 * its state.
 */
const DEPTH_MAX = 16;
const VALUES_MAX = 10_000;

/** Converts inputs to a plain object with plain messages. Any other value is returned as `{ input }`. */
export function plainInputs(inputs: unknown): Fields {
  return plainPayload('input', inputs);
}

/** Converts outputs to a plain object with plain messages. Any other value is returned as `{ output }`. */
export function plainOutputs(outputs: unknown): Fields {
  return plainPayload('output', outputs);
}

/** Returns the interrupts of a graph under the key that LangGraph uses in its results. */
export function plainInterrupts(interrupts: readonly unknown[]): Fields {
  return plainOutputs({ __interrupt__: interrupts });
}

/** Parses a tool's inputs. LangChain passes them as text, usually as JSON. */
export function toolInputs(input: unknown): Fields {
  if (typeof input !== 'string' || !input.startsWith('{')) return plainInputs(input);
  return plainInputs(parsedJson(input));
}

/**
 * Converts the messages, prompts and documents in a value to plain objects. The value itself is not changed. Plain
 * objects and prompt messages are returned directly. Any other value is returned under `key`.
 */
export function plainPayload(key: string, value: unknown): Fields {
  if (value === undefined) return {};
  try {
    const plain = converted(value, DEPTH_MAX, { left: VALUES_MAX });
    const isWhole = isPlainObject(plain) && (isPlainObject(value) || isPromptValue(value));
    return isWhole ? plain : { [key]: plain };
  } catch {
    // If a getter throws, the serializer handles the error of each property.
    return { [key]: value };
  }
}

function converted(value: unknown, depth: number, budget: { left: number }): unknown {
  if (typeof value !== 'object' || value === null || depth === 0 || --budget.left < 0) return value;
  const convert = (item: unknown): unknown => converted(item, depth - 1, budget);
  if (Array.isArray(value)) return mapped(value, convert);
  if (isPlainObject(value)) return convertedFields(value, convert);
  if (isMessage(value)) return plainMessage(value);
  if (isPromptValue(value)) return plainPrompt(value, convert);
  const { pageContent, lg_name, metadata, id } = value as Fields;
  if (typeof pageContent === 'string' && 'metadata' in value) {
    const document = { page_content: pageContent, type: 'Document', metadata };
    return id === undefined ? document : { ...document, id };
  }
  return typeof lg_name === 'string' ? convertedFields(plainCommand(value as Fields), convert) : value;
}

type Convert = (item: unknown) => unknown;

function convertedFields(fields: Fields, convert: Convert): Fields {
  let copy: Fields | undefined;
  for (const key of Object.keys(fields)) {
    const before = fields[key];
    const after = convert(before);
    if (after === before) continue;
    copy ??= { ...fields };
    copy[key] = after;
  }
  return copy ?? fields;
}

/** Removes class markers and an empty `goto` from a LangGraph `Command` or `Send`. */
function plainCommand({ lg_name: _, lc_direct_tool_output: __, ...fields }: Fields): Fields {
  const { goto, ...rest } = fields;
  return Array.isArray(goto) && goto.length === 0 ? rest : fields;
}

function isPromptValue(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && typeof (value as Fields).toChatMessages === 'function';
}

function plainPrompt(prompt: Fields, convert: Convert): unknown {
  if (Array.isArray(prompt.messages)) return { messages: mapped(prompt.messages, convert) };
  return typeof prompt.value === 'string' ? prompt.value : prompt;
}

/** Maps LangChain's message types to roles. Any other type is recorded as the role. */
const ROLES: ReadonlyMap<unknown, string> = new Map(Object.entries({ human: 'user', ai: 'assistant' }));

/** Keys of `additional_kwargs` that are recorded as message fields. */
const RECORDED_KWARGS = new Set(['tool_calls', 'function_call', 'refusal', 'reasoning', 'reasoning_content']);

export function isMessage(value: object): value is Fields {
  return typeof (value as Fields)._getType === 'function' && 'content' in value;
}

/** Converts a LangChain message to `{ role, content, tool_calls, … }`, without empty fields. */
export function plainMessage(message: Fields): Fields {
  const kwargs = fieldsOf(message.additional_kwargs);
  const calls = filled(listOf(message.tool_calls));
  const rest = Object.entries(kwargs).filter(([key]) => !RECORDED_KWARGS.has(key) && !key.startsWith('__'));
  const fields: Fields = {
    name: message.name,
    tool_calls: calls?.map(plainToolCall) ?? kwargs.tool_calls,
    invalid_tool_calls: filled(listOf(message.invalid_tool_calls)),
    tool_call_id: message.tool_call_id,
    status: message.status,
    artifact: message.artifact,
    function_call: kwargs.function_call,
    refusal: kwargs.refusal,
    reasoning: kwargs.reasoning_content ?? kwargs.reasoning,
    id: message.id,
    additional_kwargs: rest.length > 0 ? Object.fromEntries(rest) : undefined,
  };
  const given = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return {
    role: roleOf(message, kwargs),
    content: mapped(message.content, blockWithDataUri),
    ...Object.fromEntries(given),
  };
}

/**
 * Returns the role of a message. `__openai_role__` takes precedence over the message type, because OpenAI has renamed
 * the system role.
 */
function roleOf(message: Fields, kwargs: Fields): unknown {
  const type = (message._getType as () => unknown)();
  if (type === 'generic') return message.role ?? type;
  return kwargs.__openai_role__ ?? ROLES.get(type) ?? type;
}

function plainToolCall(call: unknown): unknown {
  if (typeof call !== 'object' || call === null) return call;
  const { id, name, args } = call as Fields;
  return toolCall(id, name, args);
}
