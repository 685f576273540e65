import { type Fields, fieldsOf, listOf } from '../../payload/fields.ts';
import type { UsageMetadata } from '../../payload/usage.ts';
import { readUsage, type UsagePaths } from '../usage.ts';

/**
 * The token counts of OpenAI and of services with its format. Chat completions, completions and embeddings report prompt
 * and completion tokens. Responses and images report input and output tokens. Embeddings report no output tokens.
 *
 * DeepSeek: https://api-docs.deepseek.com/guides/kv_cache · Qwen: https://www.alibabacloud.com/help/model-studio/context-cache
 * The names of Moonshot (`cached_tokens`), LiteLLM (`cache_creation_tokens`) and Perplexity (`reasoning_tokens`), and xAI's
 * reasoning outside of its completion tokens, rest on reports of users. Mistral's conversations report tokens that their tools
 * put into the prompt: https://docs.mistral.ai/agents/connectors/websearch
 */
const USAGE: UsagePaths = {
  input_tokens: ['input_tokens', 'prompt_tokens'],
  output_tokens: ['output_tokens', 'completion_tokens'],
  total_tokens: ['total_tokens'],
  outside: ['tool_use'],
  input_token_details: {
    cache_read: [
      'input.cached_tokens',
      'input.cache_read_tokens',
      'cache_read_input_tokens',
      'cached_tokens',
      'prompt_cache_hit_tokens',
    ],
    cache_creation: [
      ...['input.cache_write_tokens', 'input.cache_creation_tokens', 'input.cache_creation_input_tokens'],
      'cache_creation_input_tokens',
    ],
    ephemeral_5m_input_tokens: ['input.cache_creation.ephemeral_5m_input_tokens'],
    ephemeral_1hr_input_tokens: ['input.cache_creation.ephemeral_1h_input_tokens'],
    audio: ['input.audio_tokens'],
    image: ['input.image_tokens'],
    video: ['input.video_tokens'],
    text: ['input.text_tokens'],
    tool_use: ['connector_tokens'],
  },
  output_token_details: {
    reasoning: ['output.reasoning_tokens', 'reasoning_tokens'],
    audio: ['output.audio_tokens'],
    image: ['output.image_tokens'],
    text: ['output.text_tokens'],
    accepted_prediction: ['output.accepted_prediction_tokens'],
    rejected_prediction: ['output.rejected_prediction_tokens'],
  },
};

/**
 * Reads the usage of a response. Groq reports the tokens of a stream in `x_groq`. According to a report of a user,
 * Moonshot does so in the last choice.
 */
export function openaiUsage(answer: Fields): UsageMetadata | undefined {
  const ofChoice = listOf(answer.choices).map((choice) => fieldsOf(choice).usage);
  const usage = answer.usage ?? fieldsOf(answer.x_groq).usage ?? ofChoice.find((one) => one !== undefined);
  return openaiCounts(usage, answer.service_tier);
}

export function openaiCounts(given: unknown, serviceTier?: unknown): UsageMetadata | undefined {
  const usage = fieldsOf(given);
  const input = usage.input_tokens_details ?? usage.prompt_tokens_details;
  const output = usage.output_tokens_details ?? usage.completion_tokens_details;
  return readUsage({ ...usage, input, output }, USAGE, serviceTier);
}
