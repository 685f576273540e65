import type { RunRecord } from '../run/record.ts';

/** `165 tokens (120 in, 45 out)`, or what of it is known; undefined when nothing is. Runs are as they were sent. */
export function tokensText(run: RunRecord): string | undefined {
  const usage = run.outputs?.usage_metadata ?? run.extra?.metadata?.usage_metadata;
  const input = countIn(usage, 'input_tokens');
  const output = countIn(usage, 'output_tokens');
  const total = countIn(usage, 'total_tokens') ?? sum(input, output);
  const parts = [input === undefined ? [] : `${input} in`, output === undefined ? [] : `${output} out`].flat();
  if (total !== undefined) return `${total} tokens${parts.length === 0 ? '' : ` (${parts.join(', ')})`}`;
  return parts[0]?.replace(' ', ' tokens ');
}

function countIn(usage: unknown, key: string): number | undefined {
  const count: unknown = (usage as Record<string, unknown> | null | undefined)?.[key];
  return typeof count === 'number' && Number.isFinite(count) && count >= 0 ? count : undefined;
}

function sum(input: number | undefined, output: number | undefined): number | undefined {
  return input === undefined || output === undefined ? undefined : input + output;
}
