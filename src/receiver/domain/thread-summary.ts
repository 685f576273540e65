import { isoTimestamp } from '../../run/time.ts';
import type { FeedbackFigures } from './feedback.ts';
import type { RunSummary, ThreadSummary, TraceOutcome, Usage } from './run-view.ts';
import { sumOfUsage } from './summary.ts';

/** The figures of a trace in a thread. */
export interface Turn {
  readonly startUs: number;
  /** Latency of the root run. Undefined if the root run has not ended. */
  readonly latencyUs: number | undefined;
  /** Undefined if the trace has just been deleted. */
  readonly outcome: TraceOutcome | undefined;
  readonly project: string;
  readonly user: string | undefined;
  /** Total usage of the trace. */
  readonly usage: Usage | undefined;
}

/** Previews and feedback of a thread. */
interface ThreadTexts {
  readonly inputs: RunSummary['inputs_preview'];
  readonly outputs: RunSummary['outputs_preview'];
  readonly feedback: FeedbackFigures[];
}

/** Adds up the turns of a thread. The turns must be sorted by start time. */
export function threadSummaryOf(
  thread: string,
  turns: readonly [Turn, ...Turn[]],
  { inputs, outputs, feedback }: ThreadTexts,
): ThreadSummary {
  const [first] = turns;
  const last = turns.at(-1) ?? first;
  const user = turns.findLast((turn) => turn.user !== undefined)?.user;
  const latencies = turns.flatMap(({ latencyUs }) => latencyUs ?? []).sort((a, b) => a - b);
  const [p50, max] = [latencies[Math.ceil(latencies.length / 2) - 1], latencies.at(-1)];
  const usage = turns.reduce<Usage | undefined>((sum, turn) => sumOfUsage(sum, turn.usage), undefined);
  return {
    thread,
    ...(user !== undefined && { user }),
    project: last.project,
    turns: turns.length,
    errors: turns.filter(({ outcome }) => outcome === 'error').length,
    failed_below: turns.filter(({ outcome }) => outcome === 'failed_below').length,
    start_time: isoTimestamp(first.startUs),
    last_start_time: isoTimestamp(last.startUs),
    ...(p50 !== undefined && max !== undefined && { latency_ms: { p50: p50 / 1_000, max: max / 1_000 } }),
    ...(usage && { usage }),
    ...(feedback.length > 0 && { feedback }),
    ...(inputs !== undefined && { inputs_preview: inputs }),
    ...(outputs !== undefined && { outputs_preview: outputs }),
  };
}
