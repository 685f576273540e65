import type { CallDescription } from '../instrument/plan.ts';
import type { UsageMetadata } from '../run/record.ts';
import { completeUsage } from '../run/run-fields.ts';
import { type Answer, readerOf } from './answer.ts';
import { withDataUris } from './anthropic-media.ts';
import { MessageFold } from './anthropic-message-fold.ts';
import { defined, type Fields, fieldsOf, listOf, numberOf, textOf, without } from './fields.ts';
import type { TracedMethod } from './sdk-client.ts';

export const messagesMethod: Omit<TracedMethod, 'path'> = {
  name: 'anthropic.messages',
  runType: 'llm',
  describe: describeMessages,
  reader: readerOf(messageAnswer, () => new MessageFold(messageAnswer)),
};

/** The system prompt is the first of the messages. */
function describeMessages(body: unknown): CallDescription {
  const { messages, system, ...parameters } = fieldsOf(body);
  const { model, temperature, max_tokens, stop_sequences } = parameters;
  return {
    inputs: { messages: withSystem(withDataUris(messages), system) },
    metadata: {
      ls_provider: 'anthropic',
      ls_model_type: 'chat',
      ls_model_name: model,
      ls_temperature: temperature,
      ls_max_tokens: max_tokens,
      ls_stop: stop_sequences,
      ls_invocation_params: withoutTokens(parameters),
    },
  };
}

/** The message may be one whose stream was left. */
function messageAnswer(message: Fields): Answer {
  return { outputs: message, model: textOf(message.model), usage: usageOf(fieldsOf(message.usage)) };
}

function withSystem(messages: unknown, system: unknown): unknown {
  if (system === undefined) return messages;
  return [{ role: 'system', content: system }, ...(Array.isArray(messages) ? messages : [])];
}

const SECRETS_OF_SERVERS = new Set(['authorization_token']);

/** Servers of tools are named with the token that the service is to use there. */
function withoutTokens(parameters: Fields): Fields {
  const { mcp_servers } = parameters;
  if (!Array.isArray(mcp_servers)) return parameters;
  return { ...parameters, mcp_servers: mcp_servers.map((server) => without(fieldsOf(server), SECRETS_OF_SERVERS)) };
}

/**
 * The service counts cached tokens apart from `input_tokens`; here the counts include them. What it took to shorten a
 * conversation on the way (compaction) is told in `iterations`, and is in none of its sums. Entries of other models are left
 * out: they have other prices.
 */
function usageOf(usage: Fields): UsageMetadata | undefined {
  if (numberOf(usage.input_tokens) === undefined && numberOf(usage.output_tokens) === undefined) return undefined;
  const compactions = listOf(usage.iterations)
    .map(fieldsOf)
    .filter(({ type }) => type === 'compaction');
  const all = [usage, ...compactions];
  const sum = (key: string): number | undefined => sumOf(all.map((counts) => numberOf(counts[key])));
  const written = (key: string): number | undefined =>
    sumOf(all.map((counts) => numberOf(fieldsOf(counts.cache_creation)[key])));
  const read = sum('cache_read_input_tokens');
  const created = sum('cache_creation_input_tokens');
  const input = (sum('input_tokens') ?? 0) + (read ?? 0) + (created ?? 0);
  const output = sum('output_tokens') ?? 0;
  const found = defined({
    input_tokens: input,
    output_tokens: output,
    input_token_details: defined({
      cache_read: read,
      cache_creation: created,
      ephemeral_5m_input_tokens: written('ephemeral_5m_input_tokens'),
      ephemeral_1hr_input_tokens: written('ephemeral_1h_input_tokens'),
    }),
    output_token_details: defined({ reasoning: numberOf(fieldsOf(usage.output_tokens_details).thinking_tokens) }),
  }) as UsageMetadata;
  return completeUsage(found);
}

/** Undefined where there is nothing to add. */
function sumOf(counts: readonly (number | undefined)[]): number | undefined {
  return counts.reduce((sum, count) => (count === undefined ? sum : (sum ?? 0) + count), undefined);
}
