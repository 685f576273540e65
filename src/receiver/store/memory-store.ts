import { type Checks, checkedOptions, WHOLE_FROM_1, wholeFrom } from '../../config/checker.ts';
import { exactJson, parseExact } from '../../payload/fields.ts';
import type { Attachment } from '../../run/record.ts';
import { PRICE_CHECKS, PriceList, type PriceOptions } from '../domain/cost/prices.ts';
import type { Feedback } from '../domain/feedback.ts';
import { grouped } from '../domain/grouped.ts';
import {
  identitiesIn,
  identityOf,
  isProvisional,
  type KnownTrace,
  mayJoin,
  type SpanIds,
  spanKey,
  type TraceNames,
} from '../domain/identity.ts';
import { inTurns, takeTurn } from '../domain/in-turns.ts';
import { type Listed, pageOf, sortedItems } from '../domain/query/cursor.ts';
import type {
  DeletionTarget,
  ListPage,
  ListQuery,
  RunCounts,
  RunQuery,
  Scope,
  SortKey,
  Statistics,
  StatisticsQuery,
  Suggestion,
  SuggestionQuery,
  ThreadQuery,
  TimeRange,
} from '../domain/query/query.ts';
import { isFound, runWords } from '../domain/query/search-words.ts';
import { type Deletion, deletionOf, Tombstones } from '../domain/retention/deletion.ts';
import type { RunOperation } from '../domain/run-message.ts';
import { decidedProjects, isOfProject, projectOf, projectSummaries, sortValueOf } from '../domain/run-values.ts';
import type {
  PayloadField,
  ProjectSummary,
  RunDetails,
  RunSummary,
  ThreadSummary,
  TraceSummary,
  Usage,
} from '../domain/run-view.ts';
import { statisticsOf } from '../domain/statistics/statistics.ts';
import { SUGGESTED_RUNS_MAX, suggestedValues, suggestionsOf } from '../domain/statistics/suggestions.ts';
import { outlineOfSummary, toolsIn, wholeTexts } from '../domain/summary.ts';
import {
  AssembledRun,
  AssembledTrace,
  assembledThread,
  compareStarts,
  isInScope,
  type TracedRun,
} from '../domain/trace/assemble.ts';
import { listedTrace } from '../domain/trace/trace-summary.ts';
import { inOrder } from '../domain/trace/tree.ts';
import { isInProjects, matchesFilter } from '../filter/match.ts';
import { ALL_RUNS, inProject, type Parsed, type RunFilter, valuesIn, withinProject } from '../filter/run-filter.ts';
import { type MergedRun, refuseManyAttachments, type Store, type StoreChange, type TokenSecret } from './store.ts';
import { Subscribers, type TenantChange } from './subscribers.ts';

/** Limits for a memory store. Above a limit, the store deletes whole traces, oldest first. */
export interface MemoryStoreOptions extends PriceOptions {
  /** Maximum number of runs, including runs that are not visible yet. @default 100000 */
  runsMax?: number;
  /**
   * Maximum size in bytes: JSON text of fields, attachments, and an overhead for each value, run and attachment.
   * Objects with different keys can use 2.5 times as much heap. Minimum: 4096.
   * @default 268435456 (256 MiB)
   */
  bytesMax?: number;
}

const DEFAULTS = { runsMax: 100_000, bytesMax: 256 * 1024 * 1024 };
const CHECKS: Checks<MemoryStoreOptions> = { runsMax: WHOLE_FROM_1, bytesMax: wholeFrom(4_096), ...PRICE_CHECKS };

/** Part of a limit to free in addition, so that not every request to a full store searches for old traces. */
const SLACK = 0.05;
/** Maximum number of ids of deleted traces in a tenant. The same limit applies to runs without a `trace_id`. */
const REMOVED_MAX = 100_000;

/** The ids of changed traces in change messages, each with the id under which the trace is stored. */
type Touched = Map<string, string>;

