import { isObject } from '../../base/options.ts';
import type { SpanContextLike, SpanLike } from '../../otel/span-like.ts';
import { Refusal } from '../refusal.ts';

/** Spans of one request: exporters send 512, collectors 8192 as a rule. Neither splits what is refused. */
const SPANS_MAX = 10_000;

/** A span as it came. */
export interface OtlpSpan {
  readonly span: SpanLike;
  readonly hasEnded: boolean;
  /** Attributes of what it comes from name it: the service, as a rule. */
  readonly project: string | undefined;
}

/** The spans of a request, and what is to be told of those that cannot be used. */
export interface OtlpSpans {
  readonly spans: readonly OtlpSpan[];
  readonly rejected: number;
  /** Why the first of them cannot be used. */
  readonly reason: string | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * The spans of an `ExportTraceServiceRequest` in the form that OTLP gives to JSON, which that of protobuf is brought into as
 * well: ids in hexadecimal, numbers of 64 bits as text (or as a bigint). 400 for what is no such request, 413 for too many spans.
 */
export function readOtlpSpans(request: unknown): OtlpSpans {
  const spans: OtlpSpan[] = [];
  let rejected = 0;
  let reason: string | undefined;
  for (const resourceSpans of listIn(objectIn(request, 'The body'), 'resourceSpans')) {
    const attributes = attributesIn(isObject(resourceSpans.resource) ? resourceSpans.resource : {});
    const resource = { attributes };
    const project = projectOf(attributes);
    for (const scopeSpans of listIn(resourceSpans, 'scopeSpans')) {
      const scope = scopeIn(scopeSpans);
      for (const given of listIn(scopeSpans, 'spans')) {
        if (spans.length + rejected === SPANS_MAX) throw new Refusal(413, `The body has more than ${SPANS_MAX} spans`);
        const span = spanIn(given, resource, scope);
        if (typeof span !== 'string') spans.push({ ...span, project });
        else {
          rejected += 1;
          reason ??= span;
        }
      }
    }
  }
  return { spans, rejected, reason };
}

/** What SDKs say of a service that nobody has named. */
const UNNAMED = /^unknown_service(:|$)/;

function projectOf(attributes: Fields): string | undefined {
  for (const key of ['openinference.project.name', 'service.name']) {
    const name = attributes[key];
    if (typeof name === 'string' && name !== '' && !UNNAMED.test(name)) return name;
  }
  return undefined;
}

function scopeIn({ scope }: Fields): { name: string; version?: string } {
  const { name, version } = isObject(scope) ? scope : {};
  return { name: textOf(name), ...(textOf(version) !== '' && { version: textOf(version) }) };
}

/** The span, or why it is none. */
function spanIn(
  given: Fields,
  resource: SpanLike['resource'],
  scope: NonNullable<SpanLike['instrumentationScope']>,
): Omit<OtlpSpan, 'project'> | string {
  const [traceId, spanId] = [idOf(given.traceId, 32), idOf(given.spanId, 16)];
  if (traceId === undefined) return 'The traceId of a span is no 16 bytes other than zero';
  if (spanId === undefined) return 'The spanId of a span is no 8 bytes other than zero';
  const parentId = isNothing(given.parentSpanId) ? undefined : idOf(given.parentSpanId, 16);
  if (parentId === undefined && !isNothing(given.parentSpanId))
    return `The parentSpanId of span ${spanId} is no 8 bytes`;
  const [start, end] = [timeOf(given.startTimeUnixNano), timeOf(given.endTimeUnixNano)];
  if (start === undefined || start[0] === 0) return `The startTimeUnixNano of span ${spanId} is no time before 2255`;
  if (end === undefined) return `The endTimeUnixNano of span ${spanId} is no time before 2255`;
  const ids: SpanContextLike = { traceId, spanId, traceFlags: countOf(given.flags) & 0xff };
  const hasEnded = end[0] !== 0;
  const span: SpanLike = {
    name: textOf(given.name) || 'span',
    // The API counts from the kind that comes after UNSPECIFIED here.
    kind: Math.max(0, enumOf(given.kind, KINDS) - 1),
    spanContext: () => ids,
    ...(parentId !== undefined && { parentSpanContext: { ...ids, spanId: parentId, isRemote: isRemote(given.flags) } }),
    startTime: start,
    endTime: hasEnded ? end : start,
    status: statusIn(given.status),
    attributes: attributesIn(given),
    links: listIn(given, 'links').map((link) => ({
      context: {
        traceId: textOf(link.traceId).toLowerCase(),
        spanId: textOf(link.spanId).toLowerCase(),
        traceFlags: 0,
      },
      attributes: attributesIn(link),
    })),
    events: listIn(given, 'events').map((event) => ({
      name: textOf(event.name),
      time: timeOf(event.timeUnixNano) ?? start,
      attributes: attributesIn(event),
    })),
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: countOf(given.droppedAttributesCount),
    droppedEventsCount: countOf(given.droppedEventsCount),
    droppedLinksCount: countOf(given.droppedLinksCount),
  };
  return { span, hasEnded };
}

function statusIn(value: unknown): SpanLike['status'] {
  const { code, message } = isObject(value) ? value : {};
  return { code: enumOf(code, STATUS_CODES), ...(textOf(message) !== '' && { message: textOf(message) }) };
}

/** Protojson names of enum values, ordered by their numbers. */
const KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'].map(
  (name) => `SPAN_KIND_${name}`,
);
const STATUS_CODES = ['UNSET', 'OK', 'ERROR'].map((name) => `STATUS_CODE_${name}`);

