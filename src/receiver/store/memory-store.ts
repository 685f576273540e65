import { type Checks, checkedOptions, isObject, WHOLE_FROM_1 } from '../../base/options.ts';
import type { Attachment } from '../../run/record.ts';
import type { Feedback, FeedbackToken } from '../feedback/feedback.ts';
import { HttpError } from '../http-error.ts';
import type { ListQuery, Page, RunQuery, Statistics, StatisticsQuery } from '../query/query.ts';
import { Family } from './family.ts';
import { type Forgotten, ForgottenNotice } from './forgotten-notice.ts';
import { pageOf } from './list-page.ts';
import { MemoryTrace, type ShownTrace } from './memory-trace.ts';
import { checkedPrices, type Prices } from './prices.ts';
import { type FilteredRun, filterOf, isAmong, projectOf, type RunFilter, sortValueOf } from './run-filter.ts';
import { type Place, RunState } from './run-state.ts';
import { outlineOf } from './run-summary.ts';
import type {
  PayloadField,
  ProjectSummary,
  RunDetails,
  RunOutline,
  RunSummary,
  StoredRun,
  TraceSummary,
} from './run-view.ts';
import { isFound, runWords, type Search } from './search-words.ts';
import { statisticsOf } from './statistics.ts';
import type { RunOperation, Store, StoreChange } from './store.ts';
import { Subscribers } from './subscribers.ts';

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
  /** What tokens cost where a run does not tell it. @default none */
  prices?: Prices;
}

const DEFAULTS = { runsMax: 100_000, bytesMax: 256 * 1024 * 1024 };
const CHECKS: Checks<MemoryStoreOptions> = {
  runsMax: WHOLE_FROM_1,
  bytesMax: WHOLE_FROM_1,
  prices: ['an object', isObject],
};

/** Of one run. A request that brings more is refused with 413, at which senders leave attachments out. */
const ATTACHMENTS_MAX = 100;
/** Beyond it the oldest are forgotten. */
const TOKENS_MAX = 10_000;
/** How long what looks at many runs goes on before it lets others have a turn. */
const TURN_MS = 10;

/**
 * Runs in the memory of the process, gone with it. It never holds more than its limits after an `apply`: traces are
 * forgotten in the order in which their first run came, at last the one that just came, should it be larger than the
 * limit by itself. What comes later of a forgotten run is taken as new. What is forgotten is told in a line of
 * diagnostics, once a minute at the most, and in every `StoreChange`.
 */
export class MemoryStore implements Store {
  readonly #limits: typeof DEFAULTS;
  readonly #prices: Prices;
  readonly #runs = new Map<string, RunState>();
  /** In order of their first run, which is the order of forgetting. */
  readonly #traces = new Map<string, MemoryTrace>();
  readonly #family: Family<RunState>;
  readonly #subscribers = new Subscribers();
  readonly #tokens = new Map<string, FeedbackToken>();
  readonly #notice = new ForgottenNotice(() => performance.now(), 'runsMax and bytesMax');
  #sizeBytes = 0;
  #seq = 0;
  #turnAtMs = 0;

  constructor(options: MemoryStoreOptions = {}) {
    const { prices = {}, ...limits } = checkedOptions('the options', options, CHECKS);
    this.#prices = checkedPrices(prices);
    this.#limits = { ...DEFAULTS, ...limits };
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
    this.#changed(touched);
  }

