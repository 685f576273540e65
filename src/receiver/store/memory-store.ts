import { type Checks, checkedOptions, isObject, WHOLE_FROM_1, wholeFrom } from '../../config/checker.ts';
import { exactJson, parseExact } from '../../payload/fields.ts';
import type { Attachment } from '../../run/record.ts';
import {
  AssembledRun,
  AssembledTrace,
  assembledThread,
  compareStarts,
  isInScope,
  Places,
  type TracedRun,
} from '../domain/assemble.ts';
import { pageOf } from '../domain/cursor.ts';
import type { Feedback } from '../domain/feedback.ts';
import { PriceList, type PriceOptions } from '../domain/prices.ts';
import type {
  ListQuery,
  Page,
  RunQuery,
  Scope,
  Statistics,
  StatisticsQuery,
  Suggestion,
  SuggestionQuery,
  ThreadQuery,
  TimeRange,
} from '../domain/query.ts';
import { type Removal, type RemovalJob, type RemovalTarget, RemovedIds } from '../domain/removal.ts';
import type { RunOperation } from '../domain/run-message.ts';
import { projectOf, sortValueOf } from '../domain/run-values.ts';
import type {
  PayloadField,
  ProjectSummary,
  RunDetails,
  RunSummary,
  ThreadSummary,
  TraceSummary,
} from '../domain/run-view.ts';
import { isFound, runWords } from '../domain/search-words.ts';
import { statisticsOf } from '../domain/statistics.ts';
import { SUGGESTED_RUNS_MAX, suggestedValues, suggestionsOf } from '../domain/suggestions.ts';
import { outlineOf } from '../domain/summary.ts';
import { inOrder, type SpanIds, spanKey } from '../domain/tree.ts';
import { isInProjects, matchesFilter } from '../filter/match.ts';
import { ALL_RUNS, inProject, type Parsed, type RunFilter, valueIn, within } from '../filter/run-filter.ts';
import {
  JOB_AGE_MS,
  type MergedRun,
  type RemovalOptions,
  refuseManyAttachments,
  type Store,
  type StoreChange,
  type TokenSecret,
} from './store.ts';
import { Subscribers } from './subscribers.ts';

/** Limits for a memory store. Above a limit, the store deletes whole traces, oldest first. */
export interface MemoryStoreOptions extends PriceOptions {
  /**
   * Maximum number of runs, including runs that are not visible yet.
   * @default 100000
   */
  runsMax?: number;
  /**
   * Maximum size in bytes. The size includes fields as JSON text, attachments, and an overhead for each value, run and
   * attachment. The heap usage of text and messages is close to the calculated size. Objects with different keys can
   * use 2.5 times as much heap. Minimum: 4096.
   * @default 268435456 (256 MiB)
   */
  bytesMax?: number;
}

const DEFAULTS = { runsMax: 100_000, bytesMax: 256 * 1024 * 1024 };
const CHECKS: Checks<MemoryStoreOptions> = {
  runsMax: WHOLE_FROM_1,
  bytesMax: wholeFrom(4_096),
  prices: ['an object', isObject],
  priceTable: ['an object with `name` and `providers`', isObject],
};

/**
 * Additional fraction of a limit to free when the limit is exceeded. Without this extra space, every request to a full
 * store would have to search for old traces.
 */
const SLACK = 0.05;
/** Maximum number of ids of removed runs in a tenant. The same limit applies to traces. */
const REMOVED_MAX = 100_000;
/** Maximum time that a query blocks the event loop while reading payloads, in milliseconds. */
const TURN_MS = 10;

type ProjectsByTrace = ReadonlyMap<string, readonly string[]>;

/** The runs and other data of one tenant. */
class Tenant {
  readonly runs = new Map<string, AssembledRun>();
  /** Maps the id of a token or a run to the latest time at which the token, or the tokens of the run, were revoked. */
  readonly revokedMs = new Map<string, number>();
  readonly removed = new RemovedIds();
}

/**
 * A store that keeps runs in memory. `MemoryStore` is the reference implementation of `Store`. Without indexes, the
 * store derives traces from their runs for each query. Each call to `apply` enforces the limits by deleting the traces
 * whose first run arrived earliest. If a later message belongs to a deleted run, the store creates the run again.
 */
export class MemoryStore implements Store {
  readonly #limits: typeof DEFAULTS;
  readonly #prices: PriceList;
  readonly #tenants = new Map<string, Tenant>();
  readonly #tokenSecrets = new Map<string, TokenSecret>();
  readonly #jobs = new Map<string, RemovalJob>();
  readonly #subscribers = new Subscribers('runsMax and bytesMax');
  #lastN = 0;
  #turnAtMs = 0;

