/** The attributes that only runspan's receiver reads. With them, a span becomes the same run again. */
export const OWN = {
  name: 'runspan.name',
  order: 'runspan.dotted_order',
  runType: 'runspan.run_type',
  projectId: 'runspan.project_id',
  example: 'runspan.reference_example_id',
  runtime: 'runspan.runtime',
  /** The other fields of `extra` as JSON text. */
  extra: 'runspan.extra',
  /** The error. Or in an event: true if its stack is the error. */
  error: 'runspan.error',
  /** The data of an event as JSON text, if attributes cannot hold all of it. */
  kwargs: 'runspan.kwargs',
  incomplete: 'runspan.incomplete',
  endReason: 'runspan.end_reason',
  /** In the event of an evaluation: all fields of the feedback as JSON text. */
  feedback: 'runspan.feedback',
} as const;

/** The name of an event with the result of an evaluation, in OpenTelemetry's GenAI conventions. */
export const EVALUATION = 'gen_ai.evaluation.result';
