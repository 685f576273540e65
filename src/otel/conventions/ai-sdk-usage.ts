import { type Fields, fieldsOf } from '../../payload/fields.ts';
import { aiSdkTier, aiSdkUsage as readUsage } from '../../services/ai-sdk.ts';
import { type Attributes, count, jsonObject, type Read } from './values.ts';
import { type Row, type Rows, SERVICE_TIER } from './vocabulary.ts';

const PREFIX = 'ai.usage.';
const PROVIDER_METADATA = 'ai.response.providerMetadata';

/** The token counts of the AI SDK. For generated objects, version 5 still uses the names of version 4. */
export const aiSdkUsage: Rows = [
  row('inputTokens', 'input_tokens'),
  row('promptTokens', 'input_tokens'),
  ['ai.usage.tokens', 'input_tokens', count],
  ['ai.usage.tokens', 'total_tokens', count],
  ['ai.usage.input_tokens', 'input_tokens', count],
  row('outputTokens', 'output_tokens'),
  row('completionTokens', 'output_tokens'),
  ['ai.usage.output_tokens', 'output_tokens', count],
  row('totalTokens', 'total_tokens'),
  ['ai.usage.total_tokens', 'total_tokens', count],
  row('inputTokenDetails.cacheReadTokens', 'input_token_details.cache_read'),
  row('cachedInputTokens', 'input_token_details.cache_read', 'repeats'),
  row('inputTokenDetails.cacheWriteTokens', 'input_token_details.cache_creation'),
  row('outputTokenDetails.reasoningTokens', 'output_token_details.reasoning'),
  row('reasoningTokens', 'output_token_details.reasoning', 'repeats'),
  ...['cache_read', 'cache_creation', 'ephemeral_5m_input_tokens', 'ephemeral_1hr_input_tokens'].map((name) =>
    ofMetadata(`input_token_details.${name}`),
  ),
  ofMetadata('output_token_details.reasoning'),
  ofMetadata('total_cost'),
];

export const aiSdkServiceTier: Row = [
  PROVIDER_METADATA,
  SERVICE_TIER,
  (_, attributes) => aiSdkTier(providersOf(attributes)),
  'kept',
];

function row(name: string, key: string, ...mode: ['repeats'?]): Row {
  return [PREFIX + name, key, read(key), ...mode] as Row;
}

function ofMetadata(key: string): Row {
  return [PROVIDER_METADATA, key, read(key), 'kept'];
}

/** Returns a function that reads a part of the usage. Only the provider metadata may change what an attribute says. */
function read(key: string): Read {
  return (value, attributes) => {
    if (attributes[PROVIDER_METADATA] === undefined) return count(value);
    // The mapping splits the counts of a tier.
    const usage: unknown = readUsage(countsOf(attributes), providersOf(attributes), 'default');
    return key.split('.').reduce((part, name) => fieldsOf(part)[name], usage);
  };
}

function countsOf(attributes: Attributes): Fields {
  const own = Object.entries(attributes).filter(([name]) => name.startsWith(PREFIX));
  return Object.fromEntries(own.map(([name, value]) => [name.slice(PREFIX.length), count(value)]));
}

/** The last parsed text, cached because several table rows read the same long text. */
let latest: { readonly source: unknown; readonly providers: Fields } | undefined;

function providersOf(attributes: Attributes): Fields {
  const source = attributes[PROVIDER_METADATA];
  if (latest?.source !== source) latest = { source, providers: jsonObject(source) ?? {} };
  return latest?.providers ?? {};
}
