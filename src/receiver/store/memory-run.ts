import type { Attachment } from '../../run/record.ts';
import { parseIsoTimestamp } from '../../run/time.ts';
import type { Feedback, FeedbackFigures, FeedbackToken } from '../feedback/feedback.ts';
import type { TimeRange } from '../query/query.ts';
import { type Prices, withCost } from './prices.ts';
import { type FilteredRun, isOfProject, projectOf } from './run-filter.ts';
import { countsUsage, merged, payloadFacts, summaryOf, sumOfUsage } from './run-summary.ts';
import { ordersOf, type SpanKeys, spanKeysOf, type TreeNode } from './run-tree.ts';
import type {
  AttachmentInfo,
  PayloadField,
  ProjectSummary,
  RunDetails,
  RunSummary,
  StoredRun,
  TraceSummary,
  Usage,
} from './run-view.ts';
import { PAYLOAD_FIELDS } from './run-view.ts';
import { ATTACHMENTS_MAX, type RunFields, type RunOperation, type Scope, StoreError } from './store.ts';

/** Heap that a run takes beside its fields, and an attachment beside its bytes and names. Measured. */
const RUN_BYTES = 1_500;
const ATTACHMENT_BYTES = 300;

/** The messages of one run. */
export class MemoryRun {
  readonly id: string;
  /** The position in the order of arrival. */
  readonly n: number;
  readonly attachments: Map<string, Attachment> = new Map();
  readonly feedback: Map<string, Feedback> = new Map();
  fields: RunFields = {};
  spans: SpanKeys = spanKeysOf({});
  sizeBytes: number = RUN_BYTES;
  // Kept apart, because a post that arrives late must not replace the fields of a patch.
  #posted: RunFields = {};
  #patched: RunFields = {};
  #facts: ReturnType<typeof payloadFacts> | undefined;
  /** The result of `listed`, until the run or its place changes. */
  #listed: { readonly traceId: string; readonly parentId: string | undefined; readonly run: FilteredRun } | undefined;

  constructor(id: string, n: number) {
    this.id = id;
    this.n = n;
  }

