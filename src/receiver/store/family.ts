import { dottedOrder, parseIsoTimestamp } from '../../run/time.ts';
import type { Place } from './run-state.ts';
import type { RunFields } from './store.ts';

/**
 * Levels below a run that has its own order that orders are made for. A run further down stands at the root, so that a
 * chain of parents without end makes no orders of megabytes. A ring of parents has no end, so all in it do as well.
 */
const LEVELS_MAX = 64;

/** A run as far as its place goes. */
export interface Placed {
  readonly id: string;
  readonly fields: Pick<RunFields, 'trace_id' | 'dotted_order' | 'start_time' | 'parent_run_id'>;
  readonly place: Place | undefined;
}

/** How a store knows whose place depends on whose. */
export interface Kin<Run extends Placed> {
  find(id: string): Run | undefined;
  /** The runs that take their place from this one: those whose `waitsFor` it is. */
  children(id: string): Iterable<Run>;
}

/** Who waits for whom: the runs that came without a dotted order, by the parents that they name. */
export class Family<Run extends Placed> implements Kin<Run> {
  readonly #runs: ReadonlyMap<string, Run>;
  readonly #children = new Map<string, Set<Run>>();

  /** Parents are looked up in `runs`, which stays in the hands of the store. */
  constructor(runs: ReadonlyMap<string, Run>) {
    this.#runs = runs;
  }

  /** Called after something new has been told of the run. */
  enter(run: Run): void {
    const parentId = waitsFor(run);
    if (parentId === undefined) return;
    const siblings = this.#children.get(parentId);
    if (siblings === undefined) this.#children.set(parentId, new Set([run]));
    else siblings.add(run);
  }

  /** Called before something new is told of the run, and when it is forgotten. */
  leave(run: Run): void {
    const parentId = waitsFor(run);
    if (parentId === undefined) return;
    const siblings = this.#children.get(parentId);
    siblings?.delete(run);
    if (siblings?.size === 0) this.#children.delete(parentId);
  }

  find(id: string): Run | undefined {
    return this.#runs.get(id);
  }

  children(id: string): Iterable<Run> {
    return this.#children.get(id) ?? [];
  }

  settle(run: Run, move: (run: Run, to: Place) => void): void {
    settle(run, this, move);
  }
}

/**
 * Gives a run its place after something new has been told of it, and then all below it that take theirs from it.
 * `move` is called for each run that gets another place, and sets it.
 */
export function settle<Run extends Placed>(run: Run, kin: Kin<Run>, move: (run: Run, to: Place) => void): void {
  const pending = [run];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const parentId = waitsFor(next);
    const place = placeOf(next, parentId === undefined ? undefined : kin.find(parentId)?.place);
    // In a ring it comes to this when all levels are beyond the limit, at which they stay.
    if (isSamePlace(place, next.place)) continue;
    move(next, place);
    for (const child of kin.children(next.id)) pending.push(child);
  }
}

/** The parent from which a run takes its place; none when it came with a place of its own. */
export function waitsFor({ fields }: Pick<Placed, 'fields'>): string | undefined {
  return fields.dotted_order === undefined ? fields.parent_run_id : undefined;
}

/**
 * The place of a run: what it says itself, and for one of simple ingestion, which need not say, a new segment below the
 * place of its parent (interface, "Run record": generated on simple ingestion). Without a parent that stands anywhere
 * it is a root, in the trace that it names, if it does.
 */
function placeOf({ id, fields }: Placed, parent: Place | undefined): Place {
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
