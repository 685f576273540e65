import { type Fields, fieldsOf, firstText, isFields, listOf, parsedJson, textOf } from '../payload/fields.ts';
import { declaredType } from './media-type.ts';
import type { Part, ToolCall, ToolResult } from './message.ts';

/** Converts the content of a message to parts. The content is text or a list of blocks in any provider's format. */
export function partsOf(content: unknown): Part[] {
  if (content === undefined || content === null || content === '') return [];
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  if (Array.isArray(content)) return content.flatMap(partsOfBlock);
  return partsOfBlock(content);
}

/** Returns the tool calls in OpenAI's `tool_calls` and `function_call`, and in LangChain's `invalid_tool_calls`. */
export function readToolCalls({ tool_calls, toolCalls, function_call, invalid_tool_calls }: Fields): ToolCall[] {
  const legacy = isFields(function_call) ? [function_call] : [];
  return [...listOf(tool_calls ?? toolCalls), ...legacy, ...listOf(invalid_tool_calls)].map((call) =>
    readToolCall(fieldsOf(call)),
  );
}

/** Converts a tool call. The name and the arguments are either in `function` or `custom`, or next to the id. */
export function readToolCall(call: Fields): ToolCall {
  const inner = { ...call, ...fieldsOf(call.function ?? call.custom) };
  // In OpenAI's Responses API, a tool result refers to the call by `call_id`. The `id` belongs to the output item.
  const id = firstText(call.call_id, call.tool_call_id, call.toolCallId, call.id);
  const name = firstText(inner.name, call.toolName, call.type) ?? 'tool';
  const input = inner.arguments ?? inner.args ?? inner.input ?? inner.action ?? {};
  return { kind: 'call', id, name, input: parsedStructure(input) };
}

export function resultOf(fields: Fields, value: unknown): ToolResult {
  const id = firstText(fields.tool_call_id, fields.tool_use_id, fields.call_id, fields.toolCallId);
  const name = firstText(fields.name, fields.toolName, fields.tool_name);
  const isFailed = fields.status === 'error' || blockType(value).startsWith('error-');
  const isError = fields.is_error === true || fields.isError === true || isFailed;
  return { kind: 'result', id, name, value: parsedStructure(plainResult(value)), isError };
}

