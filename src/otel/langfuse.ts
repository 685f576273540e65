import { type Attributes, count, type Fields, isEmpty, json, jsonObject, text, texts } from './values.ts';
import { type Kind, type Vocabulary, WHOLE } from './vocabulary.ts';

const TYPE = 'langfuse.observation.type';

const TYPES: ReadonlyMap<unknown, Kind> = new Map<unknown, Kind>([
  ['span', { runType: 'chain' }],
  ['event', { runType: 'chain' }],
  ['agent', { runType: 'chain' }],
  ['chain', { runType: 'chain' }],
  ['evaluator', { runType: 'chain' }],
  ['guardrail', { runType: 'chain' }],
  ['generation', { runType: 'llm' }],
  ['embedding', { runType: 'embedding' }],
  ['tool', { runType: 'tool' }],
  ['retriever', { runType: 'retriever' }],
]);

/**
 * The attributes of Langfuse's own SDK, and of those who write for it:
 * https://langfuse.com/integrations/native/opentelemetry#property-mapping
 */
export const langfuse: Vocabulary = {
  name: 'langfuse',
  roots: ['langfuse'],
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
  tags: [['langfuse.trace.tags', 'tags', (value) => texts(json(value))]],
};

/** An error is a level of the observation; the span's own status says nothing of it. */
export function langfuseError(attributes: Attributes): string | undefined {
  if (attributes['langfuse.observation.level'] !== 'ERROR') return undefined;
  return text(attributes['langfuse.observation.status_message']) ?? 'Error';
}

/** What counts are called that go by several names; kinds of tokens have the side in front: `input_cached_tokens`. */
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

const DETAIL = /^(input|output)_(.+?)(?:_tokens)?$/;

const DETAILS: ReadonlyMap<string, string> = new Map([['cached', 'cache_read']]);

function usageOf(value: unknown): Fields | undefined {
  const usage: Fields = {};
  const details = { input: {} as Fields, output: {} as Fields };
  for (const [name, given] of Object.entries(jsonObject(value) ?? {})) {
    const tokens = count(given);
    if (tokens === undefined) continue;
    const total = COUNTS.get(name);
    const [, side, kind] = DETAIL.exec(name) ?? [];
    if (total !== undefined) usage[total] = tokens;
    else if (kind === undefined) usage[name] = tokens;
    else details[side as 'input' | 'output'][DETAILS.get(kind) ?? kind] = tokens;
  }
  if (!isEmpty(details.input)) usage.input_token_details = details.input;
  if (!isEmpty(details.output)) usage.output_token_details = details.output;
  return isEmpty(usage) ? undefined : usage;
}

function costsOf(value: unknown): Fields | undefined {
  const costs: Fields = {};
  for (const [name, cost] of Object.entries(jsonObject(value) ?? {})) {
    const amount = count(cost);
    if (amount !== undefined) costs[`${name}_cost`] = amount;
  }
  return isEmpty(costs) ? undefined : costs;
}
