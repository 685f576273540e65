import { guard } from '../base/guard.ts';
import { metadataJson, metadataKey } from './payload.ts';
import type { PayloadRules } from './payload-rules.ts';

/**
 * Metadata with more added, key by key, as it is at this moment. The map that was there is left as it is: the run above
 * and those below may share it.
 */
export function withMetadata(
  present: ReadonlyMap<string, string> | undefined,
  added: Readonly<Record<string, unknown>>,
  rules: PayloadRules,
): Map<string, string> {
  const metadata = new Map(present);
  addMetadata(metadata, added, rules);
  return metadata;
}

/** The same for a map that nobody shares: a run that is told of each of its steps would copy it for each. */
export function addMetadata(
  metadata: Map<string, string>,
  added: Readonly<Record<string, unknown>>,
  rules: PayloadRules,
): void {
  for (const key of guard('metadata', () => Object.keys(added)) ?? []) {
    const value = guard('metadata', () => added[key]);
    if (value !== undefined) metadata.set(metadataKey(key, rules), metadataJson(key, value, rules));
  }
}
