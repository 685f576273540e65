import { type Fields, fieldsOf, isFields, textOf } from '../../payload/fields.ts';
import type { CacheComparison, PromptDifference } from './run-view.ts';
import { outputsUsageOf, usageIn } from './usage.ts';

/** The recorded request of a model call. */
export interface ModelRequest {
  readonly inputs: unknown;
  readonly extra?: Readonly<Fields> | undefined;
}

/** The number of characters with which two prompts begin. The difference is absent if one is the beginning of the other. */
export interface CommonPrefix {
  readonly length: number;
  readonly difference?: PromptDifference;
}

/**
 * Compares two prompts in the order in which providers cache them: tools, system prompt, messages. Returns undefined if a
 * prompt is not completely recorded.
 */
export function commonPrefix(earlier: ModelRequest, later: ModelRequest): CommonPrefix | undefined {
  const [before, after] = [partsOf(earlier), partsOf(later)];
  if (before.length === 0 || after.length === 0) return undefined;
  const at = before.findIndex(({ place, text }, index) => place !== after[index]?.place || text !== after[index].text);
  const [old, now] = [before[at], after[at]];
  const equal = lengthOf(at === -1 ? before : before.slice(0, at));
  if (old === undefined || now === undefined) return { length: equal };
  const { place } = now;
  const all = lengthOf(before);
  if (place !== old.place) {
    return { length: equal, difference: { place, earlier_place: old.place, equal_share: equal / all } };
  }
  let offset = 0;
  while (offset < old.text.length && old.text.charCodeAt(offset) === now.text.charCodeAt(offset)) offset++;
  const length = equal + offset;
  const isExtended = offset === old.text.length && at === before.length - 1;
  const isShortened = offset === now.text.length && at === after.length - 1;
  if (isExtended || isShortened) return { length };
  const character = place === SYSTEM ? { character: offset + 1 } : {};
  const changes = { ...character, ...excerpts(old.text, now.text, offset) };
  return { length, difference: { place, ...changes, equal_share: length / all } };
}

/** Describes a difference. States only what is known: a difference need not be the reason why the cache was not read. */
export function describeDifference(
  { place, earlier_place, character, before, after, equal_share }: PromptDifference,
  { seconds_before, cached_share }: CacheComparison,
): string {
  const from = character === undefined ? place : `character ${character} of ${place}`;
  const change = before === undefined ? '' : `: ${JSON.stringify(before)} became ${JSON.stringify(after)}`;
  const instead = earlier_place === undefined ? change : `, in place of ${earlier_place}`;
  const head = `The prompt differs from that of the call ${seconds_before} s earlier from ${from} on${instead}.`;
  const equal = `The equal beginning is ${percent(equal_share)} of the earlier prompt's text.`;
  if (cached_share === undefined) return `${head} ${equal}`;
  return `${head} ${equal} ${percent(cached_share)} of the input tokens were read from the cache.`;
}

/** Returns the number of input tokens that a call reports to have read from a cache, also if it is 0. */
export function reportedCacheRead(outputs: Fields, metadata: Readonly<Fields> = {}): number | undefined {
  const read = (outputsUsageOf(outputs) ?? usageIn(metadata.usage_metadata))?.details?.cache_read;
  // The details do not contain a count of 0.
  const reported = JSON.stringify([outputs.usage_metadata, outputs.usage, metadata.usage_metadata]);
  return read ?? (/"(cached_tokens|cache_read\w*|cache_creation\w*)":\d/.test(reported) ? 0 : undefined);
}

interface Part {
  readonly place: string;
  readonly text: string;
}

const SYSTEM = 'the system prompt';

/** Maximum number of messages to compare. */
const MESSAGES_MAX = 10_000;

/** Parameters with which the provider adds text to the prompt that the request does not contain. */
const STORED_PROMPTS = ['previous_response_id', 'conversation', 'cachedContent', 'cached_content'];

function partsOf({ inputs, extra = {} }: ModelRequest): Part[] {
  const [only, ...others] = Object.values(fieldsOf(inputs));
  const request = others.length === 0 && isFields(only) ? only : fieldsOf(inputs);
  const parameters = [extra.invocation_params, fieldsOf(extra.metadata).ls_invocation_params].map(fieldsOf);
  const fields: Fields = Object.assign({}, ...parameters, request);
  const list = fields.messages ?? fields.contents ?? fields.input ?? fields.prompt ?? fields.prompts ?? undefined;
  if (list === undefined || STORED_PROMPTS.some((key) => (fields[key] ?? undefined) !== undefined)) return [];
  const system = fields.system ?? fields.instructions ?? fields.systemInstruction ?? fields.system_instruction;
  const given = Array.isArray(list) ? list.flat() : [list];
  // A list of token ids would become one part per token.
  if (given.length > MESSAGES_MAX || !given.every(isMessage)) return [];
  const messages = given.map(messageOf);
  return [...toolsOf(fields), ...(system ? [{ place: SYSTEM, text: flatText(system, 3) }] : []), ...messages];
}

