import { type Fields, isFields } from '../../payload/fields.ts';
import { timestampUs } from '../../run/time.ts';
import { type Attributes, cost, count, isEmpty, json, jsonObject, text, texts } from './values.ts';
import { FIRST_TOKEN_AT, type Kind, kindsOf, type Vocabulary, WHOLE } from './vocabulary.ts';

const TYPE = 'langfuse.observation.type';

const TYPES: ReadonlyMap<unknown, Kind> = new Map<unknown, Kind>(
  kindsOf({
    chain: ['span', 'event', 'agent', 'chain', 'evaluator', 'guardrail'],
    llm: ['generation'],
    embedding: ['embedding'],
    tool: ['tool'],
    retriever: ['retriever'],
  }),
);

/** Attributes that Langfuse's SDK sets: https://langfuse.com/integrations/native/opentelemetry#property-mapping */
export const langfuse: Vocabulary = {
  name: 'langfuse',
  namespaces: ['langfuse'],
  kindOf: (attributes) => TYPES.get(attributes[TYPE]) ?? {},
  inputs: [
    ['langfuse.observation.input', WHOLE, json],
    ['langfuse.trace.input', WHOLE, json],
  ],
  outputs: [
    ['langfuse.observation.output', WHOLE, json],
    ['langfuse.trace.output', WHOLE, json],
  ],
  usage: [
    ['langfuse.observation.usage_details', WHOLE, usageOf, 'merged'],
    ['langfuse.observation.cost_details', WHOLE, costsOf, 'merged'],
  ],
  parameters: [
    ['langfuse.observation.model.name', 'model', text],
    ['langfuse.observation.model.parameters', WHOLE, jsonObject, 'merged'],
  ],
  metadata: [
    ['langfuse.observation.model.name', 'ls_model_name', text],
    ['langfuse.session.id', 'thread_id', text, 'kept'],
    ['langfuse.user.id', 'user_id', text],
    ['langfuse.observation.metadata', WHOLE, jsonObject, 'below'],
    ['langfuse.trace.metadata', WHOLE, jsonObject, 'below'],
  ],
  times: [['langfuse.observation.completion_start_time', FIRST_TOKEN_AT, (value) => timestampUs(json(value)), 'kept']],
  tags: [['langfuse.trace.tags', 'tags', (value) => texts(json(value))]],
};

/**
 * Returns the error of a Langfuse observation. Langfuse reports errors in the observation level, not in the span
 * status.
 */
export function langfuseError(attributes: Attributes): string | undefined {
  if (attributes['langfuse.observation.level'] !== 'ERROR') return undefined;
  return text(attributes['langfuse.observation.status_message']) ?? 'Error';
}

/** Maps Langfuse's names for token counts to usage fields. */
const COUNTS: ReadonlyMap<string, string> = new Map([
  ['input', 'input_tokens'],
  ['input_tokens', 'input_tokens'],
  ['prompt_tokens', 'input_tokens'],
  ['output', 'output_tokens'],
  ['output_tokens', 'output_tokens'],
  ['completion_tokens', 'output_tokens'],
  ['total', 'total_tokens'],
  ['total_tokens', 'total_tokens'],
]);

/** Objects in which OpenAI nests input or output token details. */
const NESTED: ReadonlyMap<string, 'input' | 'output'> = new Map([
  ['input_tokens_details', 'input'],
  ['prompt_tokens_details', 'input'],
  ['output_tokens_details', 'output'],
  ['completion_tokens_details', 'output'],
]);

/** Anthropic's names for token counts that `input_tokens` excludes. */
const BESIDE_INPUT: ReadonlyMap<string, string> = new Map([
  ['cache_read_input_tokens', 'cache_read'],
  ['cache_creation_input_tokens', 'cache_creation'],
]);

/** Matches detail counts with the prefix `input_` or `output_`, for example `input_cached_tokens`. */
const DETAIL = /^(input|output)_(.+?)(?:_tokens)?$/;

const DETAILS: ReadonlyMap<string, string> = new Map([['cached', 'cache_read']]);

function usageOf(value: unknown): Fields | undefined {
  const usage: Record<string, number> = {};
  const details = { input: {} as Record<string, number>, output: {} as Record<string, number> };
  let isBeside = false;
  for (const [name, given] of Object.entries(jsonObject(value) ?? {})) {
    const nested = NESTED.get(name);
    if (nested !== undefined && isFields(given)) addDetails(details[nested], given);
    const tokens = count(given);
    if (tokens === undefined) continue;
    const total = COUNTS.get(name);
    const beside = BESIDE_INPUT.get(name);
    const [, side, kind] = DETAIL.exec(name) ?? [];
    if (total !== undefined) usage[total] = tokens;
    else if (beside !== undefined) details.input[beside] = tokens;
    else if (kind === undefined) usage[name] = tokens;
    else details[side as 'input' | 'output'][DETAILS.get(kind) ?? kind] = tokens;
    isBeside ||= beside !== undefined;
  }
  includeDetails(usage, details, isBeside);
  const { input, output } = details;
  const all: Fields = { ...usage };
  if (!isEmpty(input)) all.input_token_details = input;
  if (!isEmpty(output)) all.output_token_details = output;
  return isEmpty(all) ? undefined : all;
}

function addDetails(to: Record<string, number>, given: Fields): void {
  for (const [name, item] of Object.entries(given)) {
    const tokens = count(item);
    const kind = name.replace(/_tokens$/, '');
    if (tokens !== undefined) to[DETAILS.get(kind) ?? kind] = tokens;
  }
}

/**
 * Adds detail counts, such as cached tokens, to the input and output counts unless they are already included. In
 * Langfuse's OpenAI wrapper, details are excluded if the total equals the sum of all counts. In Anthropic's input
 * count, details are excluded unless the total equals input plus output.
 */
function includeDetails(
  usage: Record<string, number>,
  details: Readonly<Record<'input' | 'output', Record<string, number>>>,
  isBeside: boolean,
): void {
  const { input_tokens: input = 0, output_tokens: output = 0, total_tokens: total } = usage;
  const ofInput = sumOf(details.input);
  const ofOutput = sumOf(details.output);
  const isWithout = total === input + output + ofInput + ofOutput;
  if (total === input + output || (!isWithout && !isBeside)) return;
  usage.input_tokens = input + ofInput;
  if (isWithout) usage.output_tokens = output + ofOutput;
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, tokens) => sum + tokens, 0);
}

function costsOf(value: unknown): Fields | undefined {
  const costs: Fields = {};
  for (const [name, given] of Object.entries(jsonObject(value) ?? {})) {
    const amount = cost(given);
    if (amount !== undefined) costs[`${name}_cost`] = amount;
  }
  return isEmpty(costs) ? undefined : costs;
}
