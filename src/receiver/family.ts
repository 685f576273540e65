import { isSamePlace, type Place, placeOf } from './place.ts';
import type { RunState } from './run-state.ts';

/**
 * Levels below a run that has its own order that orders are made for. A run further down stands at the root, so that a
 * chain of parents without end makes no orders of megabytes.
 */
const LEVELS_MAX = 512;

/** Who waits for whom: the runs that came without a dotted order, by the parents that they name. */
export class Family {
  readonly #runs: ReadonlyMap<string, RunState>;
  readonly #children = new Map<string, Set<RunState>>();

  /** Parents are looked up in `runs`, which stays in the hands of the store. */
  constructor(runs: ReadonlyMap<string, RunState>) {
    this.#runs = runs;
  }

  /**
   * Gives a run its place after something new has been told of it, and then all below it that take theirs from it.
   * `move` is called for each run that gets another place, and sets it.
   */
  settle(run: RunState, move: (run: RunState, to: Place) => void): void {
    const pending = [run];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      this.#register(next);
      const place = placeOf(next.id, next.fields, this.#parentOf(next)?.place);
      if (isSamePlace(place, next.place)) continue;
      move(next, place);
      pending.push(...(this.#children.get(next.id) ?? []));
    }
  }

  forget(run: RunState): void {
    const parentId = run.fields.parent_run_id;
    if (parentId === undefined) return;
    const siblings = this.#children.get(parentId);
    siblings?.delete(run);
    if (siblings?.size === 0) this.#children.delete(parentId);
  }

  #register(run: RunState): void {
    const { parent_run_id: parentId, dotted_order: order } = run.fields;
    if (parentId === undefined || order !== undefined) return;
    const siblings = this.#children.get(parentId);
    if (siblings === undefined) this.#children.set(parentId, new Set([run]));
    else siblings.add(run);
  }

  /** The parent to stand under; none when the chain of parents leads back to the run, or has no end near enough. */
  #parentOf(run: RunState): RunState | undefined {
    const parent = this.#lookUp(run);
    let ancestor = parent;
    for (let level = 0; ancestor !== undefined; level += 1) {
      if (ancestor === run || level === LEVELS_MAX) return undefined;
      ancestor = this.#lookUp(ancestor);
    }
    return parent;
  }

  #lookUp({ fields }: RunState): RunState | undefined {
    if (fields.dotted_order !== undefined || fields.parent_run_id === undefined) return undefined;
    return this.#runs.get(fields.parent_run_id);
  }
}
