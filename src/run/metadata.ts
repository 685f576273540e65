import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import type { PayloadRules } from '../payload/limits.ts';
import { metadataJson, metadataKey } from '../payload/serialize.ts';
import type { Fields } from './run-options.ts';

/** Keys of the metadata of one run, those taken over included. */
const KEYS_MAX = 10_000;

/** What tracing itself tells of a run has its place also where the application has filled all others. */
const ALWAYS_KEPT: ReadonlySet<string> = new Set(['usage_metadata', 'end_reason', 'dropped_events', 'dropped_chunks']);

/**
 * Metadata with more added, key by key, as it is at this moment. The map that was there is left as it is: the run above
 * and those below may share it.
 */
export function withMetadata(
  present: ReadonlyMap<string, string> | undefined,
  added: Fields,
  rules: PayloadRules,
): Map<string, string> {
  const metadata = new Map(present);
  addMetadata(metadata, added, rules);
  return metadata;
}

/**
 * The same for a map that nobody shares: a run that is told of each of its steps would copy it for each. New keys beyond
 * `KEYS_MAX` are left out, and one line says so; those that are there may get another value.
 */
export function addMetadata(metadata: Map<string, string>, added: Fields, rules: PayloadRules): void {
  for (const key of guard('metadata', () => Object.keys(added)) ?? []) {
    const shown = metadataKey(key, rules);
    if (metadata.size >= KEYS_MAX && !metadata.has(shown) && !ALWAYS_KEPT.has(key)) {
      diagnostics.warnOnce(
        'metadata limit',
        `metadata: expected a run to have at most ${KEYS_MAX} keys; further ones are left out.`,
      );
      continue;
    }
    const value = guard('metadata', () => (added as Readonly<Record<string, unknown>>)[key]);
    if (value !== undefined) metadata.set(shown, metadataJson(key, value, rules));
  }
}
