import { guard } from '../base/guard.ts';
import { shownText } from './payload.ts';
import type { PayloadRules } from './payload-rules.ts';

/** Where they belong, for the paths of a redaction. */
const TAG = ['tags', undefined] as const;

/** Tags with more added, as they are shown, and each once: a function that calls itself would repeat its own. */
export function withTags(
  present: readonly string[] | undefined,
  added: readonly string[] | undefined,
  rules: PayloadRules,
): readonly string[] | undefined {
  if (added === undefined) return present;
  const shown = guard('tags', () => Array.from(added, (tag) => shownText(String(tag), rules, TAG)));
  return shown === undefined ? present : [...new Set([...(present ?? []), ...shown])];
}
