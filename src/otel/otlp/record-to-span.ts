import { exactJson } from '../../payload/fields.ts';
import { END_REASON, endReasonOf, type RunRecord } from '../../run/record.ts';
import { parseIsoTimestamp } from '../../run/time.ts';
import type { OtlpEvent } from './otlp-span.ts';
import { EVALUATION, OWN } from './own-attributes.ts';
import { attributesOfFields, type SentRun } from './run-to-span.ts';

/** Feedback on a run, which becomes an event of the span. */
export interface Evaluation {
  readonly key: string;
  readonly score?: number | boolean;
  readonly value?: unknown;
  readonly comment?: string;
  readonly created_at: string;
}

export function sentRecord(record: RunRecord, evaluations: readonly Evaluation[] = []): SentRun {
  const { metadata, runtime, [END_REASON]: _, ...extra } = record.extra ?? {};
  const text = (value: unknown): string | undefined => (value === undefined ? undefined : exactJson(value));
  return {
    run: {
      id: record.id,
      traceId: record.trace_id,
      dottedOrder: record.dotted_order,
      parentRunId: record.parent_run_id,
      name: record.name,
      runType: record.run_type,
      startTime: record.start_time,
      project: record.session_id === undefined ? (record.session_name ?? 'default') : { id: record.session_id },
      tags: record.tags,
      metadata: metadata && new Map(Object.entries(metadata).map(([key, value]) => [key, exactJson(value)])),
      runtime: text(runtime),
      referenceExampleId: record.reference_example_id,
    },
    inputs: text(record.inputs),
    outputs: text(record.outputs),
    events: text(record.events),
    endTime: record.end_time,
    error: record.error,
    endReason: endReasonOf(record),
    isIncomplete: record.end_time === undefined,
    extra: Object.keys(extra).length === 0 ? undefined : exactJson(extra),
    evaluations: evaluations.map(evaluationEvent),
  };
}

/** Converts feedback to the event `gen_ai.evaluation.result` of the GenAI conventions. */
function evaluationEvent(evaluation: Evaluation): OtlpEvent {
  const { key, score, value, comment, created_at } = evaluation;
  const attributes = attributesOfFields({
    'gen_ai.evaluation.name': key,
    'gen_ai.evaluation.score.value': typeof score === 'boolean' ? Number(score) : score,
    'gen_ai.evaluation.score.label': typeof value === 'string' ? value : undefined,
    'gen_ai.evaluation.explanation': comment,
  });
  return {
    name: EVALUATION,
    timeUs: parseIsoTimestamp(created_at) ?? 0,
    attributes: attributes.set(OWN.feedback, exactJson(evaluation)),
  };
}