  async runs(query: RunQuery): Promise<StoredRun[]> {
    const found = (await this.#found(filterOf(query))).sort(byOrder).slice(0, query.limit);
    // All as they are now, whatever comes while they are copied.
    const records = found.map((run) => run.record()).filter((record) => record !== undefined);
    const copies: StoredRun[] = [];
    for (const record of records) {
      await this.#rest();
      copies.push(structuredClone(record));
    }
    return copies;
  }

  async trace(traceId: string): Promise<StoredRun[]> {
    return this.runs({ traceId });
  }

  async attachment(runId: string, name: string): Promise<Attachment | undefined> {
    return this.#runs.get(runId)?.attachment(name);
  }

  async projects(): Promise<ProjectSummary[]> {
    const projects = new Map<string, ProjectSummary>();
    for (const trace of this.#traces.values()) {
      const summary = trace.shown()?.root.summary;
      if (summary === undefined) continue;
      const name = projectOf(summary);
      const project = projects.get(name) ?? { name, traces: 0, last_start_time: summary.start_time };
      projects.set(name, project);
      project.traces += 1;
      if (project.last_start_time < summary.start_time) project.last_start_time = summary.start_time;
    }
    return [...projects.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async traces(query: ListQuery): Promise<Page<TraceSummary>> {
    const filter = filterOf(query);
    const found: ShownTrace[] = [];
    for (const trace of this.#traces.values()) {
      const shown = trace.shown();
      if (shown === undefined || !isAmong(filter, shown.root, shown.whole.usage)) continue;
      if (filter.search === undefined || (await this.#search(trace.runs, filter.search, 1)).length > 0)
        found.push(shown);
    }
    const { sort = 'start_time' } = query;
    const place = ({ root, whole }: ShownTrace) => ({
      value: sortValueOf(sort, root, whole.usage),
      id: root.summary.id,
    });
    const { items, ...page } = pageOf(found, place, query);
    return structuredClone({ items: items.map(({ root, whole }) => ({ ...root.summary, trace: whole })), ...page });
  }

  async list(query: ListQuery): Promise<Page<RunSummary>> {
    const found = (await this.#found(filterOf(query))).flatMap((run) => run.shown() ?? []);
    const { sort = 'start_time' } = query;
    const place = (run: FilteredRun) => ({ value: sortValueOf(sort, run, run.summary.usage), id: run.summary.id });
    const { items, ...page } = pageOf(found, place, query);
    return structuredClone({ items: items.map(({ summary }) => summary), ...page });
  }

  async outline(traceId: string): Promise<RunOutline[]> {
    const runs = [...(this.#traces.get(traceId)?.runs ?? [])].sort(byOrder);
    return runs.flatMap((run) => {
      const summary = run.shown()?.summary;
      return summary === undefined ? [] : outlineOf(summary);
    });
  }

  async details(runId: string): Promise<RunDetails | undefined> {
    return this.#runs.get(runId)?.details();
  }

  async payload(runId: string, field: PayloadField): Promise<string | undefined> {
    return this.#runs.get(runId)?.payload(field);
  }

  async statistics(query: StatisticsQuery): Promise<Statistics> {
    const found = await this.#found(filterOf(query));
    return statisticsOf(
      found.flatMap((run) => {
        const shown = run.shown();
        const usage = this.#traces.get(run.place?.traceId ?? '')?.countedUsage(run);
        return shown === undefined ? [] : [{ ...shown, usage }];
      }),
      query,
    );
  }

  async changes(afterSeq: number, limit: number): Promise<StoreChange> {
    const later = [...this.#traces.values()].filter(({ seq }) => seq > afterSeq).sort((a, b) => a.seq - b.seq);
    const first = later.slice(0, limit);
    const seq = later.length > limit ? (first.at(-1)?.seq ?? afterSeq) : this.#seq;
    // Traces of one change go together, or those that did not fit would be passed over.
    return { seq, traceIds: later.filter((trace) => trace.seq <= seq).map(({ id }) => id) };
  }

  async addFeedback(feedback: Feedback): Promise<boolean> {
    const run = this.#runs.get(feedback.run_id);
    if (run?.place === undefined) return false;
    this.#change(run, () => run.say(feedback));
    this.#changed(new Set([run.place.traceId]));
    return true;
  }

  async feedback(traceId: string): Promise<Feedback[]> {
    const runs = [...(this.#traces.get(traceId)?.runs ?? [])];
    const all = runs.flatMap((run) => [...run.feedback]);
    return structuredClone(
      all.sort((a, b) => (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : 0)),
    );
  }

  async addTokens(tokens: readonly FeedbackToken[]): Promise<void> {
    for (const token of tokens) this.#tokens.set(token.id, { ...token });
    for (const id of this.#tokens.keys()) {
      if (this.#tokens.size <= TOKENS_MAX) break;
      this.#tokens.delete(id);
    }
  }

  async token(id: string): Promise<FeedbackToken | undefined> {
    return structuredClone(this.#tokens.get(id));
  }

  async tokens(runId: string): Promise<FeedbackToken[]> {
    return structuredClone([...this.#tokens.values()].filter(({ run_id }) => run_id === runId));
  }

  subscribe(listener: (change: StoreChange) => void): () => void {
    return this.#subscribers.add(listener);
  }

  #refuseManyAttachments(operations: readonly RunOperation[]): void {
    const names = new Map<string, Set<string>>();
    for (const { id, attachments } of operations) {
      if (attachments.length === 0) continue;
      const all = names.get(id) ?? new Set(this.#runs.get(id)?.attachmentNames);
      names.set(id, all);
      for (const { name } of attachments) all.add(name);
      if (all.size > ATTACHMENTS_MAX)
        throw new HttpError(413, `Run ${id} has more than ${ATTACHMENTS_MAX} attachments`);
    }
  }

  #take(operation: RunOperation): RunState {
    let run = this.#runs.get(operation.id);
    if (run === undefined) {
      run = new RunState(operation.id, this.#prices);
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
    const trace = this.#traces.get(to.traceId) ?? new MemoryTrace(to.traceId);
    this.#traces.set(to.traceId, trace);
    trace.runs.add(run);
  }

  #leave(run: RunState, { traceId }: Place): void {
    const trace = this.#traces.get(traceId);
    trace?.runs.delete(run);
    if (trace?.runs.size === 0) this.#traces.delete(traceId);
  }

  #change(run: RunState, change: () => void): void {
    this.#sizeBytes -= run.sizeBytes;
    change();
    this.#sizeBytes += run.sizeBytes;
  }

  /** The runs asked for that can be seen, in any order. */
  async #found(filter: RunFilter): Promise<RunState[]> {
    const among = filter.traceId === undefined ? this.#runs.values() : (this.#traces.get(filter.traceId)?.runs ?? []);
    const found: RunState[] = [];
    for (const run of among) {
      const shown = run.shown();
      if (shown !== undefined && isAmong(filter, shown, shown.summary.usage)) found.push(run);
    }
    return filter.search === undefined ? found : this.#search(found, filter.search);
  }

  /** Those with the words asked for, the first so many of them. All that runs say is looked through, which takes a while. */
  async #search(runs: Iterable<RunState>, search: Search, max: number = Number.POSITIVE_INFINITY): Promise<RunState[]> {
    const found: RunState[] = [];
    for (const run of runs) {
      if (found.length === max) break;
      await this.#rest();
      if (isFound(search, runWords(run.fields))) found.push(run);
    }
    return found;
  }

  /** Lets others have a turn when it is time. */
  async #rest(): Promise<void> {
    if (performance.now() - this.#turnAtMs <= TURN_MS) return;
    await new Promise((resolve) => void setImmediate(resolve));
    this.#turnAtMs = performance.now();
  }

  /** Called after the traces have changed, before anybody is told: what is too much is forgotten. */
  #changed(touched: Set<string>): void {
    const forgotten = this.#forgetOldest(touched);
    if (forgotten.traces > 0) this.#notice.add(forgotten);
    if (touched.size === 0) return;
    this.#seq += 1;
    for (const traceId of touched) {
      const trace = this.#traces.get(traceId);
      if (trace !== undefined) trace.seq = this.#seq;
    }
    this.#subscribers.tell({ seq: this.#seq, traceIds: [...touched], ...(forgotten.traces > 0 ? { forgotten } : {}) });
  }

  #forgetOldest(touched: Set<string>): Forgotten {
    const forgotten = { runs: 0, traces: 0 };
    for (const [traceId, { runs }] of this.#traces) {
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
}

function byOrder(a: RunState, b: RunState): number {
  const [orderA = '', orderB = ''] = [a.place?.dottedOrder, b.place?.dottedOrder];
  return orderA < orderB ? -1 : orderA > orderB ? 1 : 0;
}
