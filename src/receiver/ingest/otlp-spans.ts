import * as v from 'valibot';
import { isObject } from '../../config/checker.ts';
import type { SpanContextLike, SpanLike } from '../../otel/span-like.ts';
import { HttpError, ValidationIssues } from '../http/http-error.ts';
import { parsed, validate } from '../http/validation.ts';

/**
 * Maximum number of spans per request. By default, OpenTelemetry exporters send up to 512 spans, and collectors up to
 * 8192. Neither exporters nor collectors split a rejected request.
 */
const SPANS_MAX = 10_000;

export interface OtlpSpan {
  readonly span: SpanLike;
  readonly hasEnded: boolean;
  /** Project name from the resource attributes, usually the service name. */
  readonly project: string | undefined;
}

/** The valid spans in a request, and the number of invalid spans. */
interface OtlpSpans {
  readonly spans: readonly OtlpSpan[];
  readonly rejected: number;
  /** Error message for the first invalid span. Empty if all spans are valid. */
  readonly reason: string;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads an `ExportTraceServiceRequest` in its JSON form. Ids are hexadecimal. 64-bit numbers are text, or bigints if
 * the request was protobuf. Throws an HTTP 400 error if the request is malformed, or a 413 error if it contains too
 * many spans.
 */
export function readOtlpSpans(request: unknown): OtlpSpans {
  const spans: OtlpSpan[] = [];
  const issues = new ValidationIssues();
  let rejected = 0;
  for (const resourceSpans of listIn(objectIn(request, 'The body'), 'resourceSpans')) {
    const attributes = attributesIn(isObject(resourceSpans.resource) ? resourceSpans.resource.attributes : []);
    // All spans of a resource share one object, because the mapping caches metadata by resource object.
    const resource = { attributes };
    const project = resourceProject(attributes);
    for (const scopeSpans of listIn(resourceSpans, 'scopeSpans')) {
      const { name, version } = isObject(scopeSpans.scope) ? scopeSpans.scope : {};
      const scope = { name: textOf(name), ...(textOf(version) !== '' && { version: textOf(version) }) };
      for (const given of listIn(scopeSpans, 'spans')) {
        if (spans.length + rejected === SPANS_MAX) {
          throw new HttpError(413, `The body has more than ${SPANS_MAX} spans`);
        }
        const identity = validate(identitySchema, given, ['span'], issues);
        if (identity === undefined) {
          rejected += 1;
          continue;
        }
        const span = spanOf(given, identity, resource, scope);
        spans.push({ span, hasEnded: identity.endTimeUnixNano !== null, project });
      }
    }
  }
  return { spans, rejected, reason: issues.first ?? '' };
}

/** Matches the default service name of OpenTelemetry SDKs. */
const UNNAMED = /^unknown_service(:|$)/;

function resourceProject(attributes: Fields): string | undefined {
  return ['openinference.project.name', 'service.name']
    .map((key) => textOf(attributes[key]))
    .find((name) => name !== '' && !UNNAMED.test(name));
}

const TIME = 'nanoseconds between 1970 and 2255, not seconds, milliseconds or microseconds';

/** Schema for the required fields of a span. Invalid values in other fields are ignored. */
const identitySchema = v.object({
  traceId: parsed('32 hexadecimal digits, not all zero', (value) => parseId(value, 32)),
  spanId: parsed('16 hexadecimal digits, not all zero', (value) => parseId(value, 16)),
  parentSpanId: v.optional(parsed('16 hexadecimal digits', (value) => (isZero(value) ? null : parseId(value, 16)))),
  startTimeUnixNano: parsed(TIME, (value) => (isZero(value) ? undefined : parseTime(value))),
  endTimeUnixNano: v.optional(
    parsed(TIME, (value) => (isZero(value) ? null : parseTime(value))),
    null,
  ),
});

function isZero(value: unknown): boolean {
  return typeof value === 'string' ? /^0*$/.test(value) : value === null || value === 0 || value === BigInt(0);
}

function spanOf(
  given: Fields,
  identity: v.InferOutput<typeof identitySchema>,
  resource: SpanLike['resource'],
  scope: NonNullable<SpanLike['instrumentationScope']>,
): SpanLike {
  const { traceId, spanId, parentSpanId: parentId, startTimeUnixNano: start, endTimeUnixNano: end } = identity;
  const flags = countOrZero(given.flags);
  const ids: SpanContextLike = { traceId, spanId, traceFlags: flags & 0xff };
  // Bit 9 is set if the parent span is remote, but is valid only if bit 8 is set.
  const isRemote = (flags & 0x300) === 0x300;
  const { code, message } = isObject(given.status) ? given.status : {};
  return {
    name: textOf(given.name) || 'span',
    // Span kinds are one lower in the OpenTelemetry API than in OTLP, because the API has no `UNSPECIFIED`.
    kind: Math.max(0, enumOf(given.kind, KINDS) - 1),
    spanContext: () => ids,
    ...(parentId && { parentSpanContext: { ...ids, spanId: parentId, isRemote } }),
    startTime: start,
    endTime: end ?? start,
    status: { code: enumOf(code, STATUS_CODES), ...(textOf(message) !== '' && { message: textOf(message) }) },
    attributes: attributesIn(given.attributes),
    links: listIn(given, 'links').map((link) => ({
      context: {
        traceId: textOf(link.traceId).toLowerCase(),
        spanId: textOf(link.spanId).toLowerCase(),
        traceFlags: 0,
      },
      attributes: attributesIn(link.attributes),
    })),
    events: listIn(given, 'events').map((event) => ({
      name: textOf(event.name),
      time: parseTime(event.timeUnixNano) ?? start,
      attributes: attributesIn(event.attributes),
    })),
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: countOrZero(given.droppedAttributesCount),
    droppedEventsCount: countOrZero(given.droppedEventsCount),
    droppedLinksCount: countOrZero(given.droppedLinksCount),
  };
}

/** Names of the enum values in protobuf's JSON format, in numerical order. */
const KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'].map(
  (name) => `SPAN_KIND_${name}`,
);
const STATUS_CODES = ['UNSET', 'OK', 'ERROR'].map((name) => `STATUS_CODE_${name}`);

