import { dottedOrder } from '../run/dotted-order.ts';
import { parseIsoTimestamp } from '../run/timestamp.ts';
import type { RunFields } from './store.ts';

/** Where a run stands among the others. */
export interface Place {
  readonly traceId: string;
  /** Undefined as long as the start of the run is not known. */
  readonly dottedOrder: string | undefined;
}

/**
 * The place of a run: what it says itself, and for one of simple ingestion, which need not say, a new segment below the
 * place of its parent (interface, "Run record": generated on simple ingestion). Without a parent that stands anywhere
 * it is a root, in the trace that it names, if it does.
 */
export function placeOf(id: string, fields: RunFields, parent: Place | undefined): Place {
  const { trace_id: traceId = id, dotted_order: order, start_time: start } = fields;
  if (order !== undefined) return { traceId, dottedOrder: order };
  const startUs = parseIsoTimestamp(start ?? '');
  if (startUs === undefined) return { traceId, dottedOrder: undefined };
  if (parent?.dottedOrder === undefined) return { traceId, dottedOrder: dottedOrder(undefined, startUs, id) };
  return { traceId: parent.traceId, dottedOrder: dottedOrder(parent.dottedOrder, startUs, id) };
}

export function isSamePlace(a: Place, b: Place): boolean {
  return a.traceId === b.traceId && a.dottedOrder === b.dottedOrder;
}