type ProjectsByTrace = ReadonlyMap<string, readonly string[]>;

/** A trace, and its runs in the order of their arrival. */
interface MemoryTrace extends KnownTrace {
  id: string;
  isNamed: boolean;
  readonly names: Set<string>;
  readonly runs: Set<MemoryRun>;
}

class MemoryRun extends AssembledRun {
  trace: MemoryTrace;

  constructor(id: string, n: number, trace: MemoryTrace) {
    super(id, n);
    this.trace = trace;
    trace.runs.add(this);
  }
}

/** A trace that a deletion covers. With a project in the deletion, only these runs are deleted. */
interface CoveredTrace {
  readonly trace: AssembledTrace;
  readonly runs: readonly TracedRun[];
}

class Tenant implements TraceNames<MemoryTrace> {
  readonly runs = new Map<string, MemoryRun>();
  /** The runs whose trace is not known yet (see `isProvisional`), by the id of the parent. */
  readonly #waiting = new Map<string, Set<MemoryRun>>();
  /** The traces by their names, in the order in which their first run arrived. */
  readonly #traces = new Map<string, MemoryTrace>();
  /** Maps the id of a token or a run to the latest time at which the token, or the tokens of the run, were revoked. */
  readonly revokedMs = new Map<string, number>();
  readonly tombstones = new Tombstones();

