import { addCost, NO_PRICES } from '#src/receiver/domain/cost/prices.ts';
import type { RunOutline } from '#src/receiver/domain/run-view.ts';
import { outlineOfSummary, payloadFacts, summaryOf, toolsIn } from '#src/receiver/domain/summary.ts';
import type { RunRecord } from '#src/run/record.ts';

/** Creates a chain of 12 ms. The place is its id and order: `1.2` is the second child of run 1. */
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

export function makeOpenRun(place: string, name: string, changes: Partial<RunRecord> = {}): RunRecord {
  const { end_time: _, ...open } = makeRun(place, name, changes);
  return open;
}

export function outlined({ id, trace_id, ...fields }: RunRecord): RunOutline {
  const facts = payloadFacts(fields);
  const summary = summaryOf(id, trace_id, fields, facts);
  if (summary === undefined) throw new Error(`run ${id} cannot be seen`);
  addCost(summary, NO_PRICES);
  return outlineOfSummary(summary, toolsIn(summary, facts));
}
