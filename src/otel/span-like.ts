import type { Context } from '@opentelemetry/api';

/**
 * What we use of a span, whichever line of the SDK made it: 1.x, 2.x and 3.x differ in names and agree in shape, so none
 * of their types is named here.
 */
export interface SpanLike {
  readonly name: string;
  readonly kind: number;
  spanContext(): SpanContextLike;
  readonly parentSpanContext?: SpanContextLike;
  /** In 1.x, in place of `parentSpanContext`. */
  readonly parentSpanId?: string;
  /** Seconds and nanoseconds, as is `endTime`. */
  readonly startTime: readonly [number, number];
  readonly endTime: readonly [number, number];
  readonly status: { readonly code: number; readonly message?: string };
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly LinkLike[];
  readonly events: readonly SpanEventLike[];
  readonly resource: ResourceLike;
  readonly instrumentationScope?: ScopeLike;
  /** In 1.x, in place of `instrumentationScope`. */
  readonly instrumentationLibrary?: ScopeLike;
  readonly droppedAttributesCount?: number;
  readonly droppedEventsCount?: number;
  readonly droppedLinksCount?: number;
}

/** The ids of a span. */
export interface SpanContextLike {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly isRemote?: boolean;
}

/** A reference from a span to another. */
export interface LinkLike {
  readonly context: SpanContextLike;
  readonly attributes?: Readonly<Record<string, unknown>>;
}

/** Something that happened within a span. */
export interface SpanEventLike {
  readonly name: string;
  readonly time: readonly [number, number];
  readonly attributes?: Readonly<Record<string, unknown>>;
}

/** The entity that a span comes from, as a rule the service. */
export interface ResourceLike {
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Some attributes are not known yet; reading them now makes the SDK complain. */
  readonly asyncAttributesPending?: boolean;
  waitForAsyncAttributes?(): Promise<void>;
}

/** The instrumentation that made a span. */
export interface ScopeLike {
  readonly name: string;
  readonly version?: string;
}

/** The interface of the SDK that `RunSpanProcessor` meets. */
export interface SpanProcessorLike {
  onStart(span: SpanLike, parentContext: Context): void;
  onEnd(span: SpanLike): void;
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}

/** The interface of the SDK that `RunSpanExporter` meets. */
export interface SpanExporterLike {
  export(spans: readonly SpanLike[], resultCallback: (result: ExportResultLike) => void): void;
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}

/** How an export went: 0 is success, 1 failure. */
export interface ExportResultLike {
  code: 0 | 1;
  error?: Error;
}