  get traces(): ReadonlySet<MemoryTrace> {
    return new Set(this.#traces.values());
  }

  ofRun(id: string): MemoryTrace | undefined {
    return this.runs.get(id)?.trace;
  }

  named(name: string): MemoryTrace | undefined {
    return this.#traces.get(name);
  }

  /** Moves the runs of provisional traces to the traces of the parents that have arrived. Returns the ids of the former. */
  join(received: Iterable<MemoryRun>): string[] {
    const joined: string[] = [];
    for (const arrived of received) {
      const { parentId } = arrived.identity;
      if (parentId !== undefined && isProvisional(arrived, arrived.trace)) {
        this.#waiting.set(parentId, (this.#waiting.get(parentId) ?? new Set()).add(arrived));
      }
      for (const run of [arrived, ...(this.#waiting.get(arrived.id) ?? [])]) {
        const { trace: from, identity } = run;
        const parent = this.runs.get(identity.parentId ?? '');
        if (parent === undefined || parent.trace === from || !isProvisional(run, from)) continue;
        if (!mayJoin(run.fields, parent.projects)) continue;
        for (const moved of from.runs) {
          moved.trace = parent.trace;
          parent.trace.runs.add(moved);
        }
        for (const name of from.names) this.setName(parent.trace, name, false);
        this.#stopWaiting(run);
        joined.push(from.id);
      }
    }
    return joined;
  }

  #stopWaiting(run: MemoryRun): void {
    const { parentId = '' } = run.identity;
    const waiting = this.#waiting.get(parentId);
    if (waiting?.delete(run) && waiting.size === 0) this.#waiting.delete(parentId);
  }

  create(id: string, isNamed: boolean): MemoryTrace {
    const trace = { id, isNamed, names: new Set<string>(), runs: new Set<MemoryRun>() };
    this.setName(trace, id, isNamed);
    return trace;
  }

  setName(trace: MemoryTrace, name: string, isTraceId: boolean): void {
    trace.names.add(name);
    this.#traces.set(name, trace);
    if (isTraceId) Object.assign(trace, { id: name, isNamed: true });
  }

  delete({ names, runs }: MemoryTrace): void {
    for (const { id } of runs) this.deleteRun(id);
    for (const name of names) this.#traces.delete(name);
  }

  deleteRun(id: string): void {
    const run = this.runs.get(id);
    if (run === undefined) return;
    this.runs.delete(id);
    run.trace.runs.delete(run);
    this.#stopWaiting(run);
  }
}

/**
 * A store that keeps runs in memory, the reference implementation of `Store`. It derives traces from their runs for each
 * query. Each call to `apply` enforces the limits by deleting the traces whose first run arrived earliest. A later message
 * of a deleted run creates the run again.
 */
export class MemoryStore implements Store {
  readonly #limits: typeof DEFAULTS;
  readonly #prices: PriceList;
  readonly #tenants = new Map<string, Tenant>();
  readonly #tokenSecrets = new Map<string, TokenSecret>();
  /** Lists that an export has not read to their end, by its filter. */
  readonly #lists = new WeakMap<RunFilter, readonly [key: string, items: readonly Listed<unknown>[]]>();
  readonly #subscribers = new Subscribers();
  #lastN = 0;

  constructor(options: MemoryStoreOptions = {}) {
    const checked = checkedOptions('the options', options, CHECKS);
    this.#prices = new PriceList(checked);
    this.#limits = { ...DEFAULTS, ...checked };
  }

  async apply(scope: Scope, messages: readonly RunOperation[]): Promise<number | undefined> {
    const tenant = this.#tenant(scope);
    const { runs, tombstones } = tenant;
    refuseManyAttachments(messages, (id) => runs.get(id)?.attachments.keys());
    const identified = messages.map((operation) => ({ ...operation, identity: identityOf(operation.fields) }));
    const projectsBefore = this.#projects(scope);
    const known = identified.flatMap(({ identity: { otelTraceId = '' } }) => tenant.named(otelTraceId) ?? []);
    // A trace gets another id when a message names it by a `trace_id`.
    const touched: Touched = new Map(known.map(({ id }) => [id, id]));
    this.#addShownIds(scope, touched);
    const traces = tombstones.decideTraces(identitiesIn(identified), tenant);
    const operations = messages.filter(({ id }) => traces.has(id));
    const received = new Set<MemoryRun>();
    for (const operation of operations) {
      const { id } = operation;
      const run = runs.get(id) ?? new MemoryRun(id, ++this.#lastN, traces.get(id) as MemoryTrace);
      runs.set(id, run);
      run.take(operation);
      received.add(run);
    }
    const changed = [...tenant.join(received), ...[...received].map(({ trace }) => trace.id)];
    for (const id of changed) touched.set(id, id);
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
    for await (const record of inTurns(records)) yield exactJson(record);
  }

  async attachment(scope: Scope, runId: string, name: string): Promise<Attachment | undefined> {
    return structuredClone(this.#find(scope, runId)?.run.attachments.get(name));
  }

  async projects(scope: Scope, range: TimeRange): Promise<ProjectSummary[]> {
    const filter = withinProject(scope, { ...ALL_RUNS, range });
    const roots = this.#traces(scope).flatMap(({ root }) =>
      root !== undefined && matchesFilter(filter, root, undefined) ? [root] : [],
    );
    const byProject = [...grouped(roots, ({ summary }) => projectOf(summary))];
    return projectSummaries(
      byProject.map(([project, own]) => {
        return { project, traces: own.length, last_us: own.reduce((last, { startUs }) => Math.max(last, startUs), 0) };
      }),
    );
  }

  traces(scope: Scope, query: Parsed<ListQuery>): Promise<ListPage<TraceSummary>> {
    return this.#page('traces', scope, query, async (sort) => {
      const filter = withinProject(scope, query.filter);
      const found: Listed<TraceSummary>[] = [];
      for (const trace of this.#traces(scope)) {
        const { root, runs } = trace;
        const figures = trace.figures(filter.isLimited);
        if (root === undefined || figures === undefined) continue;
        const totals = figures.totals();
        if (!matchesFilter(filter, root, totals.usage)) continue;
        if (!(await this.#hasWords(runs, filter))) continue;
        const value = sortValueOf(sort, root, totals.usage);
        found.push({ item: listedTrace(root.summary, figures.fields, totals), value, n: root.run.n });
      }
      return found;
    });
  }

  async threads(scope: Scope, query: Parsed<ThreadQuery>): Promise<ListPage<ThreadSummary>> {
    const filter = withinProject(scope, query.filter);
    const inside = withinProject(scope, { ...ALL_RUNS, projects: query.filter.projects });
    const usageOf = ({ trace }: TracedRun): Usage | undefined => trace.figures(filter.isLimited)?.totals().usage;
    const roots = this.#traces(scope).flatMap(({ root }) =>
      root && matchesFilter(inside, root, undefined) ? [root] : [],
    );
    const latest = new Map<string, TracedRun>();
    for (const root of roots.toSorted(compareStarts)) {
      const { thread } = root.summary;
      if (thread === undefined || !matchesFilter(filter, root, usageOf(root))) continue;
      if (await this.#hasWords(root.trace.runs, filter)) latest.set(thread, root);
    }
    const listed = [...latest].map(([item, { startUs, run }]) => ({ item, value: startUs, n: run.n }));
    const page = pageOf(sortedItems(listed, undefined), query);
    const turns = grouped(roots, ({ summary }) => summary.thread);
    const items = page.items.map((thread) => assembledThread(thread, turns.get(thread) ?? [], filter.isLimited));
    return structuredClone({ ...page, items });
  }

  list(scope: Scope, query: Parsed<ListQuery>): Promise<ListPage<RunSummary>> {
    return this.#page('runs', scope, query, async (sort) => {
      const found = await this.#found(scope, query);
      return found.map((run) => ({
        item: run.summary,
        value: sortValueOf(sort, run, run.summary.usage),
        n: run.run.n,
      }));
    });
  }

  /** Returns a page of a list. An export passes the same filter for all pages, so its items are found and sorted once. */
  async #page<Item>(
    kind: string,
    { tenant, project }: Scope,
    query: Parsed<ListQuery>,
    find: (sort: SortKey) => Promise<readonly Listed<Item>[]>,
  ): Promise<ListPage<Item>> {
    const { filter, cursor, order, sort = 'start_time' } = query;
    const key = JSON.stringify([kind, tenant, project, order, sort]);
    const [knownKey, known] = this.#lists.get(filter) ?? [];
    const isKnown = cursor !== undefined && key === knownKey;
    const items = isKnown ? (known as readonly Listed<Item>[]) : sortedItems(await find(sort), order);
    if (filter !== ALL_RUNS) this.#lists.set(filter, [key, items]);
    return structuredClone(pageOf(items, query));
  }

