import { type Fields, fieldsOf, listOf, textOf } from '../../payload/fields.ts';
import type { UsageMetadata } from '../../payload/usage.ts';
import { readUsage, type UsagePaths } from '../usage.ts';

/**
 * `candidatesTokenCount` excludes thoughts, and `promptTokenCount` excludes the results of built-in tools:
 * https://ai.google.dev/api/generate-content#UsageMetadata
 */
const USAGE: UsagePaths = {
  input_tokens: ['promptTokenCount'],
  output_tokens: ['candidatesTokenCount'],
  total_tokens: ['totalTokenCount'],
  outside: ['reasoning', 'tool_use'],
  input_token_details: {
    cache_read: ['cachedContentTokenCount'],
    tool_use: ['toolUsePromptTokenCount'],
    text: ['inputs.TEXT'],
    image: ['inputs.IMAGE'],
    audio: ['inputs.AUDIO'],
    video: ['inputs.VIDEO'],
  },
  output_token_details: {
    reasoning: ['thoughtsTokenCount'],
    text: ['outputs.TEXT'],
    image: ['outputs.IMAGE'],
    audio: ['outputs.AUDIO'],
  },
};

/** Reads a response's `usageMetadata`. The Python SDK writes names in snake case. */
export function geminiUsage(given: unknown): UsageMetadata | undefined {
  const entries = Object.entries(fieldsOf(given));
  const usage: Fields = Object.fromEntries(entries.map(([name, count]) => [camelCase(name), count]));
  // A JSON message of Google omits counts of 0: the candidates if the prompt was blocked, or if there are only thoughts.
  const { totalTokenCount, thoughtsTokenCount = totalTokenCount } = usage;
  const { candidatesTokenCount = thoughtsTokenCount === undefined ? undefined : 0 } = usage;
  return readUsage(
    {
      ...usage,
      candidatesTokenCount,
      inputs: byModality(usage.promptTokensDetails),
      outputs: byModality(usage.candidatesTokensDetails),
    },
    USAGE,
  );
}

/** Reads the `usage` of an interaction, whose counts have other names. Early versions report thoughts as reasoning. */
export function interactionUsage(given: unknown): UsageMetadata | undefined {
  const usage = fieldsOf(given);
  return geminiUsage({
    promptTokenCount: usage.total_input_tokens,
    candidatesTokenCount: usage.total_output_tokens,
    totalTokenCount: usage.total_tokens,
    thoughtsTokenCount: usage.total_thought_tokens ?? usage.total_reasoning_tokens,
    cachedContentTokenCount: usage.total_cached_tokens,
    toolUsePromptTokenCount: usage.total_tool_use_tokens,
    promptTokensDetails: usage.input_tokens_by_modality,
    candidatesTokensDetails: usage.output_tokens_by_modality,
  });
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function byModality(details: unknown): Fields {
  const counts = listOf(details).map(fieldsOf);
  const entries = counts.map((one) => [
    textOf(one.modality)?.toUpperCase(),
    one.tokenCount ?? one.token_count ?? one.tokens,
  ]);
  return Object.fromEntries(entries);
}
