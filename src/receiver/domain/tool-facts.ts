import { cut } from '../../base/text.ts';
import { exactJson, filled } from '../../payload/fields.ts';
import { callsInOutputs, resultsInInputs } from '../../services/conversation.ts';
import type { RunFields } from './run-message.ts';
import type { CalledTool, ToolOutcome } from './run-view.ts';
import { set } from './usage.ts';

/** What the payloads of a message tell about tools. */
export interface ToolFacts {
  tool_calls?: CalledTool[];
  tool_results?: ToolOutcome[];
}

const TEXT_MAX = 200;
/** Maximum size of the facts about a payload, in bytes of JSON. */
const FACTS_BYTES_MAX = 4_096;

/** Returns the tool calls and results in the messages of a model call. The run type may be in another message. */
export function toolFactsOf({ run_type: type = 'llm', inputs, outputs }: RunFields): ToolFacts {
  const facts: ToolFacts = {};
  if (type !== 'llm') return facts;
  if (outputs !== undefined) set(facts, 'tool_calls', fitting(callsInOutputs(outputs).map(calledTool)));
  if (inputs !== undefined) set(facts, 'tool_results', fitting(outcomesIn(inputs)));
  return facts;
}

function calledTool({ id, name, input }: ReturnType<typeof callsInOutputs>[number]): CalledTool {
  const args = textOf(input);
  return { id: id ?? `${name}(${args})`, name, arguments: args };
}

function outcomesIn(inputs: unknown): ToolOutcome[] {
  return resultsInInputs(inputs).flatMap(({ id, call, value, isError }) => {
    const callId = id ?? (call && calledTool(call).id);
    return callId === undefined
      ? []
      : [{ id: callId, text: textOf(value), ...(isError && { is_error: true as const }) }];
  });
}

function textOf(value: unknown): string {
  return cut(typeof value === 'string' ? value : (exactJson(value) ?? ''), TEXT_MAX);
}

/** Returns the first items that fit, or undefined if none does. */
function fitting<Item>(items: readonly Item[]): Item[] | undefined {
  let bytes = 0;
  const end = items.findIndex((item) => {
    bytes += Buffer.byteLength(JSON.stringify(item)) + 1;
    return bytes > FACTS_BYTES_MAX;
  });
  return filled(items.slice(0, end < 0 ? items.length : end));
}
