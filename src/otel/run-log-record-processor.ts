import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { isFields } from '../payload/fields.ts';
import { text } from './conventions/values.ts';
import { entriesOf } from './live/active-spans.ts';
import { SpanRun } from './live/span-run.ts';
import { attributesOfEvent, isExceptionEvent, isMessageEvent } from './mapping/message-events.ts';
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

/**
 * Some instrumentations emit messages and exceptions as log records. This processor adds these records to the runs of
 * their spans. Add the processor to the `processors` of a logger provider. The processor sends nothing itself and needs
 * a `RunSpanProcessor` in the same process. A record is added to the run of the span that was active when the record
 * was emitted, in each `RunSpanProcessor` that has recorded the span.
 *
 * The processor reads the message events of the GenAI conventions and the events `exception` and
 * `gen_ai.client.operation.exception`. Events are identified by `eventName` or by the attribute `event.name`. All other
 * records are ignored, and no record is modified. Attributes and events of the span take precedence over log records.
 * The limits of one payload apply to all messages of a span together. A record that is emitted after its span has ended
 * is dropped. A warning is logged for the first dropped record.
 */
export class RunLogRecordProcessor implements LogRecordProcessorLike {
  #isShutdown = false;

  onEmit(record: LogRecordLike): void {
    if (!this.#isShutdown) guard('RunLogRecordProcessor.onEmit', () => join(record));
  }

  /** Returns false for records that this processor would ignore, so that instrumentations need not create them. */
  enabled(options: { readonly eventName?: string | undefined }): boolean {
    const name = options?.eventName;
    return !this.#isShutdown && (name === undefined || isRead(name));
  }

  /** The `RunSpanProcessor` flushes the runs. */
  async forceFlush(): Promise<void> {}

  /** Stops reading records. Later records are ignored. */
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
    if (!(entry instanceof SpanRun)) continue;
    if (isException ? entry.addException(values) : entry.addMessages(values)) continue;
    diagnostics.warnOnce(
      'late log records',
      'log records with messages or exceptions arrived after the end of their span and are dropped.',
    );
  }
}

function isRead(name: string): boolean {
  return isMessageEvent(name) || isExceptionEvent(name);
}
