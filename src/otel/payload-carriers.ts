import { carriesInputs, carriesOutputs } from './message-events.ts';
import type { RowIndex } from './row-index.ts';
import type { Vocabulary } from './vocabulary.ts';

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
    (hideInputs && carriesInputs(name)) ||
    (hideOutputs && carriesOutputs(name));
}
