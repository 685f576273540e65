import { parseIsoTimestamp } from '../../run/time.ts';
import { projectOf, timesOf } from '../domain/run-values.ts';
import type { CacheComparison, RunDetails, RunSummary } from '../domain/run-view.ts';
import { type CommonPrefix, commonPrefix, describeDifference, reportedCacheRead } from '../domain/trace/cache-miss.ts';
import { recordSource } from '../domain/trace/repeated-calls.ts';
import { ALL_RUNS, equal } from '../filter/run-filter.ts';
import type { Reader } from '../store/store.ts';

/** Time for which providers keep a prompt in their cache by default. */
const CACHE_US = 5 * 60_000_000;
/** Most providers do not cache shorter prompts. */
const TOKENS_MIN = 1_024;
/** Share of a prompt that counts as the whole prompt, because providers cache blocks of tokens. */
const SERVED_SHARE = 0.8;
const LISTED_MAX = 20;
const CALLS_MAX = 5;
/** Maximum number of bytes of a payload. Larger payloads are not compared. */
const BYTES_MAX = 2_000_000;

/**
 * Compares the prompt of a model call with the earlier prompts that the provider may still have in its cache. Of these,
 * the prompt with the longest common beginning counts. Returns undefined if the run is unknown.
 */
export async function cacheComparison(reader: Reader, runId: string): Promise<CacheComparison | undefined> {
  const run = await reader.store.details(reader.scope, runId);
  const tokens = run?.usage?.input_tokens ?? 0;
  if (run?.run_type !== 'llm' || run.same_call_as !== undefined || tokens === 0) return run && {};
  const found = await longestPrefix(reader, run);
  if (found === undefined) return {};
  const { previous, difference } = found;
  const comparison: CacheComparison = {
    previous_run_id: previous.id,
    previous_trace_id: previous.trace_id,
    seconds_before: Math.round((timesOf(run).startUs - timesOf(previous).startUs) / 100_000) / 10,
  };
  let cached = run.usage?.cached_tokens;
  // The usage contains no count of 0. The outputs tell whether the call reported one.
  cached ??= reportedCacheRead((await payload(reader, run, 'outputs', BYTES_MAX)) ?? {}, run.extra?.metadata);
  if (cached !== undefined) comparison.cached_share = Math.min(1, cached / tokens);
  const isServed = (cached ?? 0) >= SERVED_SHARE * Math.min(tokens, previous.usage?.input_tokens ?? 0);
  if (difference === undefined || isServed) return comparison;
  return { ...comparison, difference, text: describeDifference(difference, comparison) };
}

async function longestPrefix(reader: Reader, run: RunDetails) {
  const inputs = await payload(reader, run, 'inputs', BYTES_MAX);
  if (inputs === undefined) return undefined;
  let bytes = run.payload_sizes.inputs ?? 0;
  let longest: (CommonPrefix & { readonly previous: RunDetails }) | undefined;
  for (const { id } of await earlierCalls(reader, run)) {
    const previous = await reader.store.details(reader.scope, id);
    // Each source records requests in its own format.
    if (previous === undefined || recordSource(previous) !== recordSource(run)) continue;
    const earlier = await payload(reader, previous, 'inputs', BYTES_MAX - bytes);
    if (earlier === undefined) continue;
    bytes += previous.payload_sizes.inputs ?? 0;
    const found = commonPrefix({ inputs: earlier, extra: previous.extra }, { inputs, extra: run.extra });
    if (found !== undefined && found.length > (longest?.length ?? -1)) longest = { ...found, previous };
    if (found !== undefined && found.difference === undefined) break;
  }
  return longest;
}

/**
 * Returns up to 5 calls of the same project, model and thread, latest first. The calls started at most 5 minutes before
 * the run, ended before it started, and have at least 1,024 input tokens. A run without a thread is compared with calls
 * of its trace.
 */
async function earlierCalls({ store, scope }: Reader, run: RunDetails): Promise<RunSummary[]> {
  const { model, thread, trace_id } = run;
  if (model === undefined) return [];
  const { startUs } = timesOf(run);
  const group = thread === undefined ? equal('trace', trace_id) : equal('thread', thread);
  const filter = {
    ...ALL_RUNS,
    projects: [projectOf(run)],
    range: { fromUs: startUs - CACHE_US, beforeUs: startUs },
    conditions: [equal('type', 'llm'), equal('model', model), group],
  };
  const { items } = await store.list(scope, { filter, limit: LISTED_MAX });
  const isCandidate = ({ end_time = '', usage, same_call_as }: RunSummary): boolean =>
    (parseIsoTimestamp(end_time) ?? Number.POSITIVE_INFINITY) <= startUs &&
    same_call_as === undefined &&
    (usage?.input_tokens ?? 0) >= TOKENS_MIN;
  return items.filter(isCandidate).slice(0, CALLS_MAX);
}

/** Reads a payload. Returns undefined if the run has no such payload, or if the payload is too large. */
async function payload(
  { store, scope }: Reader,
  { id, payload_sizes }: RunDetails,
  field: 'inputs' | 'outputs',
  bytesMax: number,
): Promise<Record<string, unknown> | undefined> {
  if ((payload_sizes[field] ?? Number.POSITIVE_INFINITY) > bytesMax) return undefined;
  const json = await store.payload(scope, id, field);
  return json === undefined ? undefined : JSON.parse(json);
}
