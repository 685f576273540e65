import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { shownText } from '../payload/redaction/redact.ts';
import { eventJson, metadataJson, metadataKey } from '../payload/serialize.ts';
import type { PayloadRules } from '../payload/truncate.ts';
import { isoTimestamp } from './time.ts';

/**
 * An object whose properties are recorded. Objects typed as an `interface` are accepted. Arrays, maps and other
 * iterables do not compile. Promises do not compile either, because a promise usually means that `await` is missing.
 */
export type Fields =
  | Readonly<Record<string, unknown>>
  | (object & { readonly then?: never; readonly [Symbol.iterator]?: never });

/** Maximum number of tags per run, including inherited tags. */
export const TAGS_MAX = 1_000;

/** The path of a tag for redaction rules: an item of `tags` with an unknown index. */
const TAG = ['tags', undefined] as const;

/** Returns the fields that a run does not inherit as metadata. */
export function notInherited(fields: Fields | undefined, inherited: ReadonlyMap<string, string> | undefined): Fields {
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([key]) => inherited?.has(key) !== true));
}

/** Never changes `present`, because nested runs share it. */
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
  // Copies the list only if a tag is new, because a loop may add the same tags many times.
  let tags: string[] | undefined;
  for (const tag of added) {
    const known = tags ?? present;
    if (known.includes(tag)) continue;
    if (known.length >= TAGS_MAX) {
      diagnostics.warnOnce(
        'tags limit',
        `tags: expected a run to have at most ${TAGS_MAX} tags; further tags are ignored.`,
      );
      break;
    }
    tags ??= [...present];
    tags.push(tag);
  }
  return tags ?? present;
}

/** Maximum number of metadata keys per run, including inherited keys. */
const KEYS_MAX = 10_000;

/** Metadata keys that the library sets, which are recorded even if a run already has `KEYS_MAX` keys. */
const ALWAYS_KEPT: ReadonlySet<string> = new Set(['usage_metadata', 'dropped_events', 'dropped_chunks']);

/** Never changes `present`, because nested runs share it. */
export function withMetadata(
  present: ReadonlyMap<string, string> | undefined,
  added: Fields,
  rules: PayloadRules,
): Map<string, string> {
  const metadata = new Map(present);
  addMetadata(metadata, added, rules);
  return metadata;
}

export function addMetadata(metadata: Map<string, string>, added: Fields, rules: PayloadRules): void {
  for (const key of guard('metadata', () => Object.keys(added)) ?? []) {
    const shown = metadataKey(key, rules);
    if (metadata.size >= KEYS_MAX && !metadata.has(shown) && !ALWAYS_KEPT.has(key)) {
      diagnostics.warnOnce(
        'metadata limit',
        `metadata: expected a run to have at most ${KEYS_MAX} keys; further keys are ignored.`,
      );
      continue;
    }
    const value = guard('metadata', () => (added as Readonly<Record<string, unknown>>)[key]);
    if (value !== undefined) metadata.set(shown, metadataJson(key, value, rules));
  }
}

const EVENTS_MAX = 10_000;

/**
 * The events of one run. After `EVENTS_MAX` events, or after the maximum payload size, new events are only counted in
 * `dropped`.
 */
export class EventList {
  readonly #events: string[] = [];
  #characters = 0;
  dropped = 0;

  add(name: string, timeUs: number, data: Fields | undefined, rules: PayloadRules): void {
    if (this.#events.length >= EVENTS_MAX || this.#characters >= rules.bytes) {
      this.dropped++;
      return;
    }
    const event = eventJson(name, isoTimestamp(timeUs), data, rules);
    this.#characters += event.length;
    this.#events.push(event);
  }

  toJson(): string {
    return `[${this.#events.join(',')}]`;
  }
}