  async outline(scope: Scope, traceId: string): Promise<string[]> {
    const runs = this.#traces(scope, [traceId]).flatMap((trace) => inOrder(trace.runs));
    const own = runs.filter(({ run }) => isInScope(scope, run));
    return own.map(({ run: { summary, run } }) =>
      JSON.stringify(outlineOfSummary(summary, toolsIn(summary, run.facts))),
    );
  }

  async details(scope: Scope, runId: string): Promise<RunDetails | undefined> {
    const found = this.#find(scope, runId, true);
    if (found === undefined) return undefined;
    const { run, summary, trace, costSource } = found;
    const { error, extra } = run.fields;
    const details = {
      ...summary,
      ...wholeTexts(run.fields),
      ...costSource,
      dotted_order: inOrder(trace.runs).find(({ run: { id } }) => id === runId)?.order ?? '',
      payload_sizes: run.payloadSizes(),
      ...(error && { error }),
      ...(extra && { extra }),
      ...run.attachmentInfos(),
      ...(run.feedback.size > 0 && { feedback: [...run.feedback.values()] }),
    };
    return parseExact(exactJson(details));
  }

  async projectsOf(scope: Scope, runIds: readonly string[]): Promise<string[]> {
    const { runs } = this.#tenant(scope);
    return decidedProjects(
      scope,
      runIds.flatMap((id) => runs.get(id)?.fields ?? []),
    );
  }

