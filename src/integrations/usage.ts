import { defined, definedOrNone, fieldsOf, numberOf } from '../payload/fields.ts';
import { completeUsage, tokenCount } from '../run/fields.ts';
import type { UsageMetadata } from '../run/record.ts';

/** Paths such as `usage.input_tokens`. The first path that leads to a number is used. */
type Paths = readonly string[];

/** The possible paths of each token count in a response. */
export interface UsagePaths {
  readonly input_tokens: Paths;
  readonly output_tokens: Paths;
  readonly total_tokens?: Paths;
  readonly total_cost?: Paths;
  readonly input_token_details?: Readonly<Record<string, Paths>>;
  readonly output_token_details?: Readonly<Record<string, Paths>>;
  /** Counts to record as 0 if the service omits them but reports another count. */
  readonly zeroIfMissing?: readonly ('input_tokens' | 'output_tokens')[];
}

interface UsageOptions {
  readonly serviceTier?: unknown;
  /** Whether `input_tokens` exclude tokens that are read from or written to a cache. */
  readonly excludesCached?: boolean;
}

/** Reads token counts. Returns undefined if there is no input, output or total count. */
export function readUsage(source: unknown, paths: UsagePaths, options: UsageOptions = {}): UsageMetadata | undefined {
  const read = (candidates: Paths = []): number | undefined => firstNumber(source, candidates);
  const readAll = (rows: Readonly<Record<string, Paths>> = {}) => {
    const counts = Object.entries(rows).map(([name, candidates]) => [name, tokenCount(read(candidates))]);
    return definedOrNone<Record<string, number>>(Object.fromEntries(counts));
  };
  const input = read(paths.input_tokens);
  const output = read(paths.output_tokens);
  const total = read(paths.total_tokens);
  if (input === undefined && output === undefined && total === undefined) return undefined;
  const inputDetails = readAll(paths.input_token_details);
  const cached = options.excludesCached ? (inputDetails?.cache_read ?? 0) + (inputDetails?.cache_creation ?? 0) : 0;
  const missing = (key: 'input_tokens' | 'output_tokens') => (paths.zeroIfMissing?.includes(key) ? 0 : undefined);
  const inputTokens = input ?? missing('input_tokens');
  const usage = defined({
    input_tokens: inputTokens === undefined ? undefined : inputTokens + cached,
    output_tokens: output ?? missing('output_tokens'),
    // A total that excludes cached tokens is not recorded.
    total_tokens: options.excludesCached ? undefined : total,
    input_token_details: inputDetails,
    output_token_details: readAll(paths.output_token_details),
    total_cost: read(paths.total_cost),
  });
  return definedOrNone(completeUsage(usage as UsageMetadata, options.serviceTier));
}

function firstNumber(source: unknown, paths: Paths): number | undefined {
  for (const path of paths) {
    let value = source;
    for (const key of path.split('.')) value = fieldsOf(value)[key];
    if (numberOf(value) !== undefined) return numberOf(value);
  }
  return undefined;
}
