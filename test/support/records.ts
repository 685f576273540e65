import { outlineOf, payloadFacts, summaryOf } from '../../src/receiver/store/run-summary.ts';
import type { RunOutline } from '../../src/receiver/store/run-view.ts';
import type { RunRecord } from '../../src/run/record.ts';

/** A chain `name` with this place in the order: `1.2` is the second child of run 1. It took 12 ms. */
export function makeRun(place: string, name: string, changes: Partial<RunRecord> = {}): RunRecord {
  const parent = place.includes('.') ? { parent_run_id: place.slice(0, place.lastIndexOf('.')) } : {};
  return {
    id: place,
    trace_id: place.split('.', 1)[0] ?? '',
    dotted_order: place,
    ...parent,
    name,
    run_type: 'chain',
    start_time: '2026-11-20T07:22:40.000000Z',
    end_time: '2026-11-20T07:22:40.012000Z',
    inputs: {},
    ...changes,
  };
}

/** The same, not ended. */
export function makeOpenRun(place: string, name: string, changes: Partial<RunRecord> = {}): RunRecord {
  const { end_time: _, ...open } = makeRun(place, name, changes);
  return open;
}

/** The record as a line of its trace. */
export function outlined({ id, trace_id, ...fields }: RunRecord): RunOutline {
  const summary = summaryOf(id, trace_id, fields, payloadFacts(fields));
  if (summary === undefined) throw new Error(`run ${id} cannot be seen`);
  return outlineOf(summary);
}