  async payload(scope: Scope, runId: string, field: PayloadField): Promise<string | undefined> {
    return this.#find(scope, runId)?.run.payload(field);
  }

  async mergedRuns(scope: Scope, runs: readonly (string | SpanIds)[]): Promise<MergedRun[]> {
    const keys = new Set<string | undefined>(runs.map((run) => (typeof run === 'string' ? run : spanKey(run))));
    const found = [...this.#tenant(scope).runs.values()].filter(
      ({ id, identity }) => keys.has(id) || keys.has(identity.span),
    );
    return parseExact(exactJson(found.map(({ id, fields }) => ({ id, fields }))));
  }

  async statistics(scope: Scope, query: Parsed<StatisticsQuery>): Promise<Statistics> {
    const found = await this.#found(scope, query);
    const runs = found.map((run) => ({ ...run, usage: run.trace.countedUsage(run) }));
    return statisticsOf(runs, query, scope.project !== undefined);
  }

  async suggestions(scope: Scope, { field, text = '', project }: SuggestionQuery): Promise<Suggestion[]> {
    const runs = await this.#found(scope, { filter: inProject(project) });
    const latest = runs.toSorted((a, b) => compareStarts(b, a)).slice(0, SUGGESTED_RUNS_MAX);
    const values = latest.map((run) => suggestedValues(field, run));
    return suggestionsOf(values, text);
  }

  subscribe(scope: Scope, listener: (change: StoreChange) => void): () => void {
    return this.#subscribers.add(scope, listener);
  }

  async addFeedback(scope: Scope, feedback: Feedback): Promise<boolean> {
    const { runs } = this.#tenant(scope);
    const run = runs.get(feedback.run_id);
    if (run === undefined) return false;
    run.addFeedback(feedback);
    this.#report(scope, new Map([[run.trace.id, run.trace.id]]));
    return true;
  }

