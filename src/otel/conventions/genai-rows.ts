import { idTextOf } from '../../payload/fields.ts';
import { type Attributes, costValue, countValue, json, number, same, text, texts } from './values.ts';
import { type Rows, SERVICE_TIER, WHOLE } from './vocabulary.ts';

/**
 * The attributes of OpenTelemetry's GenAI conventions that contain one value each. `otel/otlp` writes the first attribute
 * of each key, which is its current name. Deprecated names come after it.
 */
export const genAiUsage: Rows = [
  ['gen_ai.usage.input_tokens', 'input_tokens', countValue],
  ['gen_ai.usage.prompt_tokens', 'input_tokens', countValue],
  ['gen_ai.usage.output_tokens', 'output_tokens', countValue],
  ['gen_ai.usage.completion_tokens', 'output_tokens', countValue],
  ['gen_ai.usage.total_tokens', 'total_tokens', countValue],
  ['gen_ai.usage.cache_read.input_tokens', 'input_token_details.cache_read', countValue],
  ['gen_ai.usage.cache_read_input_tokens', 'input_token_details.cache_read', countValue],
  ['gen_ai.usage.details.cache_read_tokens', 'input_token_details.cache_read', countValue],
  ['gen_ai.usage.cache_write.input_tokens', 'input_token_details.cache_creation', countValue],
  ['gen_ai.usage.cache_creation.input_tokens', 'input_token_details.cache_creation', countValue],
  ['gen_ai.usage.cache_creation_input_tokens', 'input_token_details.cache_creation', countValue],
  ['gen_ai.usage.cache_write_input_tokens', 'input_token_details.cache_creation', countValue],
  ['gen_ai.usage.details.cache_write_tokens', 'input_token_details.cache_creation', countValue],
  [
    'anthropic.usage.cache_creation.ephemeral_5m_input_tokens',
    'input_token_details.ephemeral_5m_input_tokens',
    countValue,
  ],
  [
    'anthropic.usage.cache_creation.ephemeral_1h_input_tokens',
    'input_token_details.ephemeral_1hr_input_tokens',
    countValue,
  ],
  // Mastra's names.
  ['gen_ai.usage.cache_creation.5m_input_tokens', 'input_token_details.ephemeral_5m_input_tokens', countValue],
  ['gen_ai.usage.cache_creation.1h_input_tokens', 'input_token_details.ephemeral_1hr_input_tokens', countValue],
  ['gen_ai.usage.text.input_tokens', 'input_token_details.text', countValue],
  ['gen_ai.usage.image.input_tokens', 'input_token_details.image', countValue],
  ['gen_ai.usage.audio.input_tokens', 'input_token_details.audio', countValue],
  ['gen_ai.usage.audio_input_tokens', 'input_token_details.audio', countValue],
  ['gen_ai.usage.video.input_tokens', 'input_token_details.video', countValue],
  ['gen_ai.usage.text.cache_read.input_tokens', 'input_token_details.text_cache_read', countValue],
  ['gen_ai.usage.image.cache_read.input_tokens', 'input_token_details.image_cache_read', countValue],
  ['gen_ai.usage.audio.cache_read.input_tokens', 'input_token_details.audio_cache_read', countValue],
  ['gen_ai.usage.reasoning.output_tokens', 'output_token_details.reasoning', countValue],
  ['gen_ai.usage.reasoning_tokens', 'output_token_details.reasoning', countValue],
  ['gen_ai.usage.output_tokens.reasoning', 'output_token_details.reasoning', countValue],
  ['gen_ai.usage.details.reasoning_tokens', 'output_token_details.reasoning', countValue],
  ['gen_ai.usage.text.output_tokens', 'output_token_details.text', countValue],
  ['gen_ai.usage.image.output_tokens', 'output_token_details.image', countValue],
  ['gen_ai.usage.audio.output_tokens', 'output_token_details.audio', countValue],
  ['gen_ai.usage.audio_output_tokens', 'output_token_details.audio', countValue],
  ['gen_ai.usage.cost', 'total_cost', costValue],
];