function isMessage(value: unknown): boolean {
  return typeof value === 'string' || isFields(value);
}

function toolsOf({ tools, functions }: Fields): Part[] {
  // Gemini groups tools, and the AI SDK's functions take an object of tools by name.
  const named = isFields(tools) ? Object.entries(tools).map(([name, tool]) => ({ name, ...fieldsOf(tool) })) : [];
  const given = tools ?? functions;
  const list = [...(Array.isArray(given) ? given : []), ...named].flatMap((tool) => {
    const { functionDeclarations, function_declarations } = fieldsOf(tool);
    return functionDeclarations ?? function_declarations ?? tool;
  });
  return list.map((tool, index) => {
    const { name, type, function: inner } = fieldsOf(tool);
    const shown = textOf(fieldsOf(inner).name) ?? textOf(name) ?? textOf(type) ?? textOf(tool) ?? '';
    return { place: `tool ${index + 1} "${shown}"`, text: flatText(tool, 1) };
  });
}

/** Reads a message. LangChain's serialized messages are `{ id, kwargs }` or `{ type, data }`. */
function messageOf(given: unknown, index: number): Part {
  const fields = fieldsOf(given);
  const { kwargs, data, id } = fields;
  const name = isFields(kwargs) ? [id].flat().at(-1) : fields.type;
  const role = textOf(fields.role) ?? textOf(name) ?? 'user';
  const { role: _, type: __, ...content } = [kwargs, data].find(isFields) ?? fields;
  const text = typeof given === 'string' ? given : flatText(content, 3);
  const isSystem = index === 0 && /^(system|developer|SystemMessage)$/.test(role);
  return { place: isSystem ? SYSTEM : `message ${index + 1} (${role})`, text };
}

/** Keys beside the content that are not part of the prompt, or that differ between equal prompts. */
const OMITTED = new Set([
  ...['id', 'status', 'cache_control', 'cachePoint', 'providerOptions', 'provider_options', 'providerMetadata'],
  ...['additional_kwargs', 'response_metadata', 'usage_metadata', 'annotations', 'logprobs'],
]);
const DEPTH_MAX = 64;

/**
 * Returns all values as text, with their keys. Text is the same alone and in a list of content blocks. Omits keys only in
 * the first levels, because objects below are schemas, arguments and results of tools.
 */
function flatText(value: unknown, levels: number): string {
  if (typeof value !== 'object' || value === null) return `${value ?? ''}`;
  if (levels < -DEPTH_MAX) return '';
  if (Array.isArray(value)) return value.map((item) => flatText(item, levels - 1)).join('\n');
  const lines = Object.entries(value).flatMap(([key, item]) => {
    if (item === null || item === undefined || (levels > 0 && OMITTED.has(key))) return [];
    if (key === 'type' && /^(text|input_text|output_text)$/.test(`${item}`)) return [];
    const text = flatText(item, levels - 1);
    return /^(text|content|parts)$/.test(key) ? text : `${key}: ${text}`;
  });
  return lines.join('\n');
}

function lengthOf(parts: readonly Part[]): number {
  return parts.reduce((length, { text }) => length + text.length, 0);
}

/** Number of characters in an excerpt, before and after the first different character. */
const CONTEXT = 12;
const EXCERPT = 40;
const BASE64 = /[\w+/=-]{80}/;

function excerpts(before: string, after: string, at: number): Pick<PromptDifference, 'before' | 'after'> {
  if ([before, after].some((text) => BASE64.test(text.slice(Math.max(0, at - 80), at + 80)))) return {};
  const start = Math.max(0, at - CONTEXT);
  const end = at + EXCERPT;
  const excerpt = (text: string): string =>
    `${start > 0 ? '…' : ''}${text.slice(start, end)}${text.length > end ? '…' : ''}`;
  return { before: excerpt(before), after: excerpt(after) };
}

function percent(share: number): string {
  return `${Math.floor(share * 100)} %`;
}
