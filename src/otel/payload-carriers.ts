import type { RowIndex } from './row-index.ts';
import type { Vocabulary } from './vocabulary.ts';

/**
 * Attributes and events of conventions that have no table yet, by which prompts, answers, arguments and queries come.
 * They count as payloads where payloads are hidden; elsewhere they go to the metadata like any other.
 */
const OTHER_INPUTS =
  /^(?:gen_ai\.content\.prompt|gen_ai\.(?:system|user|assistant|tool)\.message|gen_ai\.memory\.query)(?:\.|$)/;
const OTHER_OUTPUTS = /^(?:gen_ai\.content\.completion|gen_ai\.choice|gen_ai\.memory\.records)(?:\.|$)/;

/** Says of the name of an attribute or an event whether a payload comes by it. */
export type IsCarrier = (name: string) => boolean;

/** The names to leave out where inputs or outputs are hidden. */
export function carriers(
  vocabularies: readonly Vocabulary[],
  index: RowIndex,
  { hideInputs, hideOutputs }: { readonly hideInputs: boolean; readonly hideOutputs: boolean },
): IsCarrier | undefined {
  if (!hideInputs && !hideOutputs) return undefined;
  const hidden = new Set(
    vocabularies.flatMap(({ inputs, outputs }) => [...(hideInputs ? [inputs] : []), ...(hideOutputs ? [outputs] : [])]),
  );
  return (name) =>
    index.placesOf(index.groupOf(name) ?? name).some(({ table }) => hidden.has(table)) ||
    (hideInputs && OTHER_INPUTS.test(name)) ||
    (hideOutputs && OTHER_OUTPUTS.test(name));
}
