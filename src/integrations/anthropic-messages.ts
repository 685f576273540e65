import type { CallDescription } from '../instrument/plan.ts';
import type { UsageMetadata } from '../run/record.ts';
import { type Answer, otherAnswer } from './answer.ts';
import { withDataUris } from './anthropic-media.ts';
import { MessageFold } from './anthropic-message-fold.ts';
import { defined, type Fields, fieldsOf, isFields, numberOf, textOf, without } from './fields.ts';
import type { TracedMethod } from './sdk-client.ts';

export const messagesMethod: Omit<TracedMethod, 'path'> = {
  name: 'anthropic.messages',
  runType: 'llm',
  describe: describeMessages,
  reader: {
    read: (value) => (isFields(value) ? messageAnswer(value) : otherAnswer(value)),
    fold: () => new MessageFold(messageAnswer),
  },
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

/** The service counts cached tokens apart from `input_tokens`; here the counts include them. */
function usageOf(usage: Fields): UsageMetadata | undefined {
  const uncached = numberOf(usage.input_tokens);
  const output = numberOf(usage.output_tokens);
  const read = numberOf(usage.cache_read_input_tokens);
  const created = numberOf(usage.cache_creation_input_tokens);
  if (uncached === undefined && output === undefined) return undefined;
  const input = (uncached ?? 0) + (read ?? 0) + (created ?? 0);
  return defined({
    input_tokens: input,
    output_tokens: output ?? 0,
    total_tokens: input + (output ?? 0),
    input_token_details: defined({ cache_read: read, cache_creation: created }),
    output_token_details: defined({ reasoning: numberOf(fieldsOf(usage.output_tokens_details).thinking_tokens) }),
  }) as UsageMetadata;
}
