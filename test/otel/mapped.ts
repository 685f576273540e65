import { defaultLimits } from '../../src/base/limits.ts';
import { mapSpan, type Visibility } from '../../src/otel/mapping.ts';
import type { Attributes } from '../../src/otel/conventions/values.ts';
import { payloadRules } from '../../src/payload/limits.ts';
import { defaultRedaction } from '../../src/payload/redact.ts';

export const SHOW_ALL: Visibility = {
  hideInputs: false,
  hideOutputs: false,
  payload: payloadRules(defaultLimits, defaultRedaction()),
};

/** What a span with these attributes comes to, as JSON has it. */
export function mapped(attributes: Attributes, visibility: Visibility = SHOW_ALL) {
  const { inputs, outputs, metadata, ...rest } = mapSpan(attributes, visibility);
  return JSON.parse(
    JSON.stringify({
      ...rest,
      inputs: inputs?.payload?.fields,
      outputs: outputs?.fields,
      metadata: Object.fromEntries(metadata),
    }),
  );
}
