import { RunspanError } from '../base/errors.ts';
import type { RunRecord } from '../run/record.ts';
import { outlineOf } from '../testing/snapshot.ts';
import type { ReplayEvent, ReplayJob } from './fixture-replay.ts';

/** The result of `replay`. `toHaveRun` accepts it like the result of `recordRuns`. */
export interface Replayed {
  /** The runs of the replayed trace, parents before children. */
  readonly runs: readonly RunRecord[];
  /** The differences from the recorded requests that the mode `failed` has accepted, such as other results of tools. */
  readonly notes: readonly string[];
  /**
   * Whether the program was stopped in the mode `failed`, because it has made a call after the last recorded one. Its open
   * runs have no `end_time`.
   */
  readonly wasStopped: boolean;
}

/** What a program has done in a replay. */
export interface Result {
  readonly runs: readonly RunRecord[];
  readonly events: readonly ReplayEvent[];
  /** Called if the program makes the recorded calls. Throws if the program has failed in this process. */
  readonly check?: () => void;
}

/** Returns the result of a replay. Throws `RUNSPAN_REPLAY_MISMATCH` if the program made other calls than it must. */
export function checkedResult(job: ReplayJob, { runs, events, check }: Result): Replayed {
  const answered = events.flatMap((event) => ('answered' in event ? event.answered : []));
  const notes = events.flatMap((event) => ('notes' in event ? event.notes : []));
  const problems = [...mismatchesIn(events), ...unmatched(job, answered)];
  if (problems.length === 0) {
    check?.();
    return { runs, notes, wasStopped: wasStopped(events) };
  }
  const accepted = notes.length === 0 ? [] : [`accepted before:\n  ${notes.join('\n  ')}`];
  const replayed = `Replayed:\n  ${outlineOf(runs).replaceAll('\n', '\n  ')}`;
  throw new RunspanError('RUNSPAN_REPLAY_MISMATCH', [...problems, ...accepted, ADVICE, replayed].join('\n\n'));
}

const ADVICE =
  'If the change is intended, write the fixture again, with the option `record`, or with `runspan test` and its option `--name`. The mode `failed` accepts other results of tools.';

/** Names the recorded calls that the program has not made as often as it must. */
function unmatched({ mode, calls, required = 0, liveFrom }: ReplayJob, answered: readonly number[]): string[] {
  const shown = (index: number): string => `${calls[index]?.call} (${index + 1})`;
  const twice = answered.filter((index, at) => answered.indexOf(index) !== at).map(shown);
  const must = liveFrom === undefined ? (mode === 'strict' ? calls.length : required) : 0;
  const left = [...calls.keys()].filter((index) => index < must && !answered.includes(index)).map(shown);
  return [
    ...(twice.length > 0 ? [`several processes of the program have made these calls: ${twice.join(', ')}`] : []),
    ...(left.length > 0 ? [`these recorded calls were not made: ${left.join(', ')}`] : []),
  ];
}

export function wasStopped(events: readonly ReplayEvent[]): boolean {
  return events.some((event) => 'stopped' in event);
}

/** Returns the differences of the model calls that no recorded call has answered. */
export function mismatchesIn(events: readonly ReplayEvent[]): string[] {
  return events.flatMap((event) => ('mismatch' in event ? event.mismatch : []));
}

export function failure(message: string): RunspanError {
  return new RunspanError('RUNSPAN_REPLAY_FAILED', message);
}
