import { type Checks, checkedOptions, isObject, WHOLE_FROM_1 } from '../../base/options.ts';
import type { Attachment } from '../../run/record.ts';
import type { Feedback, FeedbackToken } from '../feedback/feedback.ts';
import { pageOf } from '../query/cursor.ts';
import type { ListQuery, Page, Ranged, RunQuery, Statistics, StatisticsQuery, TimeRange } from '../query/query.ts';
import {
  firstOrder,
  isInScope,
  isOrphan,
  MemoryRun,
  MemoryTrace,
  projectsOf,
  refuseManyAttachments,
  runsByTrace,
  Tenant,
  type TracedRun,
  traceIdOf,
} from './memory-run.ts';
import { checkedPrices, type Prices } from './prices.ts';
import { filterOf, isAmong, type RunFilter, sortValueOf } from './run-filter.ts';
import { outlineOf } from './run-summary.ts';
import type { PayloadField, ProjectSummary, RunDetails, RunOutline, RunSummary, TraceSummary } from './run-view.ts';
import { isFound, runWords, type Search } from './search-words.ts';
import { statisticsOf } from './statistics.ts';
import { type Changes, type RunOperation, type Scope, type Store, type StoreChange, TOKENS_MAX } from './store.ts';
import { Subscribers } from './subscribers.ts';

/** The limits of a memory store. Beyond a limit the oldest traces are deleted as a whole. */
export interface MemoryStoreOptions {
  /** The number of runs, including runs that are not visible yet. @default 100000 */
  runsMax?: number;
  /**
   * Bytes: fields as JSON text, attachments, and an allowance for each value, run and attachment. The heap grows by about
   * as much for text and messages, and by up to 2.5 times as much for objects with different keys.
   * @default 268435456 (256 MiB)
   */
  bytesMax?: number;
  /** Prices of tokens, for runs without a cost. @default none */
  prices?: Prices;
}

const DEFAULTS = { runsMax: 100_000, bytesMax: 256 * 1024 * 1024 };
const CHECKS: Checks<MemoryStoreOptions> = {
  runsMax: WHOLE_FROM_1,
  bytesMax: WHOLE_FROM_1,
  prices: ['an object', isObject],
};

/** The part of a limit that is freed once it is exceeded, so that not every request has to look for old traces. */
const SLACK = 0.05;
/** Maximum time for which a query blocks the event loop while it reads payloads. */
const TURN_MS = 10;

/**
 * Keeps runs in the memory of the process. It is the reference implementation of `Store`: it has no indexes, and derives
 * the traces from their runs for each query. The limits hold after each `apply`. The oldest trace is the one whose first
 * run arrived first. A later message of a deleted run creates the run again.
 */
export class MemoryStore implements Store {
  readonly #limits: typeof DEFAULTS;
  readonly #prices: Prices;
  readonly #tenants = new Map<string, Tenant>();
  readonly #subscribers = new Subscribers('runsMax and bytesMax');
  #runs = 0;
  #sizeBytes = 0;
  #lastN = 0;
  #seq = 0;
  #turnAtMs = 0;

  constructor(options: MemoryStoreOptions = {}) {
    const { prices = {}, ...limits } = checkedOptions('the options', options, CHECKS);
    this.#prices = checkedPrices(prices);
    this.#limits = { ...DEFAULTS, ...limits };
  }

