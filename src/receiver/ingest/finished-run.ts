import { defaultLimits } from '../../config/limits.ts';
import type { SpanCapture } from '../../otel/mapping/mapped-fields.ts';
import { runIdOf, startUsOf } from '../../otel/mapping/span-identity.ts';
import { openOriginJson } from '../../otel/mapping/span-origin.ts';
import {
  DEFAULT_MAPPING,
  projectInAttributes,
  type SpanFields,
  type SpanMapping,
  spanToOpenRun,
  spanToRun,
} from '../../otel/mapping/span-to-run.ts';
import type { SpanLike } from '../../otel/span-like.ts';
import { parseExact } from '../../payload/fields.ts';
import { defaultRedaction } from '../../payload/redaction/redact.ts';
import { type EncodedPayload, shownName } from '../../payload/serialize.ts';
import { payloadRules } from '../../payload/truncate.ts';
import { isFilled } from '../../run/encoded-run.ts';
import { withTags } from '../../run/fields.ts';
import { type Attachment, END_REASON, type RunRecord } from '../../run/record.ts';
import { isoTimestamp } from '../../run/time.ts';

/** The run for a span from another process, with the fields that a `RunSpanProcessor` with default options records. */
interface FinishedRun {
  readonly id: string;
  /** The run's fields except the payloads and the position in the trace. */
  readonly fields: Omit<RunRecord, 'id' | 'trace_id' | 'dotted_order' | 'inputs' | 'outputs' | 'events'>;
  /** JSON text of each payload that is not empty. */
  readonly texts: { inputs?: string; outputs?: string; events?: string };
  readonly attachments: readonly Attachment[];
}

/** The default options of a `RunSpanProcessor`. */
export const CAPTURE: SpanCapture = {
  hideInputs: false,
  hideOutputs: false,
  payload: payloadRules(defaultLimits, defaultRedaction()),
  attachmentBytes: defaultLimits.attachmentBytes,
};

/** Maps a span to a run, or only to its start if it has not ended. `project` applies if the span names none. */
export function finishedRun(
  span: SpanLike,
  project: string | undefined,
  hasEnded: boolean,
  mapping: SpanMapping = DEFAULT_MAPPING,
): FinishedRun {
  const startUs = startUsOf(span);
  const ids = span.spanContext();
  const parentIds = span.parentSpanContext;
  const named = projectInAttributes(span.attributes) ?? project;
  const fields: Partial<SpanFields> & Pick<SpanFields, 'name' | 'runType'> = hasEnded
    ? spanToRun(span, CAPTURE, { startUs, parentIds, mapping })
    : { ...spanToOpenRun(span, CAPTURE, mapping.index), metadata: new Map([['otel', openOriginJson(ids, parentIds)]]) };
  const tags = withTags(undefined, fields.tags, CAPTURE.payload);
  return {
    id: runIdOf(startUs, ids),
    fields: {
      name: shownName(fields.name, CAPTURE.payload),
      run_type: fields.runType,
      ...(named !== undefined && { session_name: named }),
      start_time: isoTimestamp(startUs),
      ...(fields.endTime !== undefined && { end_time: fields.endTime }),
      ...(fields.error !== undefined && { error: fields.error }),
      ...(tags !== undefined && { tags: [...tags] }),
      extra: {
        metadata: Object.fromEntries([...(fields.metadata ?? [])].map(([key, json]) => [key, parseExact(json)])),
        ...(fields.endReason !== undefined && { [END_REASON]: fields.endReason }),
      },
    },
    texts: {
      ...(isFilled(fields.inputs?.json) && { inputs: fields.inputs.json }),
      ...(isFilled(fields.outputs?.json) && { outputs: fields.outputs.json }),
      ...(isFilled(fields.events) && { events: fields.events }),
    },
    attachments: [...attachmentsOf(fields.inputs), ...attachmentsOf(fields.outputs)],
  };
}

/** Returns the attachments of a payload. Attachments of spans are never `Blob` objects. */
function attachmentsOf(payload: EncodedPayload | undefined): Attachment[] {
  return (payload?.attachments ?? []).flatMap(({ bytes, ...rest }) =>
    bytes instanceof Uint8Array ? [{ ...rest, bytes }] : [],
  );
}
