import { defaultLimits } from '../../src/base/limits.ts';
import type { Attributes } from '../../src/otel/conventions/values.ts';
import { projectOf, type SpanCapture, spanToRun } from '../../src/otel/span-to-run.ts';
import type { SpanLike } from '../../src/otel.ts';
import { payloadRules } from '../../src/payload/limits.ts';
import { bareSpan } from '../support/bare-span.ts';

const OWN_NAME = 'span';

const SHOW_ALL: SpanCapture = {
  hideInputs: false,
  hideOutputs: false,
  payload: payloadRules(defaultLimits, undefined),
  attachmentBytes: defaultLimits.attachmentBytes,
};

const ids = { traceId: '5b8efff798038103d269b633813fc60c', spanId: 'eee19b7ec3c1b174' };

/** Maps a span with these attributes to its run. `name` is undefined if the run has the name of the span. */
export function mapped(attributes: Attributes, span: Partial<SpanLike> = {}, capture: Partial<SpanCapture> = {}) {
  const { name: spanName = OWN_NAME } = span;
  const given: SpanLike = {
    ...bareSpan(spanName, ids),
    startTime: [1, 0],
    endTime: [2, 0],
    status: { code: 1 },
    ...span,
    attributes,
  };
  const around = { startUs: 1_000_000, parentIds: undefined };
  const { name, runType, inputs, outputs, tags, metadata, error, events } = spanToRun(
    given,
    { ...SHOW_ALL, ...capture },
    around,
  );
  metadata.delete('otel');
  return {
    name: name === spanName ? undefined : name,
    runType,
    project: projectOf(attributes),
    inputs: inputs && JSON.parse(inputs.json),
    outputs: outputs && JSON.parse(outputs.json),
    tags,
    metadata: Object.fromEntries([...metadata].map(([key, json]) => [key, JSON.parse(json)])),
    error,
    events: events && JSON.parse(events),
  };
}
