import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { entriesOf } from './active-spans.ts';
import type { LogRecordLike, LogRecordProcessorLike } from './log-record-like.ts';
import { attributesOfEvent, isMessageEvent } from './message-events.ts';
import { SpanRun } from './span-run.ts';
import { isObject, text } from './values.ts';

/**
 * Joins the messages that instrumentations tell by log records, and not on their spans, to the runs of these spans; for the
 * `processors` of a logger provider. It needs a `RunSpanProcessor` in the same process, and sends nothing by itself: a record
 * belongs to the run of the span that was active when it was emitted, in whatever processor that is.
 *
 * Read are the events of the GenAI conventions, by `eventName` or the attribute `event.name`; all other records are left
 * alone, and none is changed. What attributes of the span say goes before. All records of one span are bounded by the limits
 * of one payload. A record that comes after its span has ended is left out, and the first of them is told in one line.
 */
export class RunLogRecordProcessor implements LogRecordProcessorLike {
  #isShutdown = false;

  onEmit(record: LogRecordLike): void {
    if (!this.#isShutdown) guard('RunLogRecordProcessor.onEmit', () => join(record));
  }

  /** Spares instrumentations the records that nobody would read. */
  enabled(options: { readonly eventName?: string | undefined }): boolean {
    const name = options?.eventName;
    return !this.#isShutdown && (name === undefined || isMessageEvent(name));
  }

  /** There is nothing to wait for: runs are flushed by the processor of their spans. */
  async forceFlush(): Promise<void> {}

  /** Later records are left alone. */
  async shutdown(): Promise<void> {
    this.#isShutdown = true;
  }
}

function join({ spanContext, attributes, body, eventName }: LogRecordLike): void {
  const name = text(eventName) ?? text(attributes['event.name']);
  if (name === undefined || spanContext === undefined || !isMessageEvent(name)) return;
  const values = attributesOfEvent(name, isObject(body) ? { ...body, ...attributes } : attributes);
  if (values === undefined) return;
  for (const entry of entriesOf({ spanContext: () => spanContext })) {
    if (!(entry instanceof SpanRun) || entry.tell(values)) continue;
    diagnostics.warnOnce(
      'late log records',
      'log records with messages came after their span had ended; they are left out.',
    );
  }
}
