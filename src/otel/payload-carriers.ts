import { carriesInputs, carriesOutputs } from './message-events.ts';
import type { RowIndex } from './row-index.ts';
import type { Vocabulary } from './vocabulary.ts';

/**
 * Attributes and events of conventions that have no table yet, by which prompts, answers, arguments and queries come.
 * They count as payloads where payloads are hidden; elsewhere they go to the metadata like any other.
 */
const OTHER_INPUTS =
  /^(?:gen_ai\.prompt|ai\.prompt|ai\.toolCall\.(?:args|input)|ai\.values?|ai\.documents|traceloop\.entity\.input|mcp\.request\.argument|langfuse\.(?:observation|trace)\.input|db\.statement|db\.query\.(?:text|parameter))(?:\.|$)/;
const OTHER_OUTPUTS =
  /^(?:gen_ai\.completion|ai\.response\.(?:text|object|reasoning|toolCalls|files)|ai\.result|ai\.toolCall\.(?:result|output)|ai\.embeddings?|traceloop\.entity\.output|mcp\.response\.value|langfuse\.(?:observation|trace)\.output|db\.query\.result)(?:\.|$)/;

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
    (hideInputs && (carriesInputs(name) || OTHER_INPUTS.test(name))) ||
    (hideOutputs && (carriesOutputs(name) || OTHER_OUTPUTS.test(name)));
}
