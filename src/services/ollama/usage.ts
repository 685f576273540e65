import type { UsageMetadata } from '../../payload/usage.ts';
import { readUsage, type UsagePaths } from '../usage.ts';

/** https://docs.ollama.com/api/usage */
const USAGE: UsagePaths = { input_tokens: ['prompt_eval_count'], output_tokens: ['eval_count'] };

/** Reads the counts of a response, which stand beside its other fields. */
export function ollamaUsage(answer: unknown): UsageMetadata | undefined {
  return readUsage(answer, USAGE);
}
