import { definedOrNone, type Fields, fieldsOf, isFields, without } from '../../../payload/fields.ts';
import { type CallPayloads, parametersOf, toolsOf } from '../../../services/call-settings.ts';
import { asText } from '../../../services/chat.ts';
import { messagesOfInputs } from '../../../services/conversation.ts';
import type { Message, Part as MessagePart } from '../../../services/message.ts';
import { outputsUsageOf, usageIn } from '../cost/usage.ts';
import type { CacheComparison, PromptDifference } from '../run-view.ts';

/** The number of characters with which two prompts begin. The difference is absent if one is the beginning of the other. */
export interface CommonPrefix {
  readonly length: number;
  readonly difference?: PromptDifference;
}

/**
 * Compares two prompts in the order in which providers cache them: tools, system prompt, messages. Returns undefined if a
 * prompt is not completely recorded.
 */
export function commonPrefix(earlier: CallPayloads, later: CallPayloads): CommonPrefix | undefined {
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

/** Parameters with which the provider adds text to the prompt that the request does not contain. */
const STORED_PROMPTS = ['previous_response_id', 'conversation', 'cachedContent', 'cached_content'];

/** Keys of tools and blocks that are not part of the prompt, or that differ between equal prompts. */
const OMITTED: ReadonlySet<string> = new Set(
  'id status cache_control cachePoint providerOptions provider_options providerMetadata'.split(' '),
);

function partsOf({ inputs: given, extra }: CallPayloads): Part[] {
  // The argument of a traced function may be the request.
  const [only, ...others] = Object.values(fieldsOf(given));
  const request = others.length === 0 && isFields(only) ? only : fieldsOf(given);
  const parameters = parametersOf({ inputs: request, extra });
  const inputs = { ...parameters, ...request };
  const messages = messagesOfInputs(inputs) ?? [];
  // A function with a question as its argument builds a prompt that is not recorded.
  const { question, query } = inputs;
  const isIncomplete = (question ?? query ?? STORED_PROMPTS.find((key) => key in parameters)) !== undefined;
  if (messages.length === 0 || isIncomplete) return [];
  const tools = toolsOf(parameters).map(({ name, description, parameters: schema }, index) => ({
    place: `tool ${index + 1} "${name}"`,
    text: linesOf([name, description, withoutOmitted(schema)]),
  }));
  return [...tools, ...messages.map(messagePart)];
}

function messagePart({ role, name, parts }: Message, index: number): Part {
  const place = index === 0 && role === 'system' ? SYSTEM : `message ${index + 1} (${role})`;
  return { place, text: linesOf([name, ...parts.flatMap(valuesOf)]) };
}

/** Returns the values of a part that a prompt contains. The result of a call repeats the id of the call. */
function valuesOf(part: MessagePart): unknown[] {
  if (part.kind === 'media') return [part.source];
  if (part.kind === 'call') return [part.name, part.input];
  if (part.kind === 'result') return [part.id, part.value];
  return [part.kind === 'other' ? withoutOmitted(part.value) : part.text];
}

/** Returns undefined if nothing is left. Keys below the first level may be those of schemas and arguments. */
function withoutOmitted(value: unknown): unknown {
  return isFields(value) ? definedOrNone(without(value, OMITTED)) : value;
}

/** Values that are too deep for JSON are left out. */
function linesOf(values: readonly unknown[]): string {
  const texts = values.map(asText).filter((text) => typeof text === 'string');
  return texts.join('\n');
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
