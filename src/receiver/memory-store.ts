import { diagnostics } from '../base/diagnostics.ts';
import { RunspanError } from '../base/errors.ts';
import { messageOf } from '../base/text.ts';
import type { Attachment } from '../run/record.ts';
import { Family } from './family.ts';
import { shown } from './findings.ts';
import { matches } from './run-query.ts';
import { RunState } from './run-state.ts';
import type { RunOperation, RunQuery, Store, StoreChange, StoredRun } from './store.ts';

/** How much a memory store keeps. Beyond a limit the oldest traces are forgotten, each whole. */
export interface MemoryStoreOptions {
  /** Runs, those among them that cannot be seen yet. @default 100000 */
  runsMax?: number;
  /**
   * Payloads and attachments, in bytes: fields as JSON text. The heap that they take is larger, by two to three times
   * with small values. @default 268435456 (256 MiB)
   */
  bytesMax?: number;
}

const DEFAULTS: Required<MemoryStoreOptions> = { runsMax: 100_000, bytesMax: 256 * 1024 * 1024 };

/**
 * Runs in the memory of the process, gone with it. It never holds more than its limits after an `apply`: traces are
 * forgotten in the order in which their first run came, at last the one that just came, should it be larger than the
 * limit by itself. What comes later of a forgotten run is taken as new.
 */
export class MemoryStore implements Store {
  readonly #limits: Required<MemoryStoreOptions>;
  readonly #runs = new Map<string, RunState>();
  /** In order of their first run, which is the order of forgetting. */
  readonly #traces = new Map<string, Set<RunState>>();
  readonly #family: Family;
  readonly #listeners = new Set<(change: StoreChange) => void>();
  #sizeBytes = 0;

  constructor(options: MemoryStoreOptions = {}) {
    this.#limits = checkedLimits(options);
    this.#family = new Family(this.#runs);
  }

  async apply(operations: readonly RunOperation[]): Promise<void> {
    const touched = new Set<string>();
    for (const operation of operations) this.#take(operation, touched);
    this.#forgetOldest(touched);
    if (touched.size > 0) this.#tell({ traceIds: [...touched] });
  }

  async runs(query: RunQuery): Promise<StoredRun[]> {
    const among = query.traceId === undefined ? this.#runs.values() : (this.#traces.get(query.traceId) ?? []);
    const found = [...among].filter((run) => run.place.dottedOrder !== undefined && matches(query, run.fields));
    return firstRecords(found.sort(byOrder), query.limit ?? Number.POSITIVE_INFINITY);
  }

  async trace(traceId: string): Promise<StoredRun[]> {
    return this.runs({ traceId });
  }

  async attachment(runId: string, name: string): Promise<Attachment | undefined> {
    return this.#runs.get(runId)?.attachment(name);
  }

  subscribe(listener: (change: StoreChange) => void): () => void {
    // One of its own for each call, so that a function given twice is called twice and each call undoes itself alone.
    const own = (change: StoreChange): void => listener(change);
    this.#listeners.add(own);
    return () => {
      this.#listeners.delete(own);
    };
  }

  #take(operation: RunOperation, touched: Set<string>): void {
    const known = this.#runs.get(operation.id);
    const run = known ?? new RunState(operation.id);
    if (known === undefined) {
      this.#runs.set(run.id, run);
      this.#enter(run);
    }
    this.#family.forget(run);
    this.#change(run, () => run.take(operation));
    this.#family.settle(run, (moving, to) => {
      // A new run stood nowhere before, whatever its state says.
      if (moving !== run || known !== undefined) touched.add(moving.place.traceId);
      this.#leave(moving);
      this.#change(moving, () => {
        moving.place = to;
      });
      this.#enter(moving);
      touched.add(to.traceId);
    });
    touched.add(run.place.traceId);
  }

  #enter(run: RunState): void {
    const { traceId } = run.place;
    const trace = this.#traces.get(traceId);
    if (trace === undefined) this.#traces.set(traceId, new Set([run]));
    else trace.add(run);
  }

  #leave(run: RunState): void {
    const trace = this.#traces.get(run.place.traceId);
    trace?.delete(run);
    if (trace?.size === 0) this.#traces.delete(run.place.traceId);
  }

  #change(run: RunState, change: () => void): void {
    this.#sizeBytes -= run.sizeBytes;
    change();
    this.#sizeBytes += run.sizeBytes;
  }

  #forgetOldest(touched: Set<string>): void {
    for (const [traceId, runs] of this.#traces) {
      if (this.#runs.size <= this.#limits.runsMax && this.#sizeBytes <= this.#limits.bytesMax) return;
      touched.add(traceId);
      this.#traces.delete(traceId);
      for (const run of runs) {
        this.#runs.delete(run.id);
        this.#family.forget(run);
        this.#sizeBytes -= run.sizeBytes;
      }
    }
  }

  #tell(change: StoreChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        diagnostics.error(`a listener of the receiver's store failed: ${messageOf(error)}`);
      }
    }
  }
}

function byOrder(a: RunState, b: RunState): number {
  const [orderA = '', orderB = ''] = [a.place.dottedOrder, b.place.dottedOrder];
  return orderA < orderB ? -1 : orderA > orderB ? 1 : 0;
}

/** Copies of the first runs that can be seen. */
function firstRecords(runs: readonly RunState[], limit: number): StoredRun[] {
  const found: StoredRun[] = [];
  for (const run of runs) {
    if (found.length >= limit) break;
    const record = run.record();
    if (record !== undefined) found.push(record);
  }
  return found;
}

function checkedLimits(options: MemoryStoreOptions): Required<MemoryStoreOptions> {
  const limits = { ...DEFAULTS, ...options };
  for (const key of ['runsMax', 'bytesMax'] as const) {
    if (!Number.isSafeInteger(limits[key]) || limits[key] < 1) {
      throw new RunspanError(
        'RUNSPAN_INVALID_OPTION',
        `Expected \`${key}\` to be a whole number from 1, got ${shown(limits[key])}`,
      );
    }
  }
  return limits;
}
