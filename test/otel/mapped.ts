import { mapSpan } from '../../src/otel/mapping.ts';
import type { Attributes } from '../../src/otel/values.ts';

export const SHOW_ALL = { hideInputs: false, hideOutputs: false };

/** What a span with these attributes comes to, as JSON has it. */
export function mapped(attributes: Attributes, visibility: typeof SHOW_ALL = SHOW_ALL) {
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
