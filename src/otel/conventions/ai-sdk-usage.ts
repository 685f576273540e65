import { type Attributes, count, type Fields, isObject, jsonObject, type Read, text } from './values.ts';
import { type Row, type Rows, SERVICE_TIER } from './vocabulary.ts';

const PROVIDER_METADATA = 'ai.response.providerMetadata';

/**
 * Tokens, of which each version has names of its own: `promptTokens` and `completionTokens` in 4, and for objects until 6,
 * `inputTokens` and `outputTokens` from 5 on, their details from 6 on. Before that, some stand in what the provider says.
 */
export const aiSdkUsage: Rows = [
  ['ai.usage.inputTokens', 'input_tokens', withCached],
  ['ai.usage.promptTokens', 'input_tokens', withCached],
  ['ai.usage.tokens', 'input_tokens', count],
  ['ai.usage.input_tokens', 'input_tokens', count],
  ['ai.usage.outputTokens', 'output_tokens', count],
  ['ai.usage.completionTokens', 'output_tokens', count],
  ['ai.usage.output_tokens', 'output_tokens', count],
  ['ai.usage.totalTokens', 'total_tokens', withCached],
  ['ai.usage.total_tokens', 'total_tokens', count],
  ['ai.usage.inputTokenDetails.cacheReadTokens', 'input_token_details.cache_read', count],
  ['ai.usage.cachedInputTokens', 'input_token_details.cache_read', count, 'repeats'],
  [PROVIDER_METADATA, 'input_token_details.cache_read', cacheRead, 'kept'],
  ['ai.usage.inputTokenDetails.cacheWriteTokens', 'input_token_details.cache_creation', count],
  [PROVIDER_METADATA, 'input_token_details.cache_creation', cacheWritten, 'kept'],
  [PROVIDER_METADATA, 'input_token_details.ephemeral_5m_input_tokens', writtenFor('ephemeral_5m_input_tokens'), 'kept'],
  [
    PROVIDER_METADATA,
    'input_token_details.ephemeral_1hr_input_tokens',
    writtenFor('ephemeral_1h_input_tokens'),
    'kept',
  ],
  ['ai.usage.outputTokenDetails.reasoningTokens', 'output_token_details.reasoning', count],
  ['ai.usage.reasoningTokens', 'output_token_details.reasoning', count, 'repeats'],
  [PROVIDER_METADATA, 'output_token_details.reasoning', reasoning, 'kept'],
];

export const aiSdkServiceTier: Row = [
  PROVIDER_METADATA,
  SERVICE_TIER,
  (_, attributes) => text(providersOf(attributes).openai.serviceTier),
  'kept',
];

/** Anthropic counts the tokens of its cache apart. Since 6 the SDK adds them up; before that they are added here. */
function withCached(value: unknown, attributes: Attributes): number | undefined {
  const told = count(value);
  const { anthropic } = providersOf(attributes);
  if (told === undefined || count(anthropic.cacheCreationInputTokens) === undefined) return told;
  if (attributes['ai.usage.inputTokenDetails.noCacheTokens'] !== undefined) return told;
  const { input_tokens: own } = fieldsOf(anthropic.usage);
  const input = count(attributes['ai.usage.inputTokens'] ?? attributes['ai.usage.promptTokens']);
  if (own !== undefined && own !== input) return told;
  const read = cacheRead(undefined, attributes) ?? count(attributes['ai.usage.cachedInputTokens']);
  return told + (read ?? 0) + (cacheWritten(undefined, attributes) ?? 0);
}

function cacheRead(_: unknown, attributes: Attributes): number | undefined {
  const { openai, anthropic } = providersOf(attributes);
  const { cache_read_input_tokens: told } = fieldsOf(anthropic.usage);
  return count(openai.cachedPromptTokens) ?? count(anthropic.cacheReadInputTokens) ?? count(told);
}

function cacheWritten(_: unknown, attributes: Attributes): number | undefined {
  return count(providersOf(attributes).anthropic.cacheCreationInputTokens);
}

function writtenFor(duration: string): Read {
  return (_, attributes) => {
    const { cache_creation: written } = fieldsOf(providersOf(attributes).anthropic.usage);
    return count(fieldsOf(written)[duration]);
  };
}

function reasoning(_: unknown, attributes: Attributes): number | undefined {
  return count(providersOf(attributes).openai.reasoningTokens);
}

interface Providers {
  readonly openai: Fields;
  readonly anthropic: Fields;
}

const known = new WeakMap<Attributes, Providers>();

/** What the provider says beside the answer, which may be long: parsed once for a span. */
function providersOf(attributes: Attributes): Providers {
  let providers = known.get(attributes);
  if (providers === undefined) {
    const { openai, anthropic } = jsonObject(attributes[PROVIDER_METADATA]) ?? {};
    providers = { openai: fieldsOf(openai), anthropic: fieldsOf(anthropic) };
    known.set(attributes, providers);
  }
  return providers;
}

function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}
