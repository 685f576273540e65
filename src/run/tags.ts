import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import type { PayloadRules } from '../payload/limits.ts';
import { shownText } from '../payload/redact.ts';

/** Tags of one run, those taken over included. They name groups of runs; more are a mistake. */
export const TAGS_MAX = 1_000;

/** Where they belong, for the paths of a redaction. */
const TAG = ['tags', undefined] as const;

/**
 * Tags with more added, as they are shown, and each once: a function that calls itself would repeat its own. The list that
 * was there is left as it is, since the runs below share it. Those beyond `TAGS_MAX` are left out, and one line says so.
 */
export function withTags(
  present: readonly string[] | undefined,
  added: readonly string[] | undefined,
  rules: PayloadRules,
): readonly string[] | undefined {
  if (added === undefined) return present;
  const shown = guard('tags', () => Array.from(added, (tag) => shownText(String(tag), rules.redaction, TAG)));
  return shown === undefined ? present : joined(present ?? [], shown);
}

function joined(present: readonly string[], added: readonly string[]): readonly string[] {
  // Nothing is copied for tags that are there already, nor at the limit: a loop may add to a run without end.
  let tags: string[] | undefined;
  for (const tag of added) {
    const known = tags ?? present;
    if (known.includes(tag)) continue;
    if (known.length >= TAGS_MAX) {
      diagnostics.warnOnce(
        'tags limit',
        `tags: expected a run to have at most ${TAGS_MAX}; further ones are left out.`,
      );
      break;
    }
    tags ??= [...present];
    tags.push(tag);
  }
  return tags ?? present;
}
