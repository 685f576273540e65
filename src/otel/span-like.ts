import type { Context } from '@opentelemetry/api';

/**
 * A span from OpenTelemetry SDK 1.x, 2.x or 3.x. Type names differ between these versions, but the structure is the
 * same.
 */
export interface SpanLike {
  readonly name: string;
  readonly kind: number;
  spanContext(): SpanContextLike;
  readonly parentSpanContext?: SpanContextLike;
  /** SDK 1.x sets this field instead of `parentSpanContext`. */
  readonly parentSpanId?: string;
  /** Start time as seconds and nanoseconds since 1970. `endTime` has the same format. */
  readonly startTime: readonly [number, number];
  readonly endTime: readonly [number, number];
  readonly status: { readonly code: number; readonly message?: string };
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly LinkLike[];
  readonly events: readonly SpanEventLike[];
  readonly resource: ResourceLike;
  readonly instrumentationScope?: ScopeLike;
  /** SDK 1.x sets this field instead of `instrumentationScope`. */
  readonly instrumentationLibrary?: ScopeLike;
  readonly droppedAttributesCount?: number;
  readonly droppedEventsCount?: number;
  readonly droppedLinksCount?: number;
}

/** The trace and span id of an OpenTelemetry span. */
export interface SpanContextLike {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly isRemote?: boolean;
}

/** A link from one OpenTelemetry span to another. */
export interface LinkLike {
  readonly context: SpanContextLike;
  readonly attributes?: Readonly<Record<string, unknown>>;
}

/** A timestamped event that was recorded in an OpenTelemetry span. */
export interface SpanEventLike {
  readonly name: string;
  readonly time: readonly [number, number];
  readonly attributes?: Readonly<Record<string, unknown>>;
}

/** The entity that produces a span, usually a service. */
export interface ResourceLike {
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Whether some attributes are still pending. The SDK logs a warning if attributes are read too early. */
  readonly asyncAttributesPending?: boolean;
  waitForAsyncAttributes?(): Promise<void>;
}

/** The instrumentation library that created a span. */
export interface ScopeLike {
  readonly name: string;
  readonly version?: string;
}

/** The span processor interface of the OpenTelemetry SDK. */
export interface SpanProcessorLike {
  onStart(span: SpanLike, parentContext: Context): void;
  onEnd(span: SpanLike): void;
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}