/** Token counts and costs of OpenInference, which `otel/otlp` writes beside those of the GenAI conventions. */
export const openInferenceCounts: Rows = [
  ['llm.token_count.prompt', 'input_tokens', countValue],
  ['llm.token_count.completion', 'output_tokens', countValue],
  ['llm.token_count.total', 'total_tokens', countValue],
  ['llm.token_count.prompt_details.cache_read', 'input_token_details.cache_read', countValue],
  ['llm.token_count.prompt_details.cache_input', 'input_token_details.cache_read', countValue],
  ['llm.token_count.prompt_details.cache_write', 'input_token_details.cache_creation', countValue],
  ['llm.token_count.prompt_details.audio', 'input_token_details.audio', countValue],
  ['llm.token_count.completion_details.reasoning', 'output_token_details.reasoning', countValue],
  ['llm.token_count.completion_details.audio', 'output_token_details.audio', countValue],
  ['llm.cost.prompt', 'input_cost', costValue],
  ['llm.cost.completion', 'output_cost', costValue],
  ['llm.cost.total', 'total_cost', costValue],
];

export const genAiParameters: Rows = [
  ['gen_ai.request.model', 'model', text],
  ['gen_ai.request.temperature', 'temperature', number],
  ['gen_ai.request.max_tokens', 'max_tokens', number],
  ['gen_ai.request.stop_sequences', 'stop', texts],
  ['gen_ai.request.top_p', 'top_p', number],
  ['gen_ai.request.top_k', 'top_k', number],
  ['gen_ai.request.frequency_penalty', 'frequency_penalty', number],
  ['gen_ai.request.presence_penalty', 'presence_penalty', number],
  ['gen_ai.request.seed', 'seed', number],
  ['gen_ai.request.choice.count', 'n', number],
  ['gen_ai.request.encoding_formats', 'encoding_formats', texts],
  ['gen_ai.request.reasoning.level', 'reasoning_effort', text],
  ['gen_ai.request.previous_response.id', 'previous_response_id', text],
  ['gen_ai.request.stream', 'stream', same],
  ['gen_ai.request.stream_cursor', 'stream_cursor', text],
  ['gen_ai.output.type', 'output_type', text],
  ['gen_ai.tool.definitions', 'tools', json],
  ['gen_ai.openai.request', WHOLE, same, 'below'],
  ['openai.request', WHOLE, same, 'below'],
];

export const genAiMetadata: Rows = [
  ['gen_ai.provider.name', 'ls_provider', text],
  ['gen_ai.system', 'ls_provider', text],
  ['gen_ai.request.model', 'ls_model_name', text],
  ['gen_ai.response.model', 'ls_model_name', text],
  ['gen_ai.response.model', 'response_model', text],
  ['gen_ai.conversation.id', 'thread_id', idTextOf, 'kept'],
  ['gen_ai.conversation.compacted', 'conversation_compacted', same],
  ['gen_ai.prompt.name', 'prompt_name', promptName],
  ['gen_ai.prompt.version', 'prompt_version', text],
  ['gen_ai.tool.call.id', 'tool_call_id', text],
  ['gen_ai.response.id', 'response_id', text],
  ['gen_ai.response.status', 'response_status', text],
  ['gen_ai.response.finish_reasons', 'finish_reasons', (value) => texts(reasonsIn(value))],
  ['openai.response.service_tier', SERVICE_TIER, text],
  ['gen_ai.openai.response.service_tier', SERVICE_TIER, text],
];

/** Returns the name of a prompt template. In spans of an MCP client or server, the prompt is part of the inputs. */
function promptName(value: unknown, attributes: Attributes): string | undefined {
  return attributes['mcp.method.name'] === undefined ? text(value) : undefined;
}

/** Returns finish reasons. Mastra sets a list that contains the actual list as JSON text. */
export function reasonsIn(value: unknown): unknown[] {
  return [value].flat().flatMap(json);
}