function enumOf(value: unknown, names: readonly string[]): number {
  return typeof value === 'string' && names.includes(value) ? names.indexOf(value) : countOf(value);
}

/** Bits 8 and 9 of the flags: whether it is known that the parent is in another process, and whether it is. */
function isRemote(flags: unknown): boolean {
  return (countOf(flags) & 0x300) === 0x300;
}

/** Text of an id in lower case; undefined when it is none, or all zero. */
function idOf(value: unknown, length: number): string | undefined {
  if (typeof value !== 'string' || value.length !== length || !/^[0-9a-f]+$/i.test(value)) return undefined;
  return /[^0]/.test(value) ? value.toLowerCase() : undefined;
}

function isNothing(id: unknown): boolean {
  return id === undefined || id === null || (typeof id === 'string' && /^0*$/.test(id));
}

const NANOSECONDS = BigInt(1_000_000_000);
/** Beyond it numbers no longer hold whole microseconds. */
const SECONDS_MAX = BigInt(Date.UTC(2255, 0) / 1_000);

/** Seconds and nanoseconds; zero when there is none, undefined when it cannot be one. */
function timeOf(value: unknown): [number, number] | undefined {
  if (value === undefined || value === null) return [0, 0];
  if (typeof value === 'number' && !Number.isInteger(value)) return undefined;
  if (typeof value === 'string' && !/^\d{1,20}$/.test(value)) return undefined;
  if (typeof value !== 'bigint' && typeof value !== 'string' && typeof value !== 'number') return undefined;
  const all = BigInt(value);
  const seconds = all / NANOSECONDS;
  if (all < 0 || seconds >= SECONDS_MAX) return undefined;
  return [Number(seconds), Number(all % NANOSECONDS)];
}

function attributesIn({ attributes }: Fields): Record<string, unknown> {
  return entriesOf(attributes);
}

/** Defined and not set, so that a key like `__proto__` is one like any other. */
function entriesOf(list: unknown): Record<string, unknown> {
  const all: readonly unknown[] = Array.isArray(list) ? list : [];
  return Object.fromEntries(
    all.flatMap((item) => {
      const value = isObject(item) ? anyValueOf(item.value) : undefined;
      return isObject(item) && typeof item.key === 'string' && value !== undefined ? [[item.key, value]] : [];
    }),
  );
}

/** What an `AnyValue` says, in the form in which SDKs have it; undefined when it says nothing. */
function anyValueOf(value: unknown): unknown {
  if (!isObject(value)) return undefined;
  const { stringValue, boolValue, intValue, doubleValue, arrayValue, kvlistValue, bytesValue } = value;
  if (typeof stringValue === 'string') return stringValue;
  if (typeof boolValue === 'boolean') return boolValue;
  if (typeof intValue === 'number' || typeof intValue === 'string') return intOf(intValue);
  if (typeof doubleValue === 'number') return doubleValue;
  if (doubleValue === 'NaN' || doubleValue === 'Infinity' || doubleValue === '-Infinity') return Number(doubleValue);
  if (isObject(arrayValue)) return (Array.isArray(arrayValue.values) ? arrayValue.values : []).map(anyValueOf);
  if (isObject(kvlistValue)) return entriesOf(kvlistValue.values);
  if (bytesValue instanceof Uint8Array) return bytesValue;
  return typeof bytesValue === 'string' ? Uint8Array.from(Buffer.from(bytesValue, 'base64')) : undefined;
}

/** One that no number can hold stays as its digits. */
function intOf(value: number | string): number | string | undefined {
  if (typeof value === 'string' && !/^-?\d{1,20}$/.test(value)) return undefined;
  const int = Number(value);
  return Number.isSafeInteger(int) ? int : value;
}

function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function listIn(fields: Fields, name: string): Record<string, unknown>[] {
  const list = fields[name] ?? [];
  if (!Array.isArray(list)) throw new Refusal(400, `Expected \`${name}\` to be an array`);
  return list.map((item) => objectIn(item, `What \`${name}\` holds`));
}

function objectIn(value: unknown, what: string): Record<string, unknown> {
  if (!isObject(value)) throw new Refusal(400, `${what} is no object`);
  return value;
}
