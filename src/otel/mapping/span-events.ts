import { eventJson } from '../../payload/serialize.ts';
import type { PayloadRules } from '../../payload/truncate.ts';
import { isoTimestamp } from '../../run/time.ts';
import { hasNoFields } from '../conventions/values.ts';
import type { SpanEventLike } from '../span-like.ts';
import type { HiddenContent } from './hidden-content.ts';
import { hrTimeUs } from './span-identity.ts';

const FIRST_TOKEN_EVENT = 'new_token';
/** The AI SDK's event for the first chunk. Version 7 emits it at the end, and has the time in an attribute. */
const FIRST_CHUNK_EVENT = 'ai.stream.firstChunk';
const FIRST_STREAM_EVENT = 'First Token Stream Event';

/**
 * Adds a first-token event `afterUs` microseconds after the start, or instead of OpenInference's event. Has no effect if
 * the span already has a first-token event.
 */
export function withFirstToken(
  events: readonly SpanEventLike[],
  startUs: number,
  afterUs: number | undefined,
): readonly SpanEventLike[] {
  if (events.some(({ name }) => name === FIRST_TOKEN_EVENT)) return events;
  if (afterUs === undefined) {
    const at = events.findIndex(({ name }) => name === FIRST_STREAM_EVENT);
    return at < 0 ? events : events.with(at, { ...(events[at] as SpanEventLike), name: FIRST_TOKEN_EVENT });
  }
  const atUs = startUs + afterUs;
  const time = [Math.floor(atUs / 1_000_000), (atUs % 1_000_000) * 1_000] as const;
  const others = events.filter(({ name }) => name !== FIRST_CHUNK_EVENT && name !== FIRST_STREAM_EVENT);
  const later = others.findIndex((event) => (hrTimeUs(event.time) ?? startUs) > atUs);
  return others.toSpliced(later < 0 ? others.length : later, 0, { name: FIRST_TOKEN_EVENT, time });
}

/** Returns the events of a run as JSON text. If the time of an event is invalid, `startUs` is used. */
export function spanEventsJson(
  events: readonly SpanEventLike[],
  startUs: number,
  rules: PayloadRules,
  hidden: HiddenContent | undefined,
): string | undefined {
  if (events.length === 0) return undefined;
  const parts = events.map(({ name, time, attributes = {} }) => {
    const shown = hidden === undefined ? attributes : hidden.shown(attributes, name);
    const data = hasNoFields(shown) ? undefined : shown;
    return eventJson(String(name), isoTimestamp(hrTimeUs(time) ?? startUs), data, rules);
  });
  return `[${parts.join(',')}]`;
}