  constructor(options: MemoryStoreOptions = {}) {
    const checked = checkedOptions('the options', options, CHECKS);
    this.#prices = new PriceList(checked);
    this.#limits = { ...DEFAULTS, ...checked };
  }

  async apply(scope: Scope, messages: readonly RunOperation[]): Promise<number | undefined> {
    const { runs, removed } = this.#tenant(scope);
    const created = new Set<string>();
    const operations = messages.filter(({ id, fields: { trace_id, parent_run_id } }) => {
      const isRefused = removed.refuses(id, trace_id, parent_run_id, runs.has(id) || created.has(id));
      if (!isRefused) created.add(id);
      return !isRefused;
    });
    removed.limit(REMOVED_MAX);
    refuseManyAttachments(operations, (id) => runs.get(id)?.attachments.keys());
    const before = new Places(runs);
    const known = operations.flatMap(({ id }) => runs.get(id) ?? []);
    const touched = new Set(known.map((run) => before.traceIdOf(run)));
    const projectsBefore = this.#projects(scope);
    const keysBefore = new Set(known.flatMap(({ keys }) => keys));
    for (const operation of operations) {
      const run = runs.get(operation.id) ?? new AssembledRun(operation.id, ++this.#lastN);
      runs.set(run.id, run);
      run.take(operation);
    }
    const applied = operations.flatMap(({ id }) => runs.get(id) ?? []);
    const after = new Places(runs);
    for (const run of applied) touched.add(after.traceIdOf(run));
    // Until its parent arrived, a run without a `trace_id` formed its own trace.
    const arrived = new Set(applied.flatMap(({ keys }) => keys).filter((key) => !keysBefore.has(key)));
    for (const { id, fields, spans } of arrived.size === 0 ? [] : runs.values()) {
      if (fields.trace_id !== undefined || arrived.has(id)) continue;
      if (arrived.has(fields.parent_run_id ?? spans.parentSpan ?? '')) touched.add(id);
    }
    this.#report(scope, touched, projectsBefore);
    return messages.length - operations.length;
  }

  async *runs(scope: Scope, query: Parsed<RunQuery>): AsyncGenerator<string> {
    const found = new Set(await this.#found(scope, query));
    const traces = [...new Set([...found].map(({ trace }) => trace))].map((trace) => inOrder(trace.runs));
    traces.sort(([a], [b]) => ((a?.order ?? '') < (b?.order ?? '') ? -1 : 1));
    const records = traces
      .flatMap((runs) => runs.filter(({ run }) => found.has(run)))
      .slice(0, query.limit)
      .map(({ run: { id, run, parentId, summary }, order: dotted_order }) => {
        const place = { trace_id: summary.trace_id, dotted_order, ...(parentId && { parent_run_id: parentId }) };
        return { inputs: {}, ...run.fields, ...place, id, ...run.attachmentInfos() };
      });
    for (const record of records) {
      await this.#takeTurns();
      yield exactJson(record);
    }
  }

  async attachment(scope: Scope, runId: string, name: string): Promise<Attachment | undefined> {
    return structuredClone(this.#find(scope, runId)?.run.attachments.get(name));
  }

  async projects(scope: Scope, range: TimeRange): Promise<ProjectSummary[]> {
    const filter = within(scope, { ...ALL_RUNS, range });
    const roots = this.#traces(scope).flatMap(({ root }) =>
      root !== undefined && matchesFilter(filter, root, undefined) ? [root.summary] : [],
    );
    return [...new Set(roots.map(projectOf))].sort().map((name) => {
      const starts = roots.filter((root) => projectOf(root) === name).map(({ start_time }) => start_time);
      return { name, traces: starts.length, last_start_time: starts.sort().at(-1) ?? '' };
    });
  }

  async traces(scope: Scope, query: Parsed<ListQuery>): Promise<Page<TraceSummary>> {
    const filter = within(scope, query.filter);
    const found: (TracedRun & { readonly totals: TraceSummary['trace'] })[] = [];
    for (const trace of this.#traces(scope)) {
      const totals = trace.totals();
      if (trace.root === undefined || !matchesFilter(filter, trace.root, totals.usage)) continue;
      if (await this.#hasWords(trace.runs, filter)) found.push({ ...trace.root, totals });
    }
    const { sort = 'start_time' } = query;
    const page = pageOf(found, (run) => ({ value: sortValueOf(sort, run, run.totals.usage), n: run.run.n }), query);
    const items = page.items.map(({ summary, totals }) => ({ ...summary, trace: totals }));
    return structuredClone({ ...page, items });
  }

  async threads(scope: Scope, query: Parsed<ThreadQuery>): Promise<Page<ThreadSummary>> {
    const filter = within(scope, query.filter);
    const inside = within(scope, { ...ALL_RUNS, projects: query.filter.projects });
    const roots = this.#traces(scope).flatMap(({ root }) =>
      root && matchesFilter(inside, root, undefined) ? [root] : [],
    );
    const latest = new Map<string, TracedRun>();
    for (const root of roots.toSorted(compareStarts)) {
      const { thread } = root.summary;
      if (thread === undefined || !matchesFilter(filter, root, root.trace.totals().usage)) continue;
      if (await this.#hasWords(root.trace.runs, filter)) latest.set(thread, root);
    }
    const page = pageOf([...latest], ([, { startUs, run }]) => ({ value: startUs, n: run.n }), query);
    const items = page.items.map(([thread]) =>
      assembledThread(
        thread,
        roots.filter(({ summary }) => summary.thread === thread),
      ),
    );
    return structuredClone({ ...page, items });
  }

  async list(scope: Scope, query: Parsed<ListQuery>): Promise<Page<RunSummary>> {
    const { sort = 'start_time' } = query;
    const found = await this.#found(scope, query);
    const page = pageOf(found, (run) => ({ value: sortValueOf(sort, run, run.summary.usage), n: run.run.n }), query);
    return structuredClone({ ...page, items: page.items.map(({ summary }) => summary) });
  }

  async outline(scope: Scope, traceId: string): Promise<string[]> {
    const runs = this.#traces(scope, traceId).flatMap((trace) => inOrder(trace.runs));
    return runs.filter(({ run }) => isInScope(scope, run)).map(({ run }) => JSON.stringify(outlineOf(run.summary)));
  }

  async details(scope: Scope, runId: string): Promise<RunDetails | undefined> {
    const found = this.#find(scope, runId);
    if (found === undefined) return undefined;
    const { run, summary, trace, costSource } = found;
    const { error, extra } = run.fields;
    return parseExact(
      exactJson({
        ...summary,
        ...costSource,
        dotted_order: inOrder(trace.runs).find(({ run: { id } }) => id === runId)?.order ?? '',
        payload_sizes: run.payloadSizes(),
        ...(error && { error }),
        ...(extra && { extra }),
        ...run.attachmentInfos(),
        ...(run.feedback.size > 0 && { feedback: [...run.feedback.values()] }),
      }),
    );
  }

  async projectsOf(scope: Scope, runIds: readonly string[]): Promise<string[]> {
    const found = runIds.flatMap((id) => this.#find(scope, id) ?? []);
    return [...new Set(found.map(({ summary }) => projectOf(summary)))];
  }

  async payload(scope: Scope, runId: string, field: PayloadField): Promise<string | undefined> {
    return this.#find(scope, runId)?.run.payload(field);
  }

  async mergedRuns(scope: Scope, runs: readonly (string | SpanIds)[]): Promise<MergedRun[]> {
    const keys = new Set<string | undefined>(runs.map((run) => (typeof run === 'string' ? run : spanKey(run))));
    const found = [...this.#tenant(scope).runs.values()].filter(
      ({ id, spans }) => keys.has(id) || keys.has(spans.span),
    );
    return parseExact(exactJson(found.map(({ id, fields }) => ({ id, fields }))));
  }

  async statistics(scope: Scope, query: Parsed<StatisticsQuery>): Promise<Statistics> {
    const found = await this.#found(scope, query);
    const runs = found.map((run) => ({ ...run, usage: run.trace.countedUsage(run) }));
    return statisticsOf(runs, query);
  }

  async suggestions(scope: Scope, { field, text = '', project }: SuggestionQuery): Promise<Suggestion[]> {
    const runs = await this.#found(scope, { filter: inProject(project) });
    const latest = runs.toSorted((a, b) => compareStarts(b, a)).slice(0, SUGGESTED_RUNS_MAX);
    return suggestionsOf(
      latest.map((run) => suggestedValues(field, run)),
      text,
    );
  }

  subscribe(scope: Scope, listener: (change: StoreChange) => void): () => void {
    return this.#subscribers.add(scope, listener);
  }

  async addFeedback(scope: Scope, feedback: Feedback): Promise<boolean> {
    const { runs } = this.#tenant(scope);
    const run = runs.get(feedback.run_id);
    if (run === undefined) return false;
    run.addFeedback(feedback);
    this.#report(scope, new Set([new Places(runs).traceIdOf(run)]));
    return true;
  }

  async feedback(scope: Scope, traceIds: readonly string[]): Promise<Feedback[]> {
    const wanted = new Set(traceIds);
    const traces = this.#traces(scope).filter(({ id }) => wanted.has(id));
    const runs = traces.flatMap((trace) => trace.runs.filter((run) => isInScope(scope, run)));
    const all = runs.flatMap(({ run }) => [...run.feedback.values()]);
    all.sort((a, b) => (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : 0));
    return parseExact(exactJson(all));
  }

  async feedbackWithId(scope: Scope, id: string): Promise<Feedback | undefined> {
    const runs = [...this.#tenant(scope).runs.values()].filter((run) => run.feedback.has(id));
    const run = runs.find((one) => this.#find(scope, one.id) !== undefined);
    const found = run?.feedback.get(id);
    return found && parseExact(exactJson(found));
  }

  async removeFeedback(scope: Scope, { id, run_id }: Pick<Feedback, 'id' | 'run_id'>): Promise<boolean> {
    const { runs } = this.#tenant(scope);
    const run = runs.get(run_id);
    if (!run?.removeFeedback(id)) return false;
    this.#report(scope, new Set([new Places(runs).traceIdOf(run)]));
    return true;
  }

  async addTokenSecret(secret: TokenSecret): Promise<void> {
    this.#tokenSecrets.set(secret.secret, { ...secret });
  }

  async tokenSecrets(): Promise<TokenSecret[]> {
    return structuredClone([...this.#tokenSecrets.values()]).sort((a, b) => a.createdMs - b.createdMs);
  }

  async revokeTokens(scope: Scope, id: string, ms: number): Promise<void> {
    const { revokedMs } = this.#tenant(scope);
    revokedMs.set(id, Math.max(ms, revokedMs.get(id) ?? 0));
  }

  async tokensRevokedMs(scope: Scope, ids: readonly string[]): Promise<number | undefined> {
    const { revokedMs } = this.#tenant(scope);
    const times = ids.flatMap((id) => revokedMs.get(id) ?? []);
    return times.length === 0 ? undefined : Math.max(...times);
  }

  async removable(scope: Scope, target: RemovalTarget): Promise<Removal> {
    const counts = this.#traces(scope).map((trace) => trace.selected(scope, target).runs.length);
    return { runs: counts.reduce((sum, runs) => sum + runs, 0), traces: counts.filter((runs) => runs > 0).length };
  }

  async remove(scope: Scope, target: RemovalTarget, { onProgress }: RemovalOptions = {}): Promise<Removal> {
    const { runs, removed } = this.#tenant(scope);
    const touched = new Set<string>();
    const projectsBefore = this.#projects(scope);
    const runsBefore = runs.size;
    for (const trace of this.#traces(scope)) {
      const selected = trace.selected(scope, target);
      if (selected.runs.length === 0) continue;
      touched.add(trace.id);
      if (selected.isTrace) removed.traces.add(trace.id);
      for (const { id } of selected.runs) {
        removed.runs.add(id);
        runs.delete(id);
      }
    }
    removed.limit(REMOVED_MAX);
    const removal = { runs: runsBefore - runs.size, traces: touched.size };
    this.#report(scope, touched, projectsBefore);
    onProgress?.(removal);
    return removal;
  }

  async putJob(job: RemovalJob): Promise<void> {
    const hasEnded = (this.#jobs.get(job.id)?.state ?? 'running') !== 'running';
    if (!hasEnded || job.state !== 'running') this.#jobs.set(job.id, structuredClone(job));
  }

  async jobs(): Promise<RemovalJob[]> {
    const oldMs = Date.now() - JOB_AGE_MS;
    for (const { id, end_time: end } of this.#jobs.values()) if (Date.parse(end ?? '') < oldMs) this.#jobs.delete(id);
    return structuredClone([...this.#jobs.values()]);
  }

  #tenant({ tenant: name }: Scope): Tenant {
    const tenant = this.#tenants.get(name) ?? new Tenant();
    this.#tenants.set(name, tenant);
    return tenant;
  }

  /** Returns all traces in a tenant, or only the trace `traceId` if `traceId` is set. */
  #traces(scope: Scope, traceId?: string): AssembledTrace[] {
    const places = new Places(this.#tenant(scope).runs);
    const traces = [...places.runsByTrace()].filter(([id]) => traceId === undefined || id === traceId);
    return traces.map(([id, runs]) => new AssembledTrace(id, runs, places, this.#prices));
  }

  #find(scope: Scope, runId: string): TracedRun | undefined {
    const { runs } = this.#tenant(scope);
    const run = runs.get(runId);
    const [trace] = run === undefined ? [] : this.#traces(scope, new Places(runs).traceIdOf(run));
    return trace?.runs.find((traced) => traced.run === run && isInScope(scope, traced));
  }

  /** Returns the visible runs that match a query. */
  async #found(scope: Scope, query: Parsed<RunQuery>): Promise<TracedRun[]> {
    const filter = within(scope, query.filter);
    const found: TracedRun[] = [];
    for (const run of this.#traces(scope, valueIn(filter, 'trace')).flatMap(({ runs }) => runs)) {
      if (!matchesFilter(filter, run, run.summary.usage)) continue;
      if (await this.#hasWords([run], filter)) found.push(run);
    }
    return found;
  }

  /** Returns whether one of the runs is in the projects of the filter and contains the search words. */
  async #hasWords(runs: readonly TracedRun[], filter: RunFilter): Promise<boolean> {
    if (filter.search === undefined) return true;
    for (const traced of runs) {
      await this.#takeTurns();
      if (isInProjects(filter, traced) && isFound(filter.search, runWords(traced.run.fields))) return true;
    }
    return false;
  }

  /** Yields to the event loop if the query has run for `TURN_MS`. */
  async #takeTurns(): Promise<void> {
    if (performance.now() - this.#turnAtMs <= TURN_MS) return;
    await new Promise((resolve) => void setImmediate(resolve));
    this.#turnAtMs = performance.now();
  }

  /** Enforces the limits, then reports the change to subscribers. */
  #report(scope: Scope, touched: Set<string>, projectsBefore: ProjectsByTrace = new Map()): void {
    const projects = this.#projects(scope);
    const forgotten = this.#forget(scope.tenant, touched);
    if (touched.size === 0) return;
    const traces = [...touched].map((id) => ({
      id,
      projects: [...(projectsBefore.get(id) ?? []), ...(projects.get(id) ?? [])],
    }));
    this.#subscribers.report({ tenant: scope.tenant, traces, ...(forgotten && { forgotten }) });
  }

  /** Returns the projects of each trace, or nothing if no listener is limited to a project. */
  #projects(scope: Scope): ProjectsByTrace {
    if (!this.#subscribers.isLimited(scope.tenant)) return new Map();
    const traces = [...new Places(this.#tenant(scope).runs).runsByTrace()];
    return new Map(traces.map(([id, runs]) => [id, runs.flatMap((run) => run.projects)]));
  }

  /**
   * Deletes the oldest traces until the store is within its limits. Traces in the request's tenant are deleted before
   * traces in other tenants.
   */
  #forget(tenantName: string, touched: Set<string>): StoreChange['forgotten'] {
    let [runsLeft, bytesLeft] = [0, 0];
    for (const { runs } of this.#tenants.values()) {
      runsLeft += runs.size;
      for (const { sizeBytes } of runs.values()) bytesLeft += sizeBytes;
    }
    const isWithin = (part: number): boolean =>
      runsLeft <= Math.ceil(this.#limits.runsMax * part) && bytesLeft <= this.#limits.bytesMax * part;
    if (isWithin(1)) return undefined;
    const forgotten = { runs: 0, traces: 0 };
    const others = [...this.#tenants.keys()].filter((name) => name !== tenantName);
    for (const name of [tenantName, ...others]) {
      const tenant = this.#tenant({ tenant: name });
      const traces = [...new Places(tenant.runs).runsByTrace()];
      const isShown = ([, runs]: (typeof traces)[number]): boolean =>
        runs.some(({ fields }) => fields.name !== undefined);
      // Traces that no query returns are deleted first, for example log records of spans that never arrived.
      for (const [traceId, runs] of [...traces.filter((trace) => !isShown(trace)), ...traces.filter(isShown)]) {
        // Traces in the current request are deleted only to meet the limit, not to free additional space.
        if (isWithin(touched.has(traceId) ? 1 : 1 - SLACK)) return forgotten;
        for (const { id, sizeBytes } of runs) {
          tenant.runs.delete(id);
          bytesLeft -= sizeBytes;
        }
        runsLeft -= runs.length;
        if (name === tenantName) touched.add(traceId);
        forgotten.runs += runs.length;
        forgotten.traces += 1;
      }
    }
    return forgotten;
  }
}
