import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { isFields } from '../payload/fields.ts';
import { text } from './conventions/values.ts';
import { entriesOf } from './live/active-spans.ts';
import { SpanRun } from './live/span-run.ts';
import { attributesOfEvent, isExceptionEvent, isMessageEvent } from './mapping/message-events.ts';
import type { SpanContextLike } from './span-like.ts';

/** A log record from any SDK version. */
export interface LogRecordLike {
  /** The span that was active when the log record was emitted. */
  readonly spanContext?: SpanContextLike | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** Event name. SDK versions before 0.57 and older instrumentations set the attribute `event.name` instead. */
  readonly eventName?: string | undefined;
}

/** The log record processor interface of the OpenTelemetry SDK. */
export interface LogRecordProcessorLike {
  onEmit(record: LogRecordLike): void;
  enabled(options: { readonly eventName?: string | undefined }): boolean;
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}

/**
 * Adds messages and exceptions from log records to runs. Add this processor to the `processors` of a logger provider.
 * The processor sends nothing itself and requires a `RunSpanProcessor` in the same process. Each log record is added to
 * the run of the span that was active when the record was emitted. If several processors have recorded the span, each
 * of their runs gets the log record.
 *
 * The processor reads the message events of the GenAI conventions, `exception` and `gen_ai.client.operation.exception`.
 * Events are identified by `eventName` or the attribute `event.name`. All other log records are ignored. Log records
 * are never modified. Span attributes and span events take precedence over log records. All messages of a span together
 * must stay within the limits for one payload. Log records that are emitted after their span has ended are dropped. The
 * first dropped log record causes a warning.
 */
export class RunLogRecordProcessor implements LogRecordProcessorLike {
  #isShutdown = false;

  onEmit(record: LogRecordLike): void {
    if (!this.#isShutdown) guard('RunLogRecordProcessor.onEmit', () => join(record));
  }

  /** Returns whether this processor would use a log record. Instrumentations need not create other log records. */
  enabled(options: { readonly eventName?: string | undefined }): boolean {
    const name = options?.eventName;
    return !this.#isShutdown && (name === undefined || isRead(name));
  }

  /** Does nothing and resolves immediately. `RunSpanProcessor` flushes the runs. */
  async forceFlush(): Promise<void> {}

  /** Stops the processor. Later log records are ignored. */
  async shutdown(): Promise<void> {
    this.#isShutdown = true;
  }
}

function join({ spanContext, attributes, body, eventName }: LogRecordLike): void {
  const name = text(eventName) ?? text(attributes['event.name']);
  if (name === undefined || spanContext === undefined || !isRead(name)) return;
  const isException = isExceptionEvent(name);
  const values = isException
    ? attributes
    : attributesOfEvent(name, isFields(body) ? { ...body, ...attributes } : attributes);
  if (values === undefined) return;
  for (const entry of entriesOf({ spanContext: () => spanContext })) {
    if (!(entry instanceof SpanRun) || entry.addLog(values, isException)) continue;
    diagnostics.warnOnce(
      'late log records',
      'log records with messages or exceptions arrived after the end of their span and are dropped.',
    );
  }
}

function isRead(name: string): boolean {
  return isMessageEvent(name) || isExceptionEvent(name);
}
