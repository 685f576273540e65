import type { CallDescription } from '../instrument/plan.ts';
import type { UsageMetadata } from '../run/record.ts';
import type { Run } from '../run/run.ts';
import { type Fields, fieldsOf } from './fields.ts';

/** What is recorded of a call of `messages.create`: the system prompt is the first of the messages. */
export function describeMessages([params]: readonly unknown[]): CallDescription {
  const { messages, system, ...parameters } = fieldsOf(params);
  const { model, temperature, max_tokens, stop_sequences } = parameters;
  return {
    inputs: { messages: withSystem(messages, system) },
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

/** Tells the run what a message of the service says; it may be one whose stream was left. */
export function recordMessage(run: Run, message: unknown): void {
  const { model, usage } = fieldsOf(message);
  const counts = usageOf(fieldsOf(usage));
  if (typeof model === 'string') run.set({ metadata: { response_model: model } });
  if (counts === undefined) run.set({ outputs: message });
  else run.set({ outputs: { ...fieldsOf(message), usage_metadata: counts }, usage: counts });
}

function withSystem(messages: unknown, system: unknown): unknown {
  if (system === undefined) return messages;
  return [{ role: 'system', content: system }, ...(Array.isArray(messages) ? messages : [])];
}

/** Servers of tools are named with the token that the service is to use there. */
function withoutTokens(parameters: Fields): Fields {
  const { mcp_servers } = parameters;
  if (!Array.isArray(mcp_servers)) return parameters;
  const servers = mcp_servers.map((server) => {
    const { authorization_token, ...rest } = fieldsOf(server);
    return rest;
  });
  return { ...parameters, mcp_servers: servers };
}

/** The service counts cached tokens apart from `input_tokens`; here the counts include them. */
function usageOf(usage: Fields): UsageMetadata | undefined {
  const { input_tokens: uncached, output_tokens: output } = usage;
  const { cache_read_input_tokens: read, cache_creation_input_tokens: created } = usage;
  const { thinking_tokens: reasoning } = fieldsOf(usage.output_tokens_details);
  if (typeof uncached !== 'number' && typeof output !== 'number') return undefined;
  const input = sum([uncached, read, created]);
  return {
    input_tokens: input,
    output_tokens: sum([output]),
    total_tokens: sum([input, output]),
    ...details('input_token_details', { cache_read: read, cache_creation: created }),
    ...details('output_token_details', { reasoning }),
  };
}

function sum(counts: readonly unknown[]): number {
  return counts.reduce<number>((total, count) => total + (typeof count === 'number' ? count : 0), 0);
}

function details(key: 'input_token_details' | 'output_token_details', counts: Fields): UsageMetadata {
  const given = Object.entries(counts).filter((entry): entry is [string, number] => typeof entry[1] === 'number');
  return given.length === 0 ? {} : { [key]: Object.fromEntries(given) };
}
