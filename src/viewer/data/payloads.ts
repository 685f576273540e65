import type { PayloadField, RunDetails } from '../../receiver/domain/run-view.ts';
import { api } from './api.ts';
import { type Live, useLive } from './live-value.ts';

/** Limits of the payload cache. The latest payload is kept even if it exceeds the limits. */
const CACHE_ITEMS_MAX = 12;
const CACHE_BYTES_MAX = 32_000_000;

const cache = new Map<string, { readonly value: unknown; readonly size: number }>();

/** Reads a payload for a component if `isWanted` is set. Reads the payload again when it may have changed. */
export function usePayload(run: RunDetails | undefined, field: PayloadField, isWanted: boolean): Live<unknown> {
  const key = isWanted && run !== undefined ? payloadKey(run, field) : undefined;
  return useLive(key, async (signal) => run && payload(run, field, signal));
}

/** Returns a key that changes whenever the payload may have changed, or undefined if there is no such payload. */
function payloadKey(run: RunDetails, field: PayloadField): string | undefined {
  const size = run.payload_sizes[field];
  // Inputs are complete when a run starts, but outputs may grow until the run ends.
  return size === undefined ? undefined : [run.id, field, size, field === 'inputs' ? '' : run.end_time].join(' ');
}

/** Returns a payload from the cache or the API, or `{}` if the run has no such payload. */
export async function payload(run: RunDetails, field: PayloadField, signal: AbortSignal): Promise<unknown> {
  const key = payloadKey(run, field);
  if (key === undefined) return {};
  const found = cache.get(key) ?? {
    value: await api.payload(run.id, field, signal),
    size: run.payload_sizes[field] ?? 0,
  };
  // Move the entry to the end, so that the map stays sorted by last use.
  cache.delete(key);
  cache.set(key, found);
  let size = [...cache.values()].reduce((sum, one) => sum + one.size, 0);
  for (const [oldest, one] of cache) {
    if (oldest === key || (cache.size <= CACHE_ITEMS_MAX && size <= CACHE_BYTES_MAX)) break;
    cache.delete(oldest);
    size -= one.size;
  }
  return found.value;
}
