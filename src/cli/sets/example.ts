import { defined, type Fields, isFields, parsedJson } from '../../payload/fields.ts';
import { serialize } from '../../payload/serialize.ts';
import { type Feedback, NOTE } from '../../receiver/domain/feedback.ts';
import type { TraceSummary } from '../../receiver/domain/run-view.ts';
import { fixtureRules } from '../../replay/fixture.ts';
import { CommandFailure } from '../command-line.ts';
import type { RunSource } from '../stores.ts';

/** A run, or the row of a trace, whose `id` is that of the root. */
export type Listed = Pick<TraceSummary, 'id'> & Partial<Pick<TraceSummary, 'trace'>>;

/**
 * Makes an example of each run or trace: a line of JSON with the fields of LangSmith's `createExamples`, by the id of the
 * run. Secrets are masked. Throws a CommandFailure if a run is not stored.
 */
export async function examplesOf(source: RunSource, listed: readonly Listed[]): Promise<Map<string, string>> {
  const examples = new Map<string, string>();
  for (const one of listed) examples.set(one.id, await exampleOf(source, one));
  return examples;
}

async function exampleOf(source: RunSource, { id, trace }: Listed): Promise<string> {
  // The row of a trace shows the inputs and outputs of other runs if the root has none.
  const { asked_run_id: asked, answered_run_id: answered } = trace ?? { asked_run_id: id, answered_run_id: id };
  const [run, other] = await Promise.all([...new Set([id, answered ?? id])].map((one) => source.details(one)));
  if (run === undefined) throw new CommandFailure(`run ${id} is not stored`);
  const inputs = asked && (await source.payload(asked, 'inputs'));
  const outputs = answered && (await source.payload(answered, 'outputs'));
  const feedback = [...(run.feedback ?? []), ...(other?.feedback ?? [])];
  const metadata = Object.entries(run.extra?.metadata ?? {}).filter(([key]) => !OF_LIBRARY.test(key));
  const notes = feedback.flatMap(({ key, comment }) => (key === NOTE && comment ? [comment] : []));
  if (notes.length > 0) metadata.push([NOTE, notes.join('\n')]);
  const example = {
    inputs: parsedJson(inputs) ?? {},
    outputs: correctionIn(feedback) ?? parsedJson(outputs),
    metadata: metadata.length === 0 ? undefined : Object.fromEntries(metadata),
    source_run_id: id,
  };
  return serialize(defined(example), fixtureRules());
}

/** Metadata that the library adds: what it knows of a call, and how a run was sampled and recorded. */
const OF_LIBRARY =
  /^(?:(?:ls|dropped)_|(?:http|url|mcp)\.|(?:otel|recorded_by|request_id|rerun_of|response_(?:id|model)|same_call(?:_usage)?|sample_rate|sampling|tool_call_id|unreadable|usage_metadata)$)/;

/** Returns the latest correction. A text has the form in which the text that a function returns is recorded. */
function correctionIn(feedback: readonly Feedback[]): Fields | undefined {
  const corrected = feedback.filter(({ correction }) => correction !== undefined);
  const latest = corrected.sort((a, b) => Date.parse(a.modified_at) - Date.parse(b.modified_at)).at(-1);
  return isFields(latest?.correction) ? latest.correction : latest && { outputs: latest.correction };
}
