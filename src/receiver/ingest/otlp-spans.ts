import * as v from 'valibot';
import { cut } from '../../base/text.ts';
import { isServiceName } from '../../otel/mapping/resource.ts';
import type { SpanContextLike, SpanLike } from '../../otel/span-like.ts';
import { defined, isFields } from '../../payload/fields.ts';
import { inTurns } from '../domain/in-turns.ts';
import { HttpError, ValidationIssues } from '../http/http-error.ts';
import { parsed, validate } from '../http/validation.ts';
import { codexSpan } from './codex.ts';
import {
  attributesIn,
  attributeText,
  countOrZero,
  type Fields,
  isZero,
  listIn,
  objectIn,
  parseId,
  parseTime,
  RecordLists,
  type Warn,
} from './otlp-values.ts';

/** OpenTelemetry exporters send up to 512 spans by default, and collectors up to 8192. Neither splits a rejected request. */
const SPANS_MAX = 10_000;

export interface OtlpSpan {
  readonly span: SpanLike;
  readonly hasEnded: boolean;
  /** Project name from the resource attributes, usually the service name. */
  readonly project: string | undefined;
}

interface OtlpSpans {
  readonly spans: readonly OtlpSpan[];
  readonly rejected: number;
  /** Error message for the first invalid span. Empty if all spans are valid. */
  readonly reason: string;
}

/**
 * Reads an `ExportTraceServiceRequest` in its JSON form. Ids are hexadecimal. 64-bit numbers are text, or bigints if
 * the request was protobuf. Throws an HTTP 400 error if the request is malformed, or a 413 error if it contains too
 * many spans.
 */
export async function readOtlpSpans(request: unknown): Promise<OtlpSpans> {
  const spans: OtlpSpan[] = [];
  const issues = new ValidationIssues();
  const warn = (problem: string): void => issues.add(['span'], 'value', problem);
  const lists = new RecordLists();
  let rejected = 0;
  for (const resourceSpans of lists.in(objectIn(request, 'The body'), 'resourceSpans')) {
    const attributes = attributesIn(isFields(resourceSpans.resource) ? resourceSpans.resource.attributes : []);
    // All spans of a resource share one object, because the mapping caches metadata by resource object.
    const resource = { attributes };
    const project = ['openinference.project.name', 'service.name'].map((key) => attributes[key]).find(isServiceName);
    for (const scopeSpans of lists.in(resourceSpans, 'scopeSpans')) {
      const { name, version } = isFields(scopeSpans.scope) ? scopeSpans.scope : {};
      const scope = { name: attributeText(name), ...defined({ version: attributeText(version) || undefined }) };
      for await (const given of inTurns(lists.in(scopeSpans, 'spans'))) {
        if (spans.length + rejected === SPANS_MAX)
          throw new HttpError(413, `The body has more than ${SPANS_MAX} spans`);
        const misspelled = Object.keys(given).find((field) => field.includes('_'));
        if (misspelled !== undefined) warn(`Expected fields in lowerCamelCase, got \`${cut(misspelled, 100)}\``);
        const identity = validate(identitySchema, given, ['span'], issues);
        if (identity === undefined) {
          rejected += 1;
          continue;
        }
        const span = codexSpan(spanOf(given, identity, resource, scope, warn));
        if (span === undefined) continue;
        spans.push({ span, hasEnded: identity.endTimeUnixNano !== null, project });
      }
    }
  }
  lists.throwIfAlone(spans.length + rejected);
  return { spans, rejected: rejected + lists.unread, reason: lists.problem || (issues.first ?? '') };
}

const TIME = 'nanoseconds between 1970 and 2255, not seconds, milliseconds or microseconds';

const endTime = parsed(TIME, (value) => (isZero(value) ? null : parseTime(value)));

/** Schema for the required fields of a span. Invalid values in other fields are left out with a warning. */
const identitySchema = v.object({
  traceId: parsed('32 hexadecimal digits, not all zero', (value) => parseId(value, 32)),
  spanId: parsed('16 hexadecimal digits, not all zero', (value) => parseId(value, 16)),
  parentSpanId: v.optional(parsed('16 hexadecimal digits', (value) => (isZero(value) ? null : parseId(value, 16)))),
  startTimeUnixNano: parsed(TIME, (value) => (isZero(value) ? undefined : parseTime(value))),
  endTimeUnixNano: v.optional(endTime, null),
});

function spanOf(
  given: Fields,
  identity: v.InferOutput<typeof identitySchema>,
  resource: SpanLike['resource'],
  scope: NonNullable<SpanLike['instrumentationScope']>,
  warn: Warn,
): SpanLike {
  const { traceId, spanId, parentSpanId: parentId, startTimeUnixNano: start, endTimeUnixNano: end } = identity;
  const flags = countOrZero(given.flags);
  const ids: SpanContextLike = { traceId, spanId, traceFlags: flags & 0xff };
  // Bit 9 is set if the parent span is remote, but is valid only if bit 8 is set.
  const isRemote = (flags & 0x300) === 0x300;
  const { code, message } = isFields(given.status) ? given.status : {};
  return {
    name: attributeText(given.name) || 'span',
    // Span kinds are one lower in the OpenTelemetry API than in OTLP, because the API has no `UNSPECIFIED`.
    kind: Math.max(0, enumOf(given.kind, KINDS, warn) - 1),
    spanContext: () => ids,
    ...(parentId && { parentSpanContext: { ...ids, spanId: parentId, isRemote } }),
    startTime: start,
    endTime: end ?? start,
    status: { code: enumOf(code, STATUS_CODES, warn), ...defined({ message: attributeText(message) || undefined }) },
    attributes: attributesIn(given.attributes, warn),
    links: listIn(given, 'links').map((link) => ({
      context: {
        traceId: attributeText(link.traceId).toLowerCase(),
        spanId: attributeText(link.spanId).toLowerCase(),
        traceFlags: 0,
      },
      attributes: attributesIn(link.attributes, warn),
    })),
    events: listIn(given, 'events').map((event) => ({
      name: attributeText(event.name),
      time: parseTime(event.timeUnixNano) ?? start,
      attributes: attributesIn(event.attributes, warn),
    })),
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: countOrZero(given.droppedAttributesCount),
    droppedEventsCount: countOrZero(given.droppedEventsCount),
    droppedLinksCount: countOrZero(given.droppedLinksCount),
  };
}

/** Names of the enum values in protobuf's JSON format, in numerical order. */
const KINDS = 'UNSPECIFIED INTERNAL SERVER CLIENT PRODUCER CONSUMER'.split(' ').map((name) => `SPAN_KIND_${name}`);
const STATUS_CODES = ['UNSET', 'OK', 'ERROR'].map((name) => `STATUS_CODE_${name}`);

function enumOf(value: unknown, names: readonly string[], warn: Warn): number {
  if (typeof value !== 'string') return countOrZero(value);
  const index = names.indexOf(value);
  if (index < 0) warn(`Expected a number, or a name such as ${names[1]}, got ${JSON.stringify(cut(value, 100))}`);
  return Math.max(0, index);
}
