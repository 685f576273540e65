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
  /** The span that was active when the record was emitted. */
  readonly spanContext?: SpanContextLike | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** Versions before 0.57 and older instrumentations set the attribute `event.name` instead. */
  readonly eventName?: string | undefined;
}

/** The SDK's log record processor interface. */
export interface LogRecordProcessorLike {
  onEmit(record: LogRecordLike): void;
  enabled(options: { readonly eventName?: string | undefined }): boolean;
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}

/**
 * Adds messages and exceptions that instrumentations emit as log records to the runs of their spans. Add this processor
 * to a logger provider's `processors`. The processor sends nothing itself and needs a `RunSpanProcessor` in the same
 * process. A record is added to the run of the span that was active when the record was emitted, in each
 * `RunSpanProcessor` that has recorded the span.
 *
 * The processor reads the message events of the GenAI conventions and the events `exception` and
 * `gen_ai.client.operation.exception`, identified by `eventName` or the attribute `event.name`. It ignores all other
 * records and modifies none. Span attributes and events take precedence over log records. One payload's limits apply to
 * all messages of a span together. A record emitted after its span has ended is dropped, with a warning for the first
 * one.
 */
export class RunLogRecordProcessor implements LogRecordProcessorLike {
  #isShutdown = false;

  onEmit(record: LogRecordLike): void {
    if (!this.#isShutdown) guard('RunLogRecordProcessor.onEmit', () => join(record));
  }

  /** Whether this processor would use a record. If false, instrumentations need not create it. */
  enabled(options: { readonly eventName?: string | undefined }): boolean {
    const name = options?.eventName;
    return !this.#isShutdown && (name === undefined || isRead(name));
  }

  /** Has nothing to flush, because `RunSpanProcessor` owns the runs. */
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
