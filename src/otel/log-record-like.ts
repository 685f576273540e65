import type { SpanContextLike } from './span-like.ts';

/** What we use of a log record, whichever version of the SDK made it. */
export interface LogRecordLike {
  /** The span that was active when the record was emitted. */
  readonly spanContext?: SpanContextLike | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** Versions before 0.57, and instrumentations as old, have it in the attribute `event.name`. */
  readonly eventName?: string | undefined;
}

/** The interface of the SDK that `RunLogRecordProcessor` meets. */
export interface LogRecordProcessorLike {
  onEmit(record: LogRecordLike): void;
  enabled(options: { readonly eventName?: string | undefined }): boolean;
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}
