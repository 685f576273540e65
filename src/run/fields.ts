import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { defined, definedOrNone, isFields, numberOf } from '../payload/fields.ts';
import { shownText } from '../payload/redaction/redact.ts';
import { eventJson, metadataJson, metadataKey } from '../payload/serialize.ts';
import type { PayloadRules } from '../payload/truncate.ts';
import type { UsageMetadata } from './record.ts';
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
const ALWAYS_KEPT: ReadonlySet<string> = new Set(['usage_metadata', 'end_reason', 'dropped_events', 'dropped_chunks']);

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

/** Returns the metadata of runs that inherit nothing, from the ids in the options of an exporter. */
export function defaultFields(
  { threadId, userId }: { readonly threadId?: string | undefined; readonly userId?: string | undefined },
  rules: PayloadRules,
): { readonly tags: undefined; readonly metadata: ReadonlyMap<string, string> } | undefined {
  const ids = definedOrNone({ thread_id: threadId, user_id: userId });
  return ids && { tags: undefined, metadata: withMetadata(undefined, ids, rules) };
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

/** Returns a token count. Returns undefined if the value is not a whole number from 0 to 1,000,000,000. */
export function tokenCount(value: unknown): number | undefined {
  return Number.isInteger(value) && (value as number) <= 1_000_000_000 ? cost(value) : undefined;
}

/** Returns a cost. Returns undefined if the value is not a finite number or is negative. */
export function cost(value: unknown): number | undefined {
  return Number.isFinite(value) && (value as number) >= 0 ? (value as number) : undefined;
}

/** Returns the valid token counts and costs of a usage object or of its details. `read` converts each value first. */
export function validUsage(given: object, read: (value: unknown) => unknown, areCosts?: boolean): UsageMetadata {
  const usage: UsageMetadata = {};
  for (const [key, value] of Object.entries(given)) {
    const isCost = areCosts ?? key.includes('cost');
    const details =
      isFields(value) && areCosts === undefined ? definedOrNone(validUsage(value, read, isCost)) : undefined;
    const valid = isFields(value) ? details : (isCost ? cost : tokenCount)(read(value));
    if (valid !== undefined) Reflect.set(usage, key, valid);
  }
  return usage;
}

/** OpenAI service tiers with separate token prices. */
const PRICED_TIERS: ReadonlySet<unknown> = new Set(['flex', 'priority']);

/**
 * Removes invalid counts and costs. Adds cached tokens to input tokens that exclude them. The total is at least the sum
 * of the input and output tokens. Splits the token details into categories with one price each: `cache_creation` keeps
 * only the tokens with an unknown cache lifetime. If a service tier such as `flex` has its own prices, `cache_read`
 * becomes `flex_cache_read` and `reasoning` becomes `flex_reasoning`. The remaining tokens are counted as `flex`.
 */
export function completeUsage(given: UsageMetadata, serviceTier?: unknown): UsageMetadata {
  const { input_tokens, output_tokens: output, total_tokens, ...others } = validUsage(given, numberOf);
  const input = withCached(input_tokens, others.input_token_details);
  const sum = numberOr0(input) + numberOr0(output);
  const total = (input ?? output) === undefined ? total_tokens : tokenCount(Math.max(numberOr0(total_tokens), sum));
  const usage = { ...defined({ input_tokens: input, output_tokens: output, total_tokens: total }), ...others };
  if (usage.input_token_details !== undefined) usage.input_token_details = splitWrites(usage.input_token_details);
  if (typeof serviceTier !== 'string' || !PRICED_TIERS.has(serviceTier)) return usage;
  if (isNumber(input)) {
    usage.input_token_details = ofTier(serviceTier, input, usage.input_token_details, 'cache_read');
  }
  if (isNumber(output)) {
    usage.output_token_details = ofTier(serviceTier, output, usage.output_token_details, 'reasoning');
  }
  return usage;
}

/** Adds cached tokens to a smaller input count. Such a count excludes them, as Anthropic's counts do. */
function withCached(input: number | undefined, details: Record<string, number> = {}): number | undefined {
  const { cache_read, cache_creation, ephemeral_5m_input_tokens: short, ephemeral_1hr_input_tokens: long } = details;
  const written = Math.max(numberOr0(cache_creation), numberOr0(short) + numberOr0(long));
  const cached = numberOr0(cache_read) + written;
  return input === undefined || input >= cached ? input : tokenCount(input + cached);
}

function splitWrites(details: Record<string, number>): Record<string, number> {
  const { cache_creation: total, ...others } = details;
  const { ephemeral_5m_input_tokens: short, ephemeral_1hr_input_tokens: long } = others;
  if (!isNumber(total) || (!isNumber(short) && !isNumber(long))) return details;
  const rest = total - numberOr0(short) - numberOr0(long);
  return rest > 0 ? { ...others, cache_creation: rest } : others;
}

function ofTier(
  tier: string,
  total: number,
  details: Record<string, number> | undefined,
  apart: 'cache_read' | 'reasoning',
): Record<string, number> {
  const { [apart]: count, ...others } = details ?? {};
  const rest = { ...others, [tier]: Math.max(0, total - numberOr0(count)) };
  return isNumber(count) ? { ...rest, [`${tier}_${apart}`]: count } : rest;
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

function numberOr0(value: unknown): number {
  return isNumber(value) ? value : 0;
}