  async feedback(scope: Scope, traceIds: readonly string[]): Promise<Feedback[]> {
    const traces = this.#tracesWith(scope, traceIds);
    const runs = traces.flatMap((trace) => [...trace.runs].filter((run) => run.feedback.size > 0));
    const given = runs.filter(({ id }) => this.#find(scope, id) !== undefined);
    const all = parseExact<Feedback[]>(exactJson(given.flatMap(({ feedback }) => [...feedback.values()])));
    return all.sort((a, b) => (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : 0));
  }

  async feedbackWithId(scope: Scope, id: string): Promise<Feedback | undefined> {
    const runs = [...this.#tenant(scope).runs.values()].filter((run) => run.feedback.has(id));
    const run = runs.find((one) => this.#find(scope, one.id) !== undefined);
    return run && parseExact(exactJson(run.feedback.get(id)));
  }

  async removeFeedback(scope: Scope, { id, run_id }: Pick<Feedback, 'id' | 'run_id'>): Promise<boolean> {
    const { runs } = this.#tenant(scope);
    const run = runs.get(run_id);
    if (!run?.removeFeedback(id)) return false;
    this.#report(scope, new Map([[run.trace.id, run.trace.id]]));
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

  async removable(scope: Scope, target: DeletionTarget): Promise<RunCounts> {
    return countsIn(this.#covered(deletionOf(scope, target)));
  }

  async remove(scope: Scope, target: DeletionTarget): Promise<RunCounts> {
    const deletion = deletionOf(scope, target);
    const projectsBefore = this.#projects(scope);
    const covered = this.#covered(deletion);
    const touched: Touched = new Map(
      covered.flatMap(({ trace: { id, shownId } }) => [id, shownId].map((one) => [one, id])),
    );
    for (const one of covered) this.#remove(scope, one);
    const { tombstones } = this.#tenant(scope);
    const { kind, id } = deletion.target;
    // Nothing of the trace has arrived yet.
    if (covered.length === 0 && kind === 'trace' && scope.project === undefined) tombstones.traces.set(id, false);
    tombstones.limit(REMOVED_MAX);
    this.#report(scope, touched, projectsBefore);
    return countsIn(covered);
  }

  /** Returns the trace that a client means by an id: one of its names, or the id with which answers show it. */
  #traceWith(scope: Scope, id: string): MemoryTrace | undefined {
    const tenant = this.#tenant(scope);
    const trace = tenant.named(id) ?? tenant.ofRun(id);
    return trace && (trace.names.has(id) || this.#shownId(trace) === id) ? trace : undefined;
  }

  #shownId({ runs, ...trace }: MemoryTrace): string {
    return trace.isNamed ? trace.id : new AssembledTrace(trace, [...runs], this.#prices).shownId;
  }

  /** Adds the ids with which answers show the traces, if anyone listens. */
  #addShownIds(scope: Scope, touched: Touched): void {
    if (!this.#subscribers.tenants.has(scope.tenant)) return;
    for (const id of [...touched.keys()]) {
      const trace = this.#tenant(scope).named(id);
      if (trace !== undefined) touched.set(this.#shownId(trace), id);
    }
  }

  #covered(deletion: Deletion): CoveredTrace[] {
    const { project, target } = deletion;
    const { kind, id } = target;
    return this.#traces(deletion, kind === 'trace' ? [id] : undefined).flatMap((trace) => {
      const { root, runs } = trace;
      const own = runs.filter((run) => isInScope(deletion, run));
      const isRootIn = (name: string): boolean => root !== undefined && isOfProject(root.summary, name);
      const isCovered = {
        trace: () => true,
        project: () => isRootIn(id) && (project === undefined || isRootIn(project)),
        thread: () => own.some(({ summary }) => summary.thread === id),
        user: () => own.some(({ summary }) => summary.user === id),
      };
      if (!isCovered[kind]() || (project !== undefined && own.length === 0)) return [];
      return [{ trace, runs: own }];
    });
  }

  #remove(scope: Scope, { trace: { id: traceId }, runs }: CoveredTrace): void {
    const tenant = this.#tenant(scope);
    const { tombstones } = tenant;
    const trace = tenant.named(traceId);
    if (trace === undefined) return;
    if (scope.project === undefined) {
      for (const name of trace.names) tombstones.traces.set(name, trace.isNamed || name !== trace.id);
      for (const { id } of trace.runs) tombstones.runs.add(id);
    } else {
      for (const { run } of runs) {
        tombstones.single.add(run.id);
        tenant.deleteRun(run.id);
      }
    }
    if (scope.project === undefined || trace.runs.size === 0) tenant.delete(trace);
  }

  #tenant({ tenant: name }: Scope): Tenant {
    const tenant = this.#tenants.get(name) ?? new Tenant();
    this.#tenants.set(name, tenant);
    return tenant;
  }

  #traces(scope: Scope, ids?: Iterable<string>): AssembledTrace[] {
    const traces = ids === undefined ? [...this.#tenant(scope).traces] : this.#tracesWith(scope, ids);
    return traces.map((trace) => new AssembledTrace(trace, [...trace.runs], this.#prices));
  }

  #tracesWith(scope: Scope, ids: Iterable<string>): MemoryTrace[] {
    return [...new Set([...ids].flatMap((id) => this.#traceWith(scope, id) ?? []))];
  }

  #find(scope: Scope, runId: string, isWhole = false): TracedRun | undefined {
    const run = this.#tenant(scope).runs.get(runId);
    if (run === undefined) return undefined;
    const trace = new AssembledTrace(run.trace, isWhole ? [...run.trace.runs] : [run], this.#prices);
    return trace.runs.find((traced) => traced.run === run && isInScope(scope, traced));
  }

  async #found(scope: Scope, query: Parsed<RunQuery>): Promise<TracedRun[]> {
    const filter = withinProject(scope, query.filter);
    const found: TracedRun[] = [];
    for (const run of this.#traces(scope, valuesIn(filter, 'trace')).flatMap(({ runs }) => runs)) {
      if (!matchesFilter(filter, run, run.summary.usage)) continue;
      if (await this.#hasWords([run], filter)) found.push(run);
    }
    return found;
  }

  /** Returns whether one of the runs is in the projects of the filter and contains the search words. */
  async #hasWords(runs: readonly TracedRun[], filter: RunFilter): Promise<boolean> {
    if (filter.search === undefined) return true;
    for (const traced of runs) {
      await takeTurn();
      if (isInProjects(filter, traced) && isFound(filter.search, runWords(traced.run.fields))) return true;
    }
    return false;
  }

  /** Enforces the limits, then reports the change to subscribers. */
  #report(scope: Scope, touched: Touched, projectsBefore: ProjectsByTrace = new Map()): void {
    const projects = this.#projects(scope);
    this.#addShownIds(scope, touched);
    const forgotten = this.#forget(scope.tenant, touched);
    if (touched.size === 0) return;
    const traces = [...touched].map(([id, stored]) => ({
      id,
      projects: [...(projectsBefore.get(stored) ?? []), ...(projects.get(stored) ?? [])],
    }));
    this.#subscribers.report({ tenant: scope.tenant, traces, ...forgotten });
  }

  /** Returns the projects of each trace, or nothing if no listener is limited to a project. */
  #projects(scope: Scope): ProjectsByTrace {
    if (!this.#subscribers.isLimited(scope.tenant)) return new Map();
    const traces = [...this.#tenant(scope).traces];
    return new Map(traces.map(({ id, runs }) => [id, [...runs].flatMap((run) => run.projects)]));
  }

  /** Deletes the oldest traces until the store is within its limits, those of the request's tenant first. */
  #forget(tenantName: string, touched: Touched): Pick<TenantChange, 'forgotten' | 'limit'> | undefined {
    let [runsLeft, bytesLeft] = [0, 0];
    for (const { runs } of this.#tenants.values()) {
      runsLeft += runs.size;
      for (const { sizeBytes } of runs.values()) bytesLeft += sizeBytes;
    }
    const isWithin = (part: number): boolean =>
      runsLeft <= Math.ceil(this.#limits.runsMax * part) && bytesLeft <= this.#limits.bytesMax * part;
    if (isWithin(1)) return undefined;
    const limit = { option: runsLeft > this.#limits.runsMax ? 'runsMax' : 'bytesMax', level: 'warn' } as const;
    const forgotten = { runs: 0, traces: 0 };
    const others = [...this.#tenants.keys()].filter((name) => name !== tenantName);
    for (const name of [tenantName, ...others]) {
      const tenant = this.#tenant({ tenant: name });
      const traces = [...tenant.traces];
      const isShown = ({ runs }: MemoryTrace): boolean => [...runs].some(({ fields }) => fields.name !== undefined);
      // Traces that no query returns are deleted first, for example log records of spans that never arrived.
      for (const trace of [...traces.filter((one) => !isShown(one)), ...traces.filter(isShown)]) {
        const { id, runs } = trace;
        // Traces in the current request are deleted only to meet the limit, not to free additional space.
        if (isWithin(touched.has(id) ? 1 : 1 - SLACK)) return { forgotten, limit };
        for (const { sizeBytes } of runs) bytesLeft -= sizeBytes;
        runsLeft -= runs.size;
        if (name === tenantName) touched.set(id, id);
        forgotten.runs += runs.size;
        forgotten.traces += 1;
        tenant.delete(trace);
      }
    }
    return { forgotten, limit };
  }
}

function countsIn(covered: readonly CoveredTrace[]): RunCounts {
  return { runs: covered.reduce((sum, { runs }) => sum + runs.length, 0), traces: covered.length };
}