/** Parses text that contains a JSON object or list. Returns any other value unchanged. */
function parsedStructure(value: unknown): unknown {
  return typeof value === 'string' && /^\s*[[{]/.test(value) ? parsedJson(value) : value;
}

/** Simplifies the result of a tool. Joins text blocks, and unwraps the AI SDK's `{ type, value }`, such as `error-text`. */
function plainResult(value: unknown): unknown {
  const texts = listOf(value).map((block) => firstText(fieldsOf(block).text));
  if (texts.length > 0 && !texts.includes(undefined)) return texts.join('\n');
  const { value: inner } = fieldsOf(value);
  return /^(error-)?(text|json)$/.test(blockType(value)) && inner !== undefined ? inner : value;
}

function partsOfBlock(block: unknown): Part[] {
  if (typeof block === 'string') return block === '' ? [] : [{ kind: 'text', text: block }];
  if (!isFields(block)) return [{ kind: 'other', value: block }];
  return partsByType(block) ?? converseParts(block) ?? geminiParts(block) ?? [{ kind: 'other', value: block }];
}

const TEXT = /^((in|out)put_)?text(-delta)?$/;
const THOUGHT = /^(thought|reasoning|(redacted_)?thinking)$/;
const CALL = /^((server_|mcp_)?tool_use|tool[-_]call|function_call)$/;
const RESULT = /^(.*tool[-_]result|function_(call_output|result))$/;

const ASIDE = /(^|[._-])(call|tool_use|thought|reasoning|thinking)$/;

/** Returns the type of a block or an item, or an empty text if it has none. */
export function blockType(value: unknown): string {
  return textOf(fieldsOf(value).type) ?? '';
}

/** Returns whether a block or an item is a tool call or reasoning, so that its texts are not those of an answer. */
export function isAside(block: unknown): boolean {
  if (!isFields(block)) return false;
  if (typeof block.type === 'string') return ASIDE.test(block.type);
  return block.thought === true || isFields(block.functionCall ?? block.toolUse ?? block.reasoningContent);
}

function partsByType(block: Fields): Part[] | undefined {
  const type = blockType(block);
  if (TEXT.test(type)) return typeof block.text === 'string' ? textPart('text', block.text) : undefined;
  if (type === 'refusal') return textPart('refusal', firstText(block.refusal));
  if (THOUGHT.test(type)) return reasoningOf(block);
  if (CALL.test(type)) return [readToolCall(block)];
  if (RESULT.test(type)) return [resultOf(block, block.content ?? block.output ?? block.result)];
  return mediaOf(block);
}

/** Returns a list with one text part, or an empty list if the text is empty or missing. */
export function textPart(kind: 'text' | 'reasoning' | 'refusal', text = ''): Part[] {
  return text === '' ? [] : [{ kind, text }];
}

function reasoningOf(block: Fields): Part[] {
  // Mistral has a list in `thinking`.
  const summary = [block.summary, block.content, block.thinking].flatMap(listOf);
  const texts = summary.map((item) => textOf(fieldsOf(item).text) ?? '');
  const text = firstText(block.thinking, block.text, block.reasoning, texts.join('\n\n'));
  return textPart('reasoning', text ?? '(hidden by the provider)');
}

/** Converts images, files and audio in the formats of OpenAI, Anthropic, LangChain and the AI SDK. */
function mediaOf(block: Fields): Part[] | undefined {
  const [kind] = /image|file|audio|document|media|video/.exec(blockType(block)) ?? [];
  if (kind === undefined) return undefined;
  const source = fieldsOf(block.source);
  const inner = fieldsOf(block.image_url ?? block.input_audio ?? block.file ?? block.audio);
  const mime = firstText(...[inner, source, block].map((one) => declaredType(kind, one)));
  const places = [inner, source, block].flatMap(({ url, file_data, data }) => [url, file_data, data]);
  const found = firstText(block.image_url, ...places, block.uri, block.image);
  return found === undefined ? undefined : [{ kind: 'media', source: found, type: mime }];
}

/** Converts blocks of Bedrock's Converse API. Text blocks are those of Gemini. */
function converseParts(block: Fields): Part[] | undefined {
  const { toolUse, toolResult, reasoningContent } = block;
  if (isFields(toolUse)) return [readToolCall({ ...toolUse, id: toolUse.toolUseId })];
  if (isFields(toolResult)) {
    const { content } = toolResult;
    const [{ json } = {}] = listOf(content).map(fieldsOf);
    return [resultOf({ ...toolResult, tool_use_id: toolResult.toolUseId }, json ?? content)];
  }
  if (isFields(reasoningContent)) return reasoningOf(fieldsOf(reasoningContent.reasoningText));
  if (isFields(block.citationsContent)) return partsOf(block.citationsContent.content);
  const kind = ['image', 'video', 'audio', 'document'].find((one) => isFields(block[one])) ?? '';
  const media = fieldsOf(block[kind]);
  const source = firstText(fieldsOf(media.source).bytes);
  return source === undefined ? undefined : [{ kind: 'media', source, type: declaredType(kind, media) }];
}

function geminiParts(block: Fields): Part[] | undefined {
  if (isFields(block.functionCall)) return [readToolCall(block.functionCall)];
  if (isFields(block.functionResponse)) {
    const { id, name, response } = block.functionResponse;
    // https://ai.google.dev/api/caching#FunctionResponse: a function that has failed returns "error".
    return [resultOf({ call_id: id, name, isError: 'error' in fieldsOf(response) }, response)];
  }
  const data = fieldsOf(block.inlineData ?? block.inline_data ?? block.fileData ?? block.file_data);
  const source = firstText(data.data, data.fileUri, data.file_uri);
  if (source !== undefined) return [{ kind: 'media', source, type: declaredType('media', data) }];
  if (block.type !== undefined || typeof block.text !== 'string') return undefined;
  return textPart(block.thought === true ? 'reasoning' : 'text', block.text);
}
