import { jsonFields } from '../../otel/conventions/values.ts';
import { hrTimeUs } from '../../otel/mapping/span-identity.ts';
import { OWN } from '../../otel/otlp/own-attributes.ts';
import type { SpanEventLike, SpanLike } from '../../otel/span-like.ts';
import { defined, definedOrNone, type Fields, filled, textOf } from '../../payload/fields.ts';
import { END_REASON } from '../../run/record.ts';
import { isoTimestamp, parseDottedOrder } from '../../run/time.ts';

/** Returns the record of the run that runspan sent as this span, if any. Only its `dotted_order` is validated. */
export function ownRecord(span: SpanLike): Fields | undefined {
  const { attributes } = span;
  const order = textOf(attributes[OWN.order]);
  const segments = order === undefined ? undefined : parseDottedOrder(order);
  const [own, parent] = [segments?.at(-1), segments?.at(-2)];
  if (segments === undefined || own === undefined) return undefined;
  const endUs = hrTimeUs(span.endTime);
  const thrown = span.events.findLast(isErrorEvent)?.attributes?.['exception.stacktrace'];
  const error = textOf(attributes[OWN.error]) ?? textOf(thrown);
  // Every span has an end time. If the run has none, its span ends at the start time.
  const isOpen = attributes[OWN.incomplete] === true && endUs === own.startUs;
  const events = span.events
    .filter((event) => !isErrorEvent(event) && event.attributes?.[OWN.feedback] === undefined)
    .map(eventOf);
  return defined({
    id: own.id,
    trace_id: segments[0]?.id,
    parent_run_id: parent?.id,
    dotted_order: order,
    name: attributes[OWN.name] ?? span.name,
    run_type: attributes[OWN.runType],
    start_time: isoTimestamp(own.startUs),
    end_time: endUs === undefined || isOpen ? undefined : isoTimestamp(endUs),
    inputs: jsonFields(attributes['input.value']) ?? {},
    outputs: jsonFields(attributes['output.value']),
    error,
    events: filled(events),
    tags: attributes['tag.tags'],
    reference_example_id: attributes[OWN.example],
    extra: definedOrNone({
      ...jsonFields(attributes[OWN.extra]),
      metadata: jsonFields(attributes.metadata),
      runtime: jsonFields(attributes[OWN.runtime]),
      [END_REASON]: attributes[OWN.endReason],
    }),
    session_id: attributes[OWN.projectId],
  });
}

function isErrorEvent({ name, attributes }: SpanEventLike): boolean {
  return name === 'exception' && attributes?.[OWN.error] === true;
}

function eventOf({ name, time, attributes = {} }: SpanEventLike): Fields {
  const plain = Object.keys(attributes).length === 0 ? undefined : attributes;
  return defined({
    name,
    time: isoTimestamp(hrTimeUs(time) ?? 0),
    kwargs: jsonFields(attributes[OWN.kwargs]) ?? plain,
  });
}
