/** Spans as OTLP describes them (opentelemetry-proto, `trace.proto`), for its encodings protobuf and JSON. */

/** The value of an attribute. Whole numbers are sent as integers. */
export type AttributeValue = string | number | boolean | readonly string[];

export type OtlpAttributes = ReadonlyMap<string, AttributeValue>;

export interface OtlpEvent {
  readonly name: string;
  /** Microseconds since 1970. */
  readonly timeUs: number;
  readonly attributes: OtlpAttributes;
}

export interface OtlpLink {
  readonly traceId: string;
  readonly spanId: string;
  readonly attributes: OtlpAttributes;
}

export interface OtlpScope {
  readonly name: string;
  readonly version: string;
}

export interface OtlpSpan {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  /** The number of a `SpanKind` in OTLP, where `INTERNAL` is 1. */
  readonly kind: number;
  /** Microseconds since 1970. */
  readonly startUs: number;
  readonly endUs: number;
  readonly attributes: OtlpAttributes;
  readonly events: readonly OtlpEvent[];
  readonly links: readonly OtlpLink[];
  /** 0 unset, 1 ok, 2 error. */
  readonly statusCode: number;
  readonly statusMessage: string;
}

export interface SpanGroup {
  readonly resource: OtlpAttributes;
  readonly scope: OtlpScope;
  readonly spans: OtlpSpan[];
}

/** One of OTLP's encodings of a request, `ExportTraceServiceRequest`. */
export interface OtlpEncoding {
  readonly contentType: string;
  encode(groups: readonly SpanGroup[]): Uint8Array;
  join(slices: Uint8Array[]): Uint8Array[];
}
