import type { PayloadField, RunDetails } from '../../receiver/store/run-view.ts';
import { api } from './api.ts';

/** Payloads that are kept for a reader who comes back: the last ones, so many and so many bytes, and the very last in any case. */
const KEPT_MAX = 12;
const KEPT_BYTES_MAX = 32_000_000;

const kept = new Map<string, { readonly value: unknown; readonly size: number }>();

/** What a payload is known by; another one whenever the run may have another payload. Undefined where it has none. */
export function payloadKey(run: RunDetails, field: PayloadField): string | undefined {
  const size = run.payload_sizes[field];
  // What is asked stands from the start on; what is answered may grow until the end.
  return size === undefined ? undefined : [run.id, field, size, field === 'inputs' ? '' : run.end_time].join(' ');
}

/** A payload, fetched when it is first wanted; `{}` where the run has none. */
export async function payload(run: RunDetails, field: PayloadField, signal: AbortSignal): Promise<unknown> {
  const key = payloadKey(run, field);
  if (key === undefined) return {};
  const found = kept.get(key) ?? {
    value: await api.payload(run.id, field, signal),
    size: run.payload_sizes[field] ?? 0,
  };
  kept.delete(key);
  kept.set(key, found);
  let size = [...kept.values()].reduce((sum, one) => sum + one.size, 0);
  for (const [oldest, one] of kept) {
    if (oldest === key || (kept.size <= KEPT_MAX && size <= KEPT_BYTES_MAX)) break;
    kept.delete(oldest);
    size -= one.size;
  }
  return found.value;
}
