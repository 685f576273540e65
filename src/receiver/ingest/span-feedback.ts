import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf } from '../../base/text.ts';
import { evaluationsOf } from '../../otel/mapping/evaluations.ts';
import type { SpanLike } from '../../otel/span-like.ts';
import type { Feedback } from '../domain/feedback.ts';
import { readFeedback } from '../http/feedback-fields.ts';

/** Returns the evaluations of a span as feedback. Invalid ones are left out, and one line says so. */
export function feedbackOn(span: SpanLike, runId: string): Feedback[] {
  return evaluationsOf(span, runId).flatMap(({ created_at, modified_at = created_at, ...fields }) => {
    try {
      const feedback = readFeedback({ ...fields, run_id: runId }, ['span', 'events']);
      return [{ ...feedback, created_at, modified_at }];
    } catch (error) {
      diagnostics.warnOnce(
        'evaluation',
        `an evaluation of a span is not valid feedback: ${messageOf(error)}; logged once`,
      );
      return [];
    }
  });
}
