import { isCodexSpan } from '../../otel/conventions/codex.ts';
import { type Attributes, text } from '../../otel/conventions/values.ts';
import type { SpanLike } from '../../otel/span-like.ts';
import type { SpanIds } from '../domain/identity.ts';
import { derivedUuid } from '../domain/uuid.ts';

/**
 * Prepares a span of Codex for its run. Returns undefined if the span becomes no run, and other spans unchanged.
 *
 * Codex 0.171.0 sends some hundred spans per turn about its own functions. Only a turn, its model calls and its tool calls
 * become runs. The spans between them do not, so the ids of these spans are derived from attributes that they share.
 */
export function codexSpan(span: SpanLike): SpanLike | undefined {
  const { name, attributes, events, instrumentationScope } = span;
  // Another program may have a crate whose name begins with `codex_`.
  if (!isCodexSpan(attributes) || instrumentationScope?.name.startsWith('codex') !== true) return span;
  const ids = span.spanContext();
  if (name === 'session_task.turn') {
    const profile = events.find((event) => event.name === 'codex.turn_profile');
    const conversation = profile?.attributes?.['conversation.id'];
    const spanId = idIn(ids, conversation);
    const { parentSpanContext: _, ...root } = span;
    return {
      ...root,
      name: 'Codex',
      spanContext: () => ({ ...ids, spanId }),
      attributes: { ...attributes, 'conversation.id': conversation },
    };
  }
  const parentSpanContext = { ...ids, spanId: idIn(ids, attributes['conversation.id']) };
  if (attributes['codex.turn.phase'] === 'sampling') return { ...span, parentSpanContext };
  if (attributes['codex.tool.phase'] === undefined) return undefined;
  const spanId = idIn(ids, attributes.call_id);
  return { ...span, parentSpanContext, spanContext: () => ({ ...ids, spanId }) };
}

/** Returns the ids of the span, as `codexSpan` returns it, to which a log record belongs. */
export function codexSpanIds({ traceId }: SpanIds, attributes: Attributes): SpanIds {
  return { traceId, spanId: idIn({ traceId }, attributes.call_id ?? attributes['conversation.id']) };
}

/** Returns the id of a tool call, or of the turn of a conversation. A trace has one turn of each conversation. */
function idIn({ traceId }: Pick<SpanIds, 'traceId'>, key: unknown): string {
  return derivedUuid(`codex ${traceId} ${text(key)}`)
    .replaceAll('-', '')
    .slice(16);
}
