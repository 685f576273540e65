import { dottedOrder } from '../run/dotted-order.ts';
import { parseIsoTimestamp } from '../run/timestamp.ts';
import type { Place, RunState } from './run-state.ts';

/**
 * Levels below a run that has its own order that orders are made for. A run further down stands at the root, so that a
 * chain of parents without end makes no orders of megabytes. A ring of parents has no end, so all in it do as well.
 */
const LEVELS_MAX = 64;

/** Who waits for whom: the runs that came without a dotted order, by the parents that they name. */
export class Family {
  readonly #runs: ReadonlyMap<string, RunState>;
  readonly #children = new Map<string, Set<RunState>>();

  /** Parents are looked up in `runs`, which stays in the hands of the store. */
  constructor(runs: ReadonlyMap<string, RunState>) {
    this.#runs = runs;
  }

  /** Called after something new has been told of the run. */
  enter(run: RunState): void {
    const parentId = parentIdOf(run);
    if (parentId === undefined) return;
    const siblings = this.#children.get(parentId);
    if (siblings === undefined) this.#children.set(parentId, new Set([run]));
    else siblings.add(run);
  }

  /** Called before something new is told of the run, and when it is forgotten. */
  leave(run: RunState): void {
    const parentId = parentIdOf(run);
    if (parentId === undefined) return;
    const siblings = this.#children.get(parentId);
    siblings?.delete(run);
    if (siblings?.size === 0) this.#children.delete(parentId);
  }

  /**
   * Gives a run its place after something new has been told of it, and then all below it that take theirs from it.
   * `move` is called for each run that gets another place, and sets it.
   */
  settle(run: RunState, move: (run: RunState, to: Place) => void): void {
    const pending = [run];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const place = placeOf(next, this.#runs.get(parentIdOf(next) ?? '')?.place);
      // In a ring it comes to this when all levels are beyond the limit, at which they stay.
      if (isSamePlace(place, next.place)) continue;
      move(next, place);
      for (const child of this.#children.get(next.id) ?? []) pending.push(child);
    }
  }
}

/** The parent from which a run takes its place; none when it came with a place of its own. */
function parentIdOf({ fields }: RunState): string | undefined {
  return fields.dotted_order === undefined ? fields.parent_run_id : undefined;
}

/**
 * The place of a run: what it says itself, and for one of simple ingestion, which need not say, a new segment below the
 * place of its parent (interface, "Run record": generated on simple ingestion). Without a parent that stands anywhere
 * it is a root, in the trace that it names, if it does.
 */
function placeOf({ id, fields }: RunState, parent: Place | undefined): Place {
  const { trace_id: traceId = id, dotted_order: order, start_time: start } = fields;
  if (order !== undefined) return { traceId, dottedOrder: order, level: 0 };
  const startUs = parseIsoTimestamp(start ?? '');
  if (startUs === undefined) return { traceId, dottedOrder: undefined, level: 0 };
  if (parent?.dottedOrder === undefined) return { traceId, dottedOrder: dottedOrder(undefined, startUs, id), level: 0 };
  const level = parent.level + 1;
  if (level <= LEVELS_MAX) {
    return { traceId: parent.traceId, dottedOrder: dottedOrder(parent.dottedOrder, startUs, id), level };
  }
  return { traceId, dottedOrder: dottedOrder(undefined, startUs, id), level: LEVELS_MAX + 1 };
}

function isSamePlace(a: Place, b: Place | undefined): boolean {
  return a.traceId === b?.traceId && a.dottedOrder === b.dottedOrder && a.level === b.level;
}
