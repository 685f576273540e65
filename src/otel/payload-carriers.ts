import { carriesInputs, carriesOutputs } from './message-events.ts';
import type { RowIndex } from './row-index.ts';

/** Says of the name of an attribute or an event whether a payload comes by it. */
export type IsCarrier = (name: string) => boolean;

/** The names to leave out where inputs or outputs are hidden. */
export function carriers(
  index: RowIndex,
  { hideInputs, hideOutputs }: { readonly hideInputs: boolean; readonly hideOutputs: boolean },
): IsCarrier | undefined {
  if (!hideInputs && !hideOutputs) return undefined;
  return (name) =>
    index
      .factsOf(name)
      .places.some(({ group }) => (hideInputs && group === 'inputs') || (hideOutputs && group === 'outputs')) ||
    (hideInputs && carriesInputs(name)) ||
    (hideOutputs && carriesOutputs(name));
}
