import type { AttributeValue, OtlpAttributes, OtlpEncoding, OtlpSpan, SpanGroup } from './otlp-span.ts';

/** OTLP/JSON: ids are hexadecimal, and 64-bit integers are text. */
export const jsonEncoding: OtlpEncoding = {
  contentType: 'application/json',
  encode: (groups) => Buffer.from(groups.map((group) => JSON.stringify(resourceSpansOf(group))).join(',')),
  join: (slices) => {
    const separated = slices.flatMap((slice, at) => (at === 0 ? [slice] : [Buffer.from(','), slice]));
    return [Buffer.concat([Buffer.from('{"resourceSpans":['), ...separated, Buffer.from(']}')])];
  },
};

function resourceSpansOf({ resource, scope, spans }: SpanGroup): object {
  return { resource: { attributes: attributesOf(resource) }, scopeSpans: [{ scope, spans: spans.map(spanOf) }] };
}

function spanOf(span: OtlpSpan): object {
  const { traceId, spanId, parentSpanId, name, kind, startUs, endUs, statusCode: code, statusMessage: message } = span;
  return {
    traceId,
    spanId,
    ...(parentSpanId !== undefined && { parentSpanId }),
    name,
    kind,
    startTimeUnixNano: nanoseconds(startUs),
    endTimeUnixNano: nanoseconds(endUs),
    attributes: attributesOf(span.attributes),
    events: span.events.map((event) => ({
      timeUnixNano: nanoseconds(event.timeUs),
      name: event.name,
      attributes: attributesOf(event.attributes),
    })),
    links: span.links.map((link) => ({
      traceId: link.traceId,
      spanId: link.spanId,
      attributes: attributesOf(link.attributes),
    })),
    status: { code, ...(message !== '' && { message }) },
  };
}

function nanoseconds(us: number): string {
  return us === 0 ? '0' : `${us}000`;
}

function attributesOf(attributes: OtlpAttributes): object[] {
  return [...attributes].map(([key, value]) => ({ key, value: anyValueOf(value) }));
}

function anyValueOf(value: AttributeValue): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isSafeInteger(value) ? { intValue: `${value}` } : { doubleValue: value };
  return { arrayValue: { values: value.map((stringValue) => ({ stringValue })) } };
}
