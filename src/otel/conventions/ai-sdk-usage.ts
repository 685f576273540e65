import { type Fields, fieldsOf } from '../../payload/fields.ts';
import { aiSdkTier, aiSdkUsage as readUsage } from '../../services/ai-sdk/usage.ts';
import { type Attributes, countValue, jsonFields, type Read } from './values.ts';
import { type Row, type Rows, SERVICE_TIER } from './vocabulary.ts';

const PREFIX = 'ai.usage.';
const PROVIDER_METADATA = 'ai.response.providerMetadata';

/** Names of the AI SDK for each count. For generated objects, version 5 still uses the names of version 4. */
const COUNTS: Readonly<Record<string, readonly string[]>> = {
  input_tokens: ['inputTokens', 'promptTokens', 'tokens', 'input_tokens'],
  total_tokens: ['tokens', 'totalTokens', 'total_tokens'],
  output_tokens: ['outputTokens', 'completionTokens', 'output_tokens'],
  'input_token_details.cache_read': ['inputTokenDetails.cacheReadTokens', 'cachedInputTokens'],
  'input_token_details.cache_creation': ['inputTokenDetails.cacheWriteTokens'],
  'output_token_details.reasoning': ['outputTokenDetails.reasoningTokens', 'reasoningTokens'],
};

/** Counts that only the provider metadata may contain. */
const OF_METADATA: readonly string[] = [
  ...['cache_read', 'cache_creation', 'ephemeral_5m_input_tokens', 'ephemeral_1hr_input_tokens'].map(
    (name) => `input_token_details.${name}`,
  ),
  ...['output_token_details.reasoning', 'total_cost'],
];

export const aiSdkUsage: Rows = [
  ...Object.entries(COUNTS).flatMap(([key, names]) =>
    names.map((name): Row => [PREFIX + name, key, read(key), 'repeats']),
  ),
  ...OF_METADATA.map((key): Row => [PROVIDER_METADATA, key, read(key), 'kept']),
];

export const aiSdkServiceTier: Row = [
  PROVIDER_METADATA,
  SERVICE_TIER,
  (_, attributes) => aiSdkTier(providersOf(attributes)),
  'kept',
];

/** Returns a function that reads a part of the usage. Only the provider metadata may change what an attribute says. */
function read(key: string): Read {
  return (value, attributes) => {
    if (attributes[PROVIDER_METADATA] === undefined) return countValue(value);
    // The metadata of a function with several steps is that of its last call.
    if (key === 'total_cost' && !/\.do[A-Z]/.test(`${attributes['ai.operationId']}`)) return undefined;
    // The mapping splits the counts of a tier.
    const usage: unknown = readUsage(countsOf(attributes), providersOf(attributes), 'default');
    return key.split('.').reduce((part, name) => fieldsOf(part)[name], usage);
  };
}

function countsOf(attributes: Attributes): Fields {
  const own = Object.entries(attributes).filter(([name]) => name.startsWith(PREFIX));
  return Object.fromEntries(own.map(([name, value]) => [name.slice(PREFIX.length), countValue(value)]));
}

/** The last parsed text, cached because several table rows read the same long text. */
let latest: { readonly source: unknown; readonly providers: Fields } | undefined;

function providersOf(attributes: Attributes): Fields {
  const source = attributes[PROVIDER_METADATA];
  if (latest?.source !== source) latest = { source, providers: jsonFields(source) ?? {} };
  return latest?.providers ?? {};
}