  take({ kind, fields, attachments }: RunOperation): void {
    if (kind === 'post') this.#posted = merged(this.#posted, fields);
    else this.#patched = merged(this.#patched, fields);
    for (const attachment of attachments) this.attachments.set(attachment.name, attachment);
    this.fields = merged(this.#posted, this.#patched);
    this.spans = spanKeysOf(this.fields);
    this.#facts = undefined;
    this.#listed = undefined;
    this.#measure();
  }

  addFeedback(feedback: Feedback): void {
    const created_at = this.feedback.get(feedback.id)?.created_at ?? feedback.created_at;
    this.feedback.set(feedback.id, structuredClone({ ...feedback, created_at }));
    this.#measure();
  }

  get isVisible(): boolean {
    const { name, run_type, start_time } = this.fields;
    return name !== undefined && run_type !== undefined && start_time !== undefined;
  }

  /** The run in lists. Undefined if it is not visible. */
  listed(traceId: string, parentId: string | undefined, prices: Prices): FilteredRun | undefined {
    if (this.#listed?.traceId === traceId && this.#listed.parentId === parentId) return this.#listed.run;
    this.#facts ??= payloadFacts(this.fields);
    const parent = parentId === undefined ? {} : { parent_run_id: parentId };
    const unpriced = summaryOf(this.id, traceId, { ...this.fields, ...parent }, this.#facts);
    if (unpriced === undefined) return undefined;
    const summary = withCost(unpriced, prices);
    const startUs = parseIsoTimestamp(summary.start_time) ?? 0;
    const endUs = summary.end_time === undefined ? undefined : parseIsoTimestamp(summary.end_time);
    const latencyUs = endUs === undefined ? undefined : Math.max(0, endUs - startUs);
    const run = { summary, startUs, latencyUs, metadata: this.fields.extra?.metadata };
    this.#listed = { traceId, parentId, run };
    return run;
  }

  record(traceId: string, parentId: string | undefined, order: string): StoredRun {
    const parent = parentId === undefined ? {} : { parent_run_id: parentId };
    const infos = this.#attachmentInfos();
    // Visible runs have the fields that records require.
    const fields = { inputs: {}, ...this.fields, ...parent } as Omit<StoredRun, 'id' | 'trace_id' | 'dotted_order'>;
    return { ...fields, id: this.id, trace_id: traceId, dotted_order: order, ...infos };
  }

  /** What `RunDetails` has beside the summary and the order. */
  details(): Omit<RunDetails, keyof FilteredRun['summary'] | 'dotted_order'> & Pick<RunDetails, 'error'> {
    const { error, extra } = this.fields;
    const sizes = PAYLOAD_FIELDS.flatMap((field) => {
      const json = this.payload(field);
      return json === undefined ? [] : [[field, Buffer.byteLength(json)]];
    });
    return structuredClone({
      payload_sizes: Object.fromEntries(sizes),
      ...(error === undefined || error === '' ? {} : { error }),
      ...(extra === undefined ? {} : { extra }),
      ...this.#attachmentInfos(),
      ...(this.feedback.size === 0 ? {} : { feedback: [...this.feedback.values()] }),
    });
  }

  payload(field: PayloadField): string | undefined {
    const value = this.fields[field];
    return value === undefined ? undefined : JSON.stringify(value);
  }

  #attachmentInfos(): { attachments?: AttachmentInfo[] } {
    const attachments = [...this.attachments.values()].map(({ name, mimeType, bytes }) => ({
      name,
      mime_type: mimeType,
      size: bytes.length,
    }));
    return attachments.length === 0 ? {} : { attachments };
  }

  #measure(): void {
    this.sizeBytes = RUN_BYTES + jsonSizeBytes(this.#posted) + jsonSizeBytes(this.#patched);
    for (const { name, mimeType, bytes } of this.attachments.values()) {
      this.sizeBytes += ATTACHMENT_BYTES + Buffer.byteLength(name) + Buffer.byteLength(mimeType) + bytes.length;
    }
    for (const feedback of this.feedback.values()) this.sizeBytes += jsonSizeBytes(feedback);
  }
}

/** The runs of a tenant. */
export interface TenantRuns {
  readonly runs: ReadonlyMap<string, MemoryRun>;
  readonly bySpan: ReadonlyMap<string, MemoryRun>;
}

/** The data of a tenant. */
export class Tenant implements TenantRuns {
  readonly runs: Map<string, MemoryRun> = new Map();
  readonly bySpan: Map<string, MemoryRun> = new Map();
  /** Runs whose trace changes when their parent arrives. */
  readonly orphans: Set<MemoryRun> = new Set();
  readonly tokens: Map<string, FeedbackToken> = new Map();
  /** The traces as of a sequence number. */
  derived: { readonly seq: number; readonly traces: readonly MemoryTrace[] } | undefined;
  /** The sequence number of the latest change of each trace. */
  readonly changed: Map<string, number> = new Map();
}

/** Returns the id of the parent of a run, which may not have arrived. */
export function parentIdOf({ id, fields, spans }: MemoryRun, { bySpan }: TenantRuns): string | undefined {
  if (fields.parent_run_id !== undefined) return fields.parent_run_id;
  const { parentSpan } = spans;
  const parentId = parentSpan === undefined ? undefined : bySpan.get(parentSpan)?.id;
  return parentId === id ? undefined : parentId;
}

/** Whether the trace of a run changes when its parent arrives. */
export function isOrphan(run: MemoryRun, tenant: TenantRuns): boolean {
  const { trace_id, parent_run_id } = run.fields;
  const hasParent = parent_run_id !== undefined || run.spans.parentSpan !== undefined;
  return trace_id === undefined && hasParent && !tenant.runs.has(parentIdOf(run, tenant) ?? '');
}

/** Returns the trace that a run names, or the trace of its parent, or a trace of its own. */
export function traceIdOf(run: MemoryRun, tenant: TenantRuns): string {
  const path = new Set<MemoryRun>();
  for (let above = run; ; ) {
    if (above.fields.trace_id !== undefined) return above.fields.trace_id;
    path.add(above);
    const parent = tenant.runs.get(parentIdOf(above, tenant) ?? '');
    if (parent === undefined || path.has(parent)) return above.id;
    above = parent;
  }
}

/** A visible run in its trace. */
export interface TracedRun extends TreeNode {
  readonly run: MemoryRun;
  readonly traceId: string;
  readonly listed: FilteredRun;
}

/** The runs of one trace. */
export class MemoryTrace {
  readonly id: string;
  readonly visible: readonly TracedRun[];
  readonly #idsAboveUsage: ReadonlySet<string>;
  #orders: ReadonlyMap<string, string> | undefined;
  #totals: TraceSummary['trace'] | undefined;

  constructor(id: string, runs: readonly MemoryRun[], tenant: TenantRuns, prices: Prices) {
    this.id = id;
    this.visible = runs.flatMap((run): TracedRun[] => {
      const parentId = parentIdOf(run, tenant);
      const listed = run.listed(id, parentId, prices);
      if (listed === undefined) return [];
      return [
        { run, id: run.id, traceId: id, parentId, startUs: listed.startUs, order: run.fields.dotted_order, listed },
      ];
    });
    this.#idsAboveUsage = idsAboveUsage(this.visible);
  }

  orderOf(id: string): string {
    this.#orders ??= ordersOf(this.visible);
    return this.#orders.get(id) ?? '';
  }

  /** Parents before children. */
  inOrder(): TracedRun[] {
    return [...this.visible].sort((a, b) => (this.orderOf(a.id) < this.orderOf(b.id) ? -1 : 1));
  }

  /** The run with the id of the trace, or else the first run. */
  get root(): TracedRun | undefined {
    const first = (a: TracedRun, b: TracedRun): TracedRun => (b.startUs < a.startUs ? b : a);
    return (
      this.visible.find(({ id }) => id === this.id) ??
      this.visible.reduce<TracedRun | undefined>(
        (found, run) => (found === undefined ? run : first(found, run)),
        undefined,
      )
    );
  }

  /** Returns the usage of a run if it counts in sums. */
  countedUsage({ id, listed: { summary } }: TracedRun): Usage | undefined {
    return countsUsage(summary.run_type, this.#idsAboveUsage.has(id)) ? summary.usage : undefined;
  }

  /** Returns the totals of all runs. They do not change, because a change makes a new trace. */
  totals(): TraceSummary['trace'] {
    this.#totals ??= this.#computeTotals();
    return this.#totals;
  }

  #computeTotals(): TraceSummary['trace'] {
    const totals: TraceSummary['trace'] = { runs: 0, pending: 0, errors: 0 };
    const scores = new Map<string, { count: number; scores: number[] }>();
    for (const traced of this.visible) {
      const { status, end_time } = traced.listed.summary;
      totals.runs += 1;
      if (status === 'pending') totals.pending += 1;
      if (status === 'error') totals.errors += 1;
      if (end_time !== undefined && end_time > (totals.end_time ?? '')) totals.end_time = end_time;
      const usage = sumOfUsage(totals.usage, this.countedUsage(traced));
      if (usage !== undefined) totals.usage = usage;
      for (const { key, score } of traced.run.feedback.values()) {
        const figures = scores.get(key) ?? { count: 0, scores: [] };
        scores.set(key, figures);
        figures.count += 1;
        if (score !== undefined) figures.scores.push(Number(score));
      }
    }
    if (scores.size > 0) totals.feedback = [...scores].map(figuresOf).sort((a, b) => (a.key < b.key ? -1 : 1));
    return totals;
  }
}

/** Returns the ids of the runs that have usage below them. */
function idsAboveUsage(runs: readonly TracedRun[]): Set<string> {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const above = new Set<string>();
  for (const run of runs) {
    if (run.listed.summary.usage === undefined) continue;
    for (let id = run.parentId; id !== undefined && !above.has(id); id = byId.get(id)?.parentId) above.add(id);
  }
  return above;
}

function figuresOf([key, { count, scores }]: readonly [string, { count: number; scores: number[] }]): FeedbackFigures {
  if (scores.length === 0) return { key, count };
  return { key, count, average_score: scores.reduce((sum, score) => sum + score, 0) / scores.length };
}

/** Groups the runs by trace. The trace whose first run arrived first comes first. */
export function runsByTrace(tenant: TenantRuns): Map<string, MemoryRun[]> {
  const traces = new Map<string, MemoryRun[]>();
  for (const run of tenant.runs.values()) {
    const id = traceIdOf(run, tenant);
    const runs = traces.get(id);
    if (runs === undefined) traces.set(id, [run]);
    else runs.push(run);
  }
  return traces;
}

export function firstOrder({ trace, runs: [first] }: { trace: MemoryTrace; runs: readonly TracedRun[] }): string {
  return first === undefined ? '' : trace.orderOf(first.id);
}

export function isInScope({ project }: Scope, summary: RunSummary): boolean {
  return project === undefined || isOfProject(summary, project);
}

export function refuseManyAttachments(tenant: TenantRuns, operations: readonly RunOperation[]): void {
  const names = new Map<string, Set<string>>();
  for (const { id, attachments } of operations) {
    if (attachments.length === 0) continue;
    const all = names.get(id) ?? new Set(tenant.runs.get(id)?.attachments.keys());
    names.set(id, all);
    for (const { name } of attachments) all.add(name);
    if (all.size > ATTACHMENTS_MAX) {
      throw new StoreError('too_large', `Run ${id} has more than ${ATTACHMENTS_MAX} attachments`);
    }
  }
}

/** Groups the traces that start in a range by project. */
export function projectsOf(
  traces: readonly MemoryTrace[],
  scope: Scope,
  { fromUs, beforeUs }: TimeRange,
): ProjectSummary[] {
  const projects = new Map<string, ProjectSummary>();
  for (const { root } of traces) {
    if (root === undefined || root.startUs < fromUs || root.startUs >= beforeUs) continue;
    const { summary } = root.listed;
    if (!isInScope(scope, summary)) continue;
    const name = projectOf(summary);
    const project = projects.get(name) ?? { name, traces: 0, last_start_time: summary.start_time };
    projects.set(name, project);
    project.traces += 1;
    if (project.last_start_time < summary.start_time) project.last_start_time = summary.start_time;
  }
  return [...projects.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Heap of a value besides its text, and of an object or array besides its elements. */
const VALUE_BYTES = 16;
const CONTAINER_BYTES = 56;

/** Returns the approximate heap size of a value: the bytes of its JSON text without escapes, and the overhead of V8. */
export function jsonSizeBytes(value: unknown): number {
  let sizeBytes = 0;
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const item = pending.pop();
    sizeBytes += VALUE_BYTES;
    if (typeof item === 'string') {
      sizeBytes += Buffer.byteLength(item) + 2;
    } else if (typeof item !== 'object' || item === null) {
      sizeBytes += String(item).length;
    } else if (Array.isArray(item)) {
      sizeBytes += CONTAINER_BYTES + 2 + Math.max(0, item.length - 1);
      for (const element of item) pending.push(element);
    } else {
      const keys = Object.keys(item);
      sizeBytes += CONTAINER_BYTES + 2 + Math.max(0, keys.length - 1);
      for (const key of keys) {
        sizeBytes += Buffer.byteLength(key) + 3;
        pending.push((item as Record<string, unknown>)[key]);
      }
    }
  }
  return sizeBytes;
}