  async apply(scope: Scope, operations: readonly RunOperation[]): Promise<void> {
    const tenant = this.#tenant(scope);
    refuseManyAttachments(tenant, operations);
    const known = operations.flatMap(({ id }) => tenant.runs.get(id) ?? []);
    const before = new Map([...known, ...tenant.orphans].map((run) => [run, traceIdOf(run, tenant)]));
    const applied = new Set(operations.map((operation) => this.#take(tenant, operation)));
    const touched = new Set<string>();
    for (const run of new Set([...applied, ...before.keys()])) {
      const [from, to] = [before.get(run), traceIdOf(run, tenant)];
      if (from === to && !applied.has(run)) continue;
      if (from !== undefined) touched.add(from);
      touched.add(to);
    }
    for (const run of [...applied, ...tenant.orphans]) {
      if (isOrphan(run, tenant)) tenant.orphans.add(run);
      else tenant.orphans.delete(run);
    }
    this.#report(scope, touched);
  }

  async *runs(scope: Scope, query: Ranged<RunQuery>): AsyncGenerator<string> {
    const found = new Set(await this.#found(scope, filterOf(scope, query)));
    const traces = this.#traces(scope).filter(({ visible }) => visible.some(({ run }) => found.has(run)));
    const inOrder = traces.map((trace) => ({ trace, runs: trace.inOrder() }));
    inOrder.sort((a, b) => (firstOrder(a) < firstOrder(b) ? -1 : 1));
    const records = inOrder
      .flatMap(({ trace, runs }) => runs.map((traced) => ({ ...traced, order: trace.orderOf(traced.id) })))
      .filter(({ run }) => found.has(run))
      .slice(0, query.limit)
      .map(({ run, traceId, parentId, order }) => run.record(traceId, parentId, order));
    for (const record of records) {
      await this.#takeTurns();
      yield JSON.stringify(record);
    }
  }

  async attachment(scope: Scope, runId: string, name: string): Promise<Attachment | undefined> {
    return structuredClone(this.#find(scope, runId)?.run.attachments.get(name));
  }

  async projects(scope: Scope, range: TimeRange): Promise<ProjectSummary[]> {
    return projectsOf(this.#traces(scope), scope, range);
  }

  async traces(scope: Scope, query: Ranged<ListQuery>): Promise<Page<TraceSummary>> {
    const filter = filterOf(scope, query);
    const found: { root: TracedRun; totals: TraceSummary['trace'] }[] = [];
    for (const trace of this.#traces(scope)) {
      const { root } = trace;
      if (root === undefined) continue;
      const totals = trace.totals();
      if (!isAmong(filter, root.listed, totals.usage)) continue;
      if (await this.#hasWords(trace.visible, filter.search)) found.push({ root, totals });
    }
    const { sort = 'start_time' } = query;
    const { items, ...page } = pageOf(
      found,
      ({ root, totals }) => ({ value: sortValueOf(sort, root.listed, totals.usage), n: root.run.n }),
      query,
    );
    return structuredClone({
      items: items.map(({ root, totals }) => ({ ...root.listed.summary, trace: totals })),
      ...page,
    });
  }

  async list(scope: Scope, query: Ranged<ListQuery>): Promise<Page<RunSummary>> {
    const found = new Set(await this.#found(scope, filterOf(scope, query)));
    const listed = this.#traces(scope).flatMap(({ visible }) => visible.filter(({ run }) => found.has(run)));
    const { sort = 'start_time' } = query;
    const { items, ...page } = pageOf(
      listed,
      ({ run, listed }) => ({ value: sortValueOf(sort, listed, listed.summary.usage), n: run.n }),
      query,
    );
    return structuredClone({ items: items.map(({ listed }) => listed.summary), ...page });
  }

  async outline(scope: Scope, traceId: string): Promise<RunOutline[]> {
    const trace = this.#traces(scope).find(({ id }) => id === traceId);
    const runs = trace?.inOrder().filter(({ listed }) => isInScope(scope, listed.summary)) ?? [];
    return runs.map(({ listed }) => outlineOf(listed.summary));
  }

  async details(scope: Scope, runId: string): Promise<RunDetails | undefined> {
    const found = this.#find(scope, runId);
    if (found === undefined) return undefined;
    const { traced, trace } = found;
    return { ...traced.listed.summary, dotted_order: trace.orderOf(runId), ...traced.run.details() };
  }

  async payload(scope: Scope, runId: string, field: PayloadField): Promise<string | undefined> {
    return this.#find(scope, runId)?.run.payload(field);
  }

  async statistics(scope: Scope, query: Ranged<StatisticsQuery>): Promise<Statistics> {
    const found = new Set(await this.#found(scope, filterOf(scope, query)));
    const counted = this.#traces(scope).flatMap((trace) =>
      trace.visible
        .filter(({ run }) => found.has(run))
        .map((traced) => ({ ...traced.listed, usage: trace.countedUsage(traced) })),
    );
    return statisticsOf(counted, query);
  }

  async changes(scope: Scope, after: string | undefined, limit: number): Promise<Changes> {
    const afterSeq = after === undefined ? this.#seq : Number(after);
    if (!Number.isSafeInteger(afterSeq) || afterSeq > this.#seq || afterSeq < 0) {
      return { cursor: `${this.#seq}`, traceIds: undefined };
    }
    const later = [...this.#tenant(scope).changed].filter(([, seq]) => seq > afterSeq).sort(([, a], [, b]) => a - b);
    // Traces of one change are returned together, because they share a cursor.
    const last = later.length > limit ? (later[limit - 1]?.[1] ?? this.#seq) : this.#seq;
    return { cursor: `${last}`, traceIds: later.filter(([, seq]) => seq <= last).map(([id]) => id) };
  }

  subscribe(scope: Scope, listener: (change: StoreChange) => void): () => void {
    return this.#subscribers.add(scope.tenant, listener);
  }

  async addFeedback(scope: Scope, feedback: Feedback): Promise<boolean> {
    const tenant = this.#tenant(scope);
    const run = tenant.runs.get(feedback.run_id);
    if (run === undefined) return false;
    this.#sizeBytes -= run.sizeBytes;
    run.addFeedback(feedback);
    this.#sizeBytes += run.sizeBytes;
    this.#report(scope, new Set([traceIdOf(run, tenant)]));
    return true;
  }

  async feedback(scope: Scope, traceId: string): Promise<Feedback[]> {
    const tenant = this.#tenant(scope);
    const runs = [...tenant.runs.values()].filter((run) => run.feedback.size > 0 && traceIdOf(run, tenant) === traceId);
    const all = runs.flatMap((run) => [...run.feedback.values()]);
    return structuredClone(
      all.sort((a, b) => (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : 0)),
    );
  }

  async addTokens(scope: Scope, added: readonly FeedbackToken[]): Promise<void> {
    const { tokens } = this.#tenant(scope);
    for (const token of added) tokens.set(token.id, { ...token });
    for (const id of tokens.keys()) {
      if (tokens.size <= TOKENS_MAX) break;
      tokens.delete(id);
    }
  }

  async token(scope: Scope, id: string): Promise<FeedbackToken | undefined> {
    return structuredClone(this.#tenant(scope).tokens.get(id));
  }

  async tokens(scope: Scope, runId: string): Promise<FeedbackToken[]> {
    return structuredClone([...this.#tenant(scope).tokens.values()].filter(({ run_id }) => run_id === runId));
  }

  #tenant({ tenant: name }: Scope): Tenant {
    const tenant = this.#tenants.get(name) ?? new Tenant();
    this.#tenants.set(name, tenant);
    return tenant;
  }

  #take(tenant: Tenant, operation: RunOperation): MemoryRun {
    let run = tenant.runs.get(operation.id);
    if (run === undefined) {
      this.#lastN += 1;
      this.#runs += 1;
      run = new MemoryRun(operation.id, this.#lastN);
      tenant.runs.set(run.id, run);
      this.#sizeBytes += run.sizeBytes;
    }
    this.#sizeBytes -= run.sizeBytes;
    run.take(operation);
    this.#sizeBytes += run.sizeBytes;
    if (run.spans.span !== undefined) tenant.bySpan.set(run.spans.span, run);
    return run;
  }

  /** All traces of a tenant. They are derived again after each change. */
  #traces(scope: Scope): readonly MemoryTrace[] {
    const tenant = this.#tenant(scope);
    if (tenant.derived?.seq !== this.#seq) {
      const traces = [...runsByTrace(tenant)].map(([id, runs]) => new MemoryTrace(id, runs, tenant, this.#prices));
      tenant.derived = { seq: this.#seq, traces };
    }
    return tenant.derived.traces;
  }

  #find(scope: Scope, runId: string): { run: MemoryRun; traced: TracedRun; trace: MemoryTrace } | undefined {
    const tenant = this.#tenant(scope);
    const run = tenant.runs.get(runId);
    if (run?.isVisible !== true) return undefined;
    const traceId = traceIdOf(run, tenant);
    const trace = this.#traces(scope).find(({ id }) => id === traceId);
    const traced = trace?.visible.find(({ id }) => id === runId);
    if (trace === undefined || traced === undefined || !isInScope(scope, traced.listed.summary)) return undefined;
    return { run, traced, trace };
  }

  /** Returns the visible runs that match a filter. */
  async #found(scope: Scope, filter: RunFilter): Promise<MemoryRun[]> {
    const found: MemoryRun[] = [];
    for (const traced of this.#traces(scope).flatMap(({ visible }) => visible)) {
      const { run, listed } = traced;
      if (!isAmong(filter, listed, listed.summary.usage)) continue;
      if (await this.#hasWords([traced], filter.search)) found.push(run);
    }
    return found;
  }

  async #hasWords(runs: readonly TracedRun[], search: Search | undefined): Promise<boolean> {
    if (search === undefined) return true;
    for (const { run } of runs) {
      await this.#takeTurns();
      if (isFound(search, runWords(run.fields))) return true;
    }
    return false;
  }

  /** Lets other work run if a query has taken its time. */
  async #takeTurns(): Promise<void> {
    if (performance.now() - this.#turnAtMs <= TURN_MS) return;
    await new Promise((resolve) => void setImmediate(resolve));
    this.#turnAtMs = performance.now();
  }

  /** Deletes what exceeds the limits, then reports the change. */
  #report(scope: Scope, touched: Set<string>): void {
    const { runsMax, bytesMax } = this.#limits;
    const isOver = this.#runs > runsMax || this.#sizeBytes > bytesMax;
    const forgotten = isOver ? this.#forget(scope.tenant, touched) : undefined;
    if (touched.size === 0) return;
    this.#seq += 1;
    const tenant = this.#tenant(scope);
    for (const id of touched) tenant.changed.set(id, this.#seq);
    const change = { cursor: `${this.#seq}`, traceIds: [...touched], ...(forgotten && { forgotten }) };
    this.#subscribers.report(scope.tenant, change);
  }

  /** Deletes the oldest traces, of the tenant whose request exceeded a limit first. */
  #forget(tenantName: string, touched: Set<string>): StoreChange['forgotten'] {
    const runsMax = this.#limits.runsMax - Math.floor(this.#limits.runsMax * SLACK);
    const bytesMax = this.#limits.bytesMax * (1 - SLACK);
    const forgotten = { runs: 0, traces: 0 };
    const others = [...this.#tenants.keys()].filter((name) => name !== tenantName);
    for (const name of [tenantName, ...others]) {
      const tenant = this.#tenant({ tenant: name });
      for (const [traceId, runs] of runsByTrace(tenant)) {
        const isWithinLimits = this.#runs <= this.#limits.runsMax && this.#sizeBytes <= this.#limits.bytesMax;
        const isWithinTarget = this.#runs <= runsMax && this.#sizeBytes <= bytesMax;
        // The slack is not taken from traces of the request.
        if (isWithinTarget || (isWithinLimits && touched.has(traceId))) return forgotten;
        for (const run of runs) {
          tenant.runs.delete(run.id);
          tenant.orphans.delete(run);
          const { span } = run.spans;
          if (span !== undefined && tenant.bySpan.get(span) === run) tenant.bySpan.delete(span);
          this.#sizeBytes -= run.sizeBytes;
        }
        this.#runs -= runs.length;
        tenant.changed.delete(traceId);
        if (name === tenantName) touched.add(traceId);
        forgotten.runs += runs.length;
        forgotten.traces += 1;
      }
    }
    return forgotten;
  }
}
