import { definedOrNone, type Fields, fieldsOf, isFields, numberOf, withValues } from '../payload/fields.ts';
import { completeUsage, type Part, type UsageMetadata } from '../payload/usage.ts';
import { reportedCost } from './cost.ts';

/** Paths such as `usage.input_tokens`, also as names of flat objects. The first path that leads to a number is used. */
type Paths = readonly string[];

/** The possible paths of each token count in a response. */
export interface UsagePaths {
  readonly input_tokens: Paths;
  readonly output_tokens: Paths;
  readonly total_tokens?: Paths;
  readonly input_token_details?: Readonly<Record<string, Paths>>;
  readonly output_token_details?: Readonly<Record<string, Paths>>;
  /** The parts that the service's documentation excludes from the counts. */
  readonly outside?: readonly Part[];
}

/**
 * Reads token counts, and the cost that the service reports. A count that the service does not report is absent. Returns
 * undefined if there is no input, output or total count, and no cost.
 */
export function readUsage(source: unknown, paths: UsagePaths, serviceTier?: unknown): UsageMetadata | undefined {
  const read = (candidates: Paths = []): number | undefined => firstNumber(source, candidates);
  const readAll = (rows: Readonly<Record<string, Paths>> = {}): Record<string, number> =>
    withValues(rows, (candidates) => read(candidates as Paths)) as Record<string, number>;
  const counts = definedOrNone({
    input_tokens: read(paths.input_tokens),
    output_tokens: read(paths.output_tokens),
    total_tokens: read(paths.total_tokens),
    total_cost: reportedCost(fieldsOf(source)),
  });
  if (counts === undefined) return undefined;
  const details = {
    input_token_details: readAll(paths.input_token_details),
    output_token_details: readAll(paths.output_token_details),
  };
  return definedOrNone(completeUsage({ ...counts, ...details }, serviceTier, paths.outside));
}

function firstNumber(source: unknown, paths: Paths): number | undefined {
  for (const path of paths) {
    let value = source;
    for (const key of path.split('.')) value = fieldsOf(value)[key];
    const found = numberOf(value) ?? numberOf(fieldsOf(source)[path]);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * Adds the usage in a chunk of a stream to that of earlier chunks. All counts are running totals. A later, smaller count
 * is that of a chunk that does not know the total.
 */
export function laterUsage(known: unknown, added: unknown): Fields {
  const usage = { ...fieldsOf(known) };
  for (const [key, value] of Object.entries(fieldsOf(added))) {
    const before = usage[key];
    const count = numberOf(value);
    if (isFields(value)) usage[key] = laterUsage(before, value);
    else if (count !== undefined) usage[key] = Math.max(count, numberOf(before) ?? count);
    else if (before === undefined || !isBlank(value)) usage[key] = value;
  }
  return usage;
}

function isBlank(value: unknown): boolean {
  return (value ?? '') === '' || Number.isNaN(value) || (Array.isArray(value) && value.length === 0);
}
