import { isExceptionEvent, isMessageEvent } from '../../otel/mapping/message-events.ts';
import { EVALUATION } from '../../otel/otlp/own-attributes.ts';
import type { SpanEventLike } from '../../otel/span-like.ts';
import { isFields } from '../../payload/fields.ts';
import type { SpanIds } from '../domain/identity.ts';
import { inTurns } from '../domain/in-turns.ts';
import { HttpError } from '../http/http-error.ts';
import { codexSpanIds } from './codex.ts';
import {
  anyValueOf,
  attributesIn,
  attributeText,
  type Fields,
  isZero,
  objectIn,
  parseId,
  parseTime,
  RecordLists,
} from './otlp-values.ts';

/** Maximum number of messages, exceptions and evaluations per request. */
const RECORDS_MAX = 10_000;

/** A log record of a span, as an event of this span. */
export interface SpanRecord {
  readonly span: SpanIds;
  readonly event: SpanEventLike;
}

/**
 * Reads an `ExportLogsServiceRequest` in its JSON form. Returns the messages, exceptions and evaluations of spans, and the
 * number of other log records, with the problem of those that cannot be read. Throws an HTTP 400 error if the request is malformed, or a 413 error if it is too large.
 */
export async function readOtlpLogs(
  request: unknown,
): Promise<{ records: SpanRecord[]; others: number; problem: string }> {
  const records: SpanRecord[] = [];
  const lists = new RecordLists();
  let others = 0;
  for (const resourceLogs of lists.in(objectIn(request, 'The body'), 'resourceLogs')) {
    for (const scopeLogs of lists.in(resourceLogs, 'scopeLogs')) {
      for await (const given of inTurns(lists.in(scopeLogs, 'logRecords'))) {
        const record = recordOf(given);
        if (record === undefined) others += 1;
        else if (records.push(record) > RECORDS_MAX)
          throw new HttpError(413, `The body has more than ${RECORDS_MAX} log records of spans`);
      }
    }
  }
  lists.throwIfAlone(records.length + others);
  return { records, others: others + lists.unread, problem: lists.problem };
}

function recordOf(given: Fields): SpanRecord | undefined {
  const [traceId, spanId] = [parseId(given.traceId, 32), parseId(given.spanId, 16)];
  const attributes = attributesIn(given.attributes);
  // The attribute comes first, because Rust's `tracing` sets `eventName` to a source location.
  const name = attributeText(attributes['event.name']) || attributeText(given.eventName);
  const isException = isExceptionEvent(name);
  if (traceId === undefined || spanId === undefined) return undefined;
  if (!isException && !isMessageEvent(name) && name !== EVALUATION) return undefined;
  const time = [given.timeUnixNano, given.observedTimeUnixNano].find((one) => !isZero(one ?? null));
  const body = anyValueOf(given.body);
  const event = {
    name: isException ? 'exception' : name,
    time: parseTime(time) ?? [0, 0],
    attributes: { ...(isFields(body) && body), ...attributes },
  } as const;
  const span = { traceId, spanId };
  return { span: name.startsWith('codex.') ? codexSpanIds(span, attributes) : span, event };
}
