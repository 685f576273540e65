import { jsonFields } from '../../otel/conventions/values.ts';
import { hrTimeUs } from '../../otel/mapping/span-identity.ts';
import { EVALUATION, OWN } from '../../otel/otlp/own-attributes.ts';
import type { SpanLike } from '../../otel/span-like.ts';
import { defined, type Fields, numberOf, textOf } from '../../payload/fields.ts';
import { runIdFrom } from '../../run/ids.ts';
import { isoTimestamp, parseIsoTimestamp } from '../../run/time.ts';

/** The result of an evaluation, as the fields of feedback. */
export type EvaluationFields = Fields & {
  readonly key: string;
  readonly created_at: string;
  readonly modified_at?: string;
};

/** Matches OpenInference's attributes: https://arize-ai.github.io/openinference/spec/feedback/annotations.html */
const ANNOTATION = /^((?:trace\.)?(?:annotations|evaluations)\.\d+)\.(?:annotation|evaluation)\.(\w+)$/;

/** Returns the evaluations in the events and attributes of a span. The feedback has the same ids each time. */
export function evaluationsOf({ attributes, events, endTime }: SpanLike, runId: string): EvaluationFields[] {
  const isOwn = attributes[OWN.order] !== undefined;
  const found = events
    // In a run of our own, an event of that name is feedback only if we have made it.
    .filter(({ name, attributes: given }) => name === EVALUATION && (!isOwn || given?.[OWN.feedback] !== undefined))
    .map(({ time, attributes: given = {} }) => eventFields(given, hrTimeUs(time)));
  const annotations = new Map<string, Fields>();
  for (const [name, value] of Object.entries(attributes)) {
    const [, place, field] = ANNOTATION.exec(name) ?? [];
    if (place === undefined || field === undefined) continue;
    annotations.set(place, { ...annotations.get(place), [field]: value });
  }
  for (const given of annotations.values()) found.push(annotationFields(given, hrTimeUs(endTime)));
  return found.flatMap((given) => {
    const { key, id = runIdFrom(`${runId} ${JSON.stringify(given)}`) } = given;
    return typeof key === 'string' && key !== '' ? [{ ...given, key, id } as unknown as EvaluationFields] : [];
  });
}

function eventFields(attributes: SpanLike['attributes'], timeUs = 0): Fields {
  const feedback = jsonFields(attributes[OWN.feedback]);
  if (feedback !== undefined) {
    const created_at = validTime(feedback.created_at) ?? isoTimestamp(timeUs);
    return { ...feedback, created_at, modified_at: validTime(feedback.modified_at) ?? created_at };
  }
  const given = (field: string): unknown => attributes[`gen_ai.evaluation.${field}`];
  return {
    key: given('name'),
    created_at: isoTimestamp(timeUs),
    ...result(given('score.value'), given('score.label'), given('explanation')),
  };
}

function validTime(value: unknown): string | undefined {
  const us = parseIsoTimestamp(textOf(value) ?? '');
  return us === undefined ? undefined : isoTimestamp(us);
}

function annotationFields({ name, score, label, explanation, metadata, ...rest }: Fields, timeUs = 0): Fields {
  const added = { ...jsonFields(metadata), ...rest };
  return {
    key: name,
    created_at: isoTimestamp(timeUs),
    ...result(score, label, explanation),
    ...(Object.keys(added).length > 0 && { metadata: added }),
  };
}

function result(score: unknown, label: unknown, explanation: unknown): Fields {
  return defined({ score: numberOf(score), value: textOf(label), comment: textOf(explanation) });
}
