import { defined, definedOrNone, type Fields, fieldsOf, idTextOf, isFields } from '../../payload/fields.ts';
import { timestampUs } from '../../run/time.ts';
import { anyUsage } from '../../services/any.ts';
import { type Attributes, costValue, countValue, json, jsonFields, text, texts } from './values.ts';
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
    ['langfuse.observation.model.parameters', WHOLE, jsonFields, 'merged'],
  ],
  metadata: [
    ['langfuse.observation.model.name', 'ls_model_name', text],
    ['langfuse.session.id', 'thread_id', idTextOf, 'kept'],
    ['langfuse.user.id', 'user_id', idTextOf],
    ['langfuse.observation.metadata', WHOLE, jsonFields, 'below'],
    ['langfuse.trace.metadata', WHOLE, jsonFields, 'below'],
  ],
  times: [['langfuse.observation.completion_start_time', FIRST_TOKEN_AT, (value) => timestampUs(json(value)), 'kept']],
  tags: [['langfuse.trace.tags', 'tags', (value) => texts(json(value))]],
};

/** Returns the error of an observation. Langfuse reports errors in its level, and not in the span status. */
export function langfuseError(attributes: Attributes): string | undefined {
  if (attributes['langfuse.observation.level'] !== 'ERROR') return undefined;
  return text(attributes['langfuse.observation.status_message']) ?? 'Error';
}

/** Langfuse's own names. It also accepts the names of OpenAI and Anthropic. */
const OWN: ReadonlyMap<string, string> = new Map([
  ['input', 'input_tokens'],
  ['output', 'output_tokens'],
  ['total', 'total_tokens'],
]);

/** Matches Langfuse's own details, for example `input_cached_tokens`. */
const DETAIL = /^(input|output)_(?!tokens(?:_|$))(.+?)(?:_tokens)?$/;

/** Reads counts under the names of a service, and keeps other counts, for example `searches`. */
function usageOf(value: unknown): Fields | undefined {
  const usage: Fields = {};
  const others: Fields = {};
  for (const [name, given] of Object.entries(jsonFields(value) ?? {})) {
    const [, side, kind] = DETAIL.exec(name) ?? [];
    const tokens = isFields(given) ? given : countValue(given);
    const details = `${side}_tokens_details`;
    if (kind !== undefined) usage[details] = { ...fieldsOf(usage[details]), [`${kind}_tokens`]: tokens };
    else usage[OWN.get(name) ?? name] = tokens;
    if (!/token|^(?:input|output|total)/.test(name)) others[name] = tokens;
  }
  return definedOrNone({ ...defined(others), ...anyUsage(withDetails(usage)) });
}

/** Langfuse may count details outside of the input and output. The total then shows it. */
function withDetails(usage: Fields): Fields {
  const sides = ['input', 'output'].map((side) => {
    const details = Object.values(fieldsOf(usage[`${side}_tokens_details`])).map((tokens) => countValue(tokens) ?? 0);
    return details.reduce((sum, tokens) => sum + tokens, countValue(usage[`${side}_tokens`]) ?? 0);
  });
  const [input_tokens = 0, output_tokens = 0] = sides;
  const isOutside = usage.total_tokens === input_tokens + output_tokens;
  return isOutside ? { ...usage, input_tokens, output_tokens } : usage;
}

function costsOf(value: unknown): Fields | undefined {
  const costs = Object.entries(jsonFields(value) ?? {}).map(([name, given]) => [`${name}_cost`, costValue(given)]);
  return definedOrNone(Object.fromEntries(costs));
}
