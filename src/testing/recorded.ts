import { RunspanError } from '../base/errors.ts';
import { isObject } from '../base/options.ts';
import { shown } from '../base/text.ts';
import type { RunRecord } from '../run/record.ts';

/** Runs to look at: what `recordRuns()` gives, a list such as `await receiver.runs()`, or one run. */
export type Recorded = { readonly runs: readonly RunRecord[] } | readonly RunRecord[] | RunRecord;

/** The runs of what a test has passed; a RunspanError says what it is instead, where it has none. */
export function runsOf(recorded: unknown): readonly RunRecord[] {
  const runs = isObject(recorded) && Array.isArray(recorded.runs) ? recorded.runs : recorded;
  const list: readonly unknown[] = Array.isArray(runs) ? runs : [runs];
  const odd = list.find((run) => !isRecord(run));
  if (list.every(isRecord)) return list;
  const isPromise = isObject(odd) && typeof odd.then === 'function';
  throw new RunspanError(
    'RUNSPAN_INVALID_OPTION',
    'Expected what recordRuns() gives, a list of recorded runs such as `await receiver.runs()`, or one of them, got ' +
      (isPromise ? 'a promise; await it' : shown(odd)),
  );
}

function isRecord(value: unknown): value is RunRecord {
  if (!isObject(value)) return false;
  return [value.id, value.name, value.run_type, value.dotted_order, value.start_time].every(
    (field) => typeof field === 'string',
  );
}
