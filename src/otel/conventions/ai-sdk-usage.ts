import { type Fields, fieldsOf } from '../../payload/fields.ts';
import { type Attributes, count, jsonObject, type Read, text } from './values.ts';
import { type Row, type Rows, SERVICE_TIER } from './vocabulary.ts';

const PROVIDER_METADATA = 'ai.response.providerMetadata';

/**
 * The token counts of the AI SDK. Version 4 uses `promptTokens` and `completionTokens`. Version 5 introduced
 * `inputTokens` and `outputTokens`, but for generated objects only version 7 uses these names. Version 6 introduced
 * token details. Earlier versions report some details only in the provider metadata.
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

/**
 * Returns a token count that includes cached tokens. Anthropic's counts exclude cached tokens. AI SDK 6 and later add
 * cached tokens, so this function adds them only for earlier versions.
 */
function withCached(value: unknown, attributes: Attributes): number | undefined {
  const given = count(value);
  const { anthropic } = providersOf(attributes);
  if (given === undefined || count(anthropic.cacheCreationInputTokens) === undefined) return given;
  if (attributes['ai.usage.inputTokenDetails.noCacheTokens'] !== undefined) return given;
  const { input_tokens: own } = fieldsOf(anthropic.usage);
  const input = count(attributes['ai.usage.inputTokens'] ?? attributes['ai.usage.promptTokens']);
  if (own !== undefined && own !== input) return given;
  const read = cacheRead(undefined, attributes) ?? count(attributes['ai.usage.cachedInputTokens']);
  return given + (read ?? 0) + (cacheWritten(undefined, attributes) ?? 0);
}

function cacheRead(_: unknown, attributes: Attributes): number | undefined {
  const { openai, anthropic } = providersOf(attributes);
  const { cache_read_input_tokens: given } = fieldsOf(anthropic.usage);
  return count(openai.cachedPromptTokens) ?? count(anthropic.cacheReadInputTokens) ?? count(given);
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

/** The last parsed text, cached because several table rows read the same long text. */
let latest: { readonly source: unknown; readonly providers: Providers } | undefined;

function providersOf(attributes: Attributes): Providers {
  const source = attributes[PROVIDER_METADATA];
  if (latest === undefined || latest.source !== source) {
    const { openai, anthropic } = jsonObject(source) ?? {};
    latest = { source, providers: { openai: fieldsOf(openai), anthropic: fieldsOf(anthropic) } };
  }
  return latest.providers;
}