function enumOf(value: unknown, names: readonly string[]): number {
  return typeof value === 'string' && names.includes(value) ? names.indexOf(value) : countOrZero(value);
}

function parseId(value: unknown, length: number): string | undefined {
  if (typeof value !== 'string' || value.length !== length || !/^[0-9a-f]+$/i.test(value)) return undefined;
  return /[^0]/.test(value) ? value.toLowerCase() : undefined;
}

const NANOSECONDS = BigInt(1_000_000_000);
/** Latest accepted time, in seconds since 1970. Later times in microseconds would exceed `Number.MAX_SAFE_INTEGER`. */
const SECONDS_MAX = BigInt(Date.UTC(2255, 0) / 1_000);

/** Parses a timestamp to seconds and nanoseconds. Returns undefined if the value is invalid. */
function parseTime(value: unknown): [number, number] | undefined {
  const isInteger = typeof value === 'bigint' || Number.isInteger(value) || /^\d{1,20}$/.test(textOf(value));
  if (!isInteger) return undefined;
  const all = BigInt(value as bigint | number | string);
  const seconds = all / NANOSECONDS;
  if (all < 0 || seconds >= SECONDS_MAX || isInOtherUnit(Number(all))) return undefined;
  return [Number(seconds), Number(all % NANOSECONDS)];
}

/** The years 2000 and 2255 in seconds. */
const [UNIT_MIN, UNIT_MAX] = [946_684_800, 8_993_808_000];

/** Returns whether a time is one between 2000 and 2255 in seconds, milliseconds or microseconds. */
function isInOtherUnit(time: number): boolean {
  return [1, 1e3, 1e6].some((perSecond) => time >= UNIT_MIN * perSecond && time < UNIT_MAX * perSecond);
}

/**
 * Converts a list of `KeyValue` to an object. `Object.fromEntries` defines own properties, so even the key `__proto__`
 * is safe.
 */
function attributesIn(list: unknown): Record<string, unknown> {
  const all: readonly unknown[] = Array.isArray(list) ? list : [];
  return Object.fromEntries(
    all.flatMap((item) => {
      const value = isObject(item) ? anyValueOf(item.value) : undefined;
      return isObject(item) && typeof item.key === 'string' && value !== undefined ? [[item.key, value]] : [];
    }),
  );
}

/** Converts an `AnyValue` to the value that OpenTelemetry SDKs use. Returns undefined if the `AnyValue` is empty. */
function anyValueOf(value: unknown): unknown {
  if (!isObject(value)) return undefined;
  const { stringValue, boolValue, intValue, doubleValue, arrayValue, kvlistValue, bytesValue } = value;
  if (typeof stringValue === 'string') return stringValue;
  if (typeof boolValue === 'boolean') return boolValue;
  if (typeof intValue === 'number' || typeof intValue === 'string') return intOf(intValue);
  if (typeof doubleValue === 'number') return doubleValue;
  if (doubleValue === 'NaN' || doubleValue === 'Infinity' || doubleValue === '-Infinity') return Number(doubleValue);
  if (isObject(arrayValue)) return (Array.isArray(arrayValue.values) ? arrayValue.values : []).map(anyValueOf);
  if (isObject(kvlistValue)) return attributesIn(kvlistValue.values);
  if (bytesValue instanceof Uint8Array) return bytesValue;
  return typeof bytesValue === 'string' ? Uint8Array.from(Buffer.from(bytesValue, 'base64')) : undefined;
}

/**
 * Returns a safe integer as a number, and any other integer as text. Returns undefined if the text is not an integer.
 */
function intOf(value: number | string): number | string | undefined {
  if (typeof value === 'string' && !/^-?\d{1,20}$/.test(value)) return undefined;
  const int = Number(value);
  return Number.isSafeInteger(int) ? int : value;
}

function countOrZero(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : 0;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function listIn(fields: Fields, name: string): Record<string, unknown>[] {
  const inSnakeCase = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  if (!Object.hasOwn(fields, name) && Object.hasOwn(fields, inSnakeCase)) {
    throw new HttpError(400, `Expected \`${name}\`, got \`${inSnakeCase}\`: OTLP/JSON spells fields in lowerCamelCase`);
  }
  const list = fields[name] ?? [];
  if (!Array.isArray(list)) throw new HttpError(400, `Expected \`${name}\` to be an array`);
  return list.map((item) => objectIn(item, `An item of \`${name}\``));
}

function objectIn(value: unknown, what: string): Record<string, unknown> {
  if (!isObject(value)) throw new HttpError(400, `${what} is not an object`);
  return value;
}
