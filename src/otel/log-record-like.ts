import type { SpanContextLike } from './span-like.ts';

/** A log record of any version of the SDK. */
export interface LogRecordLike {
  /** The span that was active when the record was emitted. */
  readonly spanContext?: SpanContextLike | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** Versions before 0.57 and older instrumentations set the attribute `event.name` instead. */
  readonly eventName?: string | undefined;
}

/** The log record processor interface of the SDK. */
export interface LogRecordProcessorLike {
  onEmit(record: LogRecordLike): void;
  enabled(options: { readonly eventName?: string | undefined }): boolean;
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}
