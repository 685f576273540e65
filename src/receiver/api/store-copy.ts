import { parseExact } from '../../payload/fields.ts';
import type { Feedback } from '../domain/feedback.ts';
import { grouped } from '../domain/grouped.ts';
import type { RunCounts, Scope } from '../domain/query/query.ts';
import type { RunOperation } from '../domain/run-message.ts';
import type { StoredRun } from '../domain/run-view.ts';
import { ALL_RUNS } from '../filter/run-filter.ts';
import type { Store } from '../store/store.ts';
import { withoutDerived } from './trace-import.ts';

/** Number of runs, and length of their JSON text, to store at once. */
const BATCH_RUNS = 1_000;
const BATCH_LENGTH = 16 * 1024 * 1024;
/** Number of runs whose feedback is stored at the same time. */
const FEEDBACK_RUNS = 20;

/**
 * Copies all visible runs of a scope with their attachments and feedback to another store. Copying runs again changes
 * nothing. Calls `report` with the number of copied runs after each batch.
 */
export async function copyRuns(
  from: Store,
  to: Store,
  scope: Scope,
  report: (runs: number) => void,
): Promise<RunCounts & { readonly feedback: number }> {
  const counts = { runs: 0, traces: 0, feedback: 0 };
  let batch: RunOperation[] = [];
  let length = 0;
  let lastTraceId: string | undefined;
  /** Traces whose last run is in the batch. */
  let complete: string[] = [];
  const addFeedback = async (ofRun: readonly Feedback[]): Promise<void> => {
    for (const feedback of ofRun) if (await to.addFeedback(scope, feedback)) counts.feedback += 1;
  };
  const write = async (): Promise<void> => {
    await to.apply(scope, batch);
    const feedback = [...grouped(await from.feedback(scope, complete), ({ run_id }) => run_id).values()];
    for (let at = 0; at < feedback.length; at += FEEDBACK_RUNS) {
      await Promise.all(feedback.slice(at, at + FEEDBACK_RUNS).map(addFeedback));
    }
    counts.runs += batch.length;
    counts.traces += complete.length;
    report(counts.runs);
    [batch, length, complete] = [[], 0, []];
  };
  const recordOf = withoutDerived();
  for await (const text of from.runs(scope, { filter: ALL_RUNS })) {
    const { attachments: infos = [], ...run } = parseExact<StoredRun>(text);
    if (lastTraceId !== undefined && run.trace_id !== lastTraceId) complete.push(lastTraceId);
    lastTraceId = run.trace_id;
    if (batch.length >= BATCH_RUNS || length >= BATCH_LENGTH) await write();
    const { id, ...fields } = { ...recordOf(run), id: run.id };
    const attachments = await Promise.all(infos.map(({ name }) => from.attachment(scope, id, name)));
    batch.push({ kind: 'post', id, fields, attachments: attachments.filter((one) => one !== undefined) });
    length += text.length + attachments.reduce((sum, one) => sum + (one?.bytes.length ?? 0), 0);
  }
  if (lastTraceId !== undefined) complete.push(lastTraceId);
  await write();
  return counts;
}
