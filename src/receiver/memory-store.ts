import { type Checks, checkedOptions, WHOLE_FROM_1 } from '../base/checked-options.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import type { Attachment } from '../run/record.ts';
import { Family } from './family.ts';
import { type Forgotten, ForgottenNotice } from './forgotten-notice.ts';
import { Refusal } from './refusal.ts';
import { type Place, RunState } from './run-state.ts';
import type { RunFields, RunOperation, RunQuery, Store, StoreChange, StoredRun } from './store.ts';

/** How much a memory store keeps. Beyond a limit the oldest traces are forgotten, each whole. */
export interface MemoryStoreOptions {
  /** Runs, those among them that cannot be seen yet. @default 100000 */
  runsMax?: number;
  /**
   * Bytes: fields as JSON text, attachments, and what the engine adds for each value, run and attachment. The heap comes to
   * about as much for text and messages, to 2.5 times as much at the worst (objects with a key each of their own).
   * @default 268435456 (256 MiB)
   */
  bytesMax?: number;
}

const DEFAULTS: Required<MemoryStoreOptions> = { runsMax: 100_000, bytesMax: 256 * 1024 * 1024 };
const CHECKS: Checks<MemoryStoreOptions> = { runsMax: WHOLE_FROM_1, bytesMax: WHOLE_FROM_1 };

/** Of one run. A request that brings more is refused with 413, at which senders leave attachments out. */
const ATTACHMENTS_MAX = 100;

/**
 * Runs in the memory of the process, gone with it. It never holds more than its limits after an `apply`: traces are
 * forgotten in the order in which their first run came, at last the one that just came, should it be larger than the
 * limit by itself. What comes later of a forgotten run is taken as new. What is forgotten is told in a line of
 * diagnostics, once a minute at the most, and in every `StoreChange`.
 */
export class MemoryStore implements Store {
  readonly #limits: Required<MemoryStoreOptions>;
  readonly #runs = new Map<string, RunState>();
  /** In order of their first run, which is the order of forgetting. */
  readonly #traces = new Map<string, Set<RunState>>();
  readonly #family: Family;
  readonly #listeners = new Set<(change: StoreChange) => void>();
  readonly #notice = new ForgottenNotice(() => performance.now());
  #sizeBytes = 0;

  constructor(options: MemoryStoreOptions = {}) {
    this.#limits = { ...DEFAULTS, ...checkedOptions('the options', options, CHECKS) };
    this.#family = new Family(this.#runs);
  }

  async apply(operations: readonly RunOperation[]): Promise<void> {
    this.#refuseManyAttachments(operations);
    // Settled when all has been told, so that a parent which moves often in one request moves all below it once.
    const told = new Set(operations.map((operation) => this.#take(operation)));
    const touched = new Set<string>();
    for (const run of told) {
      this.#family.settle(run, (moving, to) => this.#move(moving, to, touched));
      touched.add(run.place?.traceId ?? '');
    }
    const forgotten = this.#forgetOldest(touched);
    if (forgotten.traces > 0) this.#notice.add(forgotten);
    if (touched.size > 0) this.#tell({ traceIds: [...touched], ...(forgotten.traces > 0 ? { forgotten } : {}) });
  }

  async runs(query: RunQuery): Promise<StoredRun[]> {
    const among = query.traceId === undefined ? this.#runs.values() : (this.#traces.get(query.traceId) ?? []);
    const found = [...among].filter((run) => run.place?.dottedOrder !== undefined && matches(query, run.fields));
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

  #refuseManyAttachments(operations: readonly RunOperation[]): void {
    const names = new Map<string, Set<string>>();
    for (const { id, attachments } of operations) {
      if (attachments.length === 0) continue;
      const all = names.get(id) ?? new Set(this.#runs.get(id)?.attachmentNames);
      names.set(id, all);
      for (const { name } of attachments) all.add(name);
      if (all.size > ATTACHMENTS_MAX) throw new Refusal(413, `Run ${id} has more than ${ATTACHMENTS_MAX} attachments`);
    }
  }

  #take(operation: RunOperation): RunState {
    let run = this.#runs.get(operation.id);
    if (run === undefined) {
      run = new RunState(operation.id);
      this.#runs.set(run.id, run);
      this.#sizeBytes += run.sizeBytes;
    }
    this.#family.leave(run);
    this.#change(run, () => run.take(operation));
    this.#family.enter(run);
    return run;
  }

  #move(run: RunState, to: Place, touched: Set<string>): void {
    if (run.place !== undefined) {
      touched.add(run.place.traceId);
      this.#leave(run, run.place);
    }
    this.#change(run, () => {
      run.place = to;
    });
    touched.add(to.traceId);
    const trace = this.#traces.get(to.traceId);
    if (trace === undefined) this.#traces.set(to.traceId, new Set([run]));
    else trace.add(run);
  }

  #leave(run: RunState, { traceId }: Place): void {
    const trace = this.#traces.get(traceId);
    trace?.delete(run);
    if (trace?.size === 0) this.#traces.delete(traceId);
  }

  #change(run: RunState, change: () => void): void {
    this.#sizeBytes -= run.sizeBytes;
    change();
    this.#sizeBytes += run.sizeBytes;
  }

  #forgetOldest(touched: Set<string>): Forgotten {
    const forgotten = { runs: 0, traces: 0 };
    for (const [traceId, runs] of this.#traces) {
      if (this.#runs.size <= this.#limits.runsMax && this.#sizeBytes <= this.#limits.bytesMax) break;
      touched.add(traceId);
      this.#traces.delete(traceId);
      forgotten.traces += 1;
      forgotten.runs += runs.size;
      for (const run of runs) {
        this.#runs.delete(run.id);
        this.#family.leave(run);
        this.#sizeBytes -= run.sizeBytes;
      }
    }
    return forgotten;
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
  const [orderA = '', orderB = ''] = [a.place?.dottedOrder, b.place?.dottedOrder];
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

/** Whether a run is among those asked for, its trace and the limit aside. */
function matches({ project, name, runType }: RunQuery, run: RunFields): boolean {
  return (
    (project === undefined || run.session_name === project || run.session_id === project) &&
    (name === undefined || run.name === name) &&
    (runType === undefined || run.run_type === runType)
  );
}
