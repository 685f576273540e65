import { exactJson, parseExact } from '../../../payload/fields.ts';
import { MODEL_TYPES } from '../../../run/calls/same-call.ts';
import type { Attachment } from '../../../run/record.ts';
import { parseIsoTimestamp } from '../../../run/time.ts';
import { addCost, type PriceList } from '../cost/prices.ts';
import { type Feedback, figuresOf } from '../feedback.ts';
import { ageOf, type FieldAges, type Identity, identityOf, type KnownTrace, withRecord } from '../identity.ts';
import type { Scope } from '../query/query.ts';
import type { RunFields, RunOperation } from '../run-message.ts';
import { type FilteredRun, isOfProject, projectNames, projectOf, timesOf } from '../run-values.ts';
import {
  type AttachmentInfo,
  type CostSource,
  PAYLOAD_FIELDS,
  type PayloadField,
  type RunSummary,
  type ThreadSummary,
  type TraceOutcome,
  type TraceSummary,
  type Usage,
} from '../run-view.ts';
import { countsUsage, type PayloadFacts, payloadFacts, summaryOf, sumOfUsage } from '../summary.ts';
import { type ComparedRun, callEvidenceOf, type RepeatedCall, repeatedCallsIn } from './repeated-calls.ts';
import {
  DECIDES,
  DECIDING_FIELDS,
  type DecidedTrace,
  type DecidingRuns,
  decidedTrace,
  decidingRun,
  flagsOf,
  has,
  idsIn,
  outcomeOf,
  RunFlag,
  type SummarizedRun,
  type TraceFields,
  type Turn,
  threadSummaryOf,
  traceFieldsIn,
} from './trace-summary.ts';
import type { TreeNode } from './tree.ts';

/** A run in memory: the merged fields of its messages, and data derived from them. */
export class AssembledRun {
  readonly id: string;
  /** Sequence number of the run, in arrival order. */
  readonly n: number;
  readonly attachments: Map<string, Attachment> = new Map();
  readonly feedback: Map<string, Feedback> = new Map();
  fields: RunFields = {};
  facts: PayloadFacts = {};
  identity: Identity = {};
  sizeBytes = 0;
  #ages: FieldAges = {};
  /** Cache. Each message for the run clears it. */
  #summary: RunSummary | undefined;

  constructor(id: string, n: number) {
    this.id = id;
    this.n = n;
  }

  take({ kind, fields, attachments }: RunOperation): void {
    // Nothing is assigned before everything is computed, so that an error leaves the run as it was.
    const ages = { ...this.#ages };
    const { fields: all } = withRecord(ages, this.fields, ageOf(kind, fields), fields);
    const [facts, identity] = [payloadFacts(all), identityOf(all)];
    [this.#ages, this.fields, this.facts, this.identity] = [ages, all, facts, identity];
    this.#summary = undefined;
    for (const attachment of attachments) this.attachments.set(attachment.name, attachment);
    this.#measure();
  }

  addFeedback(feedback: Feedback): void {
    const created_at = this.feedback.get(feedback.id)?.created_at ?? feedback.created_at;
    this.feedback.set(feedback.id, parseExact(exactJson({ ...feedback, created_at })));
    this.#measure();
  }

  removeFeedback(id: string): boolean {
    const isRemoved = this.feedback.delete(id);
    this.#measure();
    return isRemoved;
  }

  /** Returns the summary without the trace and costs, or undefined if the run is not visible. */
  summary(): RunSummary | undefined {
    this.#summary ??= summaryOf(this.id, '', this.fields, this.facts);
    return this.#summary && { ...this.#summary };
  }

  /** The name and the id of the project. Empty until the run is visible. */
  get projects(): string[] {
    const { name, run_type, start_time } = this.fields;
    return name === undefined || run_type === undefined || start_time === undefined ? [] : projectNames(this.fields);
  }

  /** Whether a message names a parent, which may not have arrived. */
  get namesParent(): boolean {
    return (this.identity.parentId ?? this.identity.parentSpan) !== undefined;
  }

  payload(field: PayloadField): string | undefined {
    const value = this.fields[field];
    return value === undefined ? undefined : exactJson(value);
  }

  payloadSizes(): Partial<Record<PayloadField, number>> {
    const texts = PAYLOAD_FIELDS.map((field) => [field, this.payload(field)] as const);
    return Object.fromEntries(texts.flatMap(([field, text]) => (text ? [[field, Buffer.byteLength(text)]] : [])));
  }

  attachmentInfos(): { attachments?: AttachmentInfo[] } {
    const infos = [...this.attachments.values()].map(({ name, mimeType, bytes }) => ({
      name,
      mime_type: mimeType,
      size: bytes.length,
    }));
    return infos.length === 0 ? {} : { attachments: infos };
  }

  #measure(): void {
    this.sizeBytes = RUN_BYTES + jsonSizeBytes(this.fields);
    for (const { name, mimeType, bytes } of this.attachments.values()) {
      this.sizeBytes += ATTACHMENT_BYTES + Buffer.byteLength(name) + Buffer.byteLength(mimeType) + bytes.length;
    }
    for (const feedback of this.feedback.values()) this.sizeBytes += jsonSizeBytes(feedback);
  }
}

/** Returns the id of each run's parent in a trace, which may not have arrived yet. Spans find only parents in the trace. */
function parentIdsOf(runs: readonly AssembledRun[]): Map<string, string | undefined> {
  const bySpan = new Map(runs.map(({ id, identity }) => [identity.span, id]));
  return new Map(
    runs.map(({ id, identity: { parentId, parentSpan } }) => [
      id,
      parentId ?? (parentSpan === undefined ? undefined : bySpan.get(parentSpan)),
    ]),
  );
}

export interface TracedRun extends TreeNode, FilteredRun, ComparedRun, SummarizedRun {
  isRepeat: boolean;
  readonly run: AssembledRun;
  readonly trace: AssembledTrace;
  readonly costSource: CostSource;
}

export class AssembledTrace {
  /** The id under which the trace is stored. */
  readonly id: string;
  /**
   * The `trace_id` of the trace in answers: the `trace_id` of its messages, or else the id of its root. Before the root
   * arrives, the stored id, which is then that of OpenTelemetry.
   */
  readonly shownId: string;
  readonly ids: readonly string[];
  /** All runs, including those that are not visible yet. */
  readonly members: readonly AssembledRun[];
  readonly runs: readonly TracedRun[];
  readonly #parentIds: ReadonlyMap<string, string | undefined>;
  readonly root: TracedRun | undefined;
  readonly all: TraceFigures | undefined;
  /** Those of the runs in the project of the root, for keys that are limited to it. */
  readonly own: TraceFigures | undefined;
  readonly #idsAboveUsage = new Set<string>();
  readonly #repeatedCalls: ReadonlyMap<string, RepeatedCall>;

  constructor(known: KnownTrace & { names?: Iterable<string> }, runs: readonly AssembledRun[], prices: PriceList) {
    const { id, isNamed, names = [] } = known;
    this.id = id;
    this.members = runs;
    this.#parentIds = parentIdsOf(runs);
    this.runs = runs.flatMap((run) => this.#traced(run, prices) ?? []);
    this.root = this.#findRoot();
    this.shownId = isNamed || this.root?.isTop !== true ? id : this.root.id;
    this.ids = [...names, this.shownId];
    for (const { summary, parentId } of this.runs) {
      summary.trace_id = this.shownId;
      if (summary.usage === undefined) continue;
      for (let at = parentId; at !== undefined && !this.#idsAboveUsage.has(at); at = this.#parentIds.get(at)) {
        this.#idsAboveUsage.add(at);
      }
    }
    this.#repeatedCalls = repeatedCallsIn(this.runs, (run) => this.#countsAlone(run));
    for (const run of this.runs) {
      const headId = this.#repeatedCalls.get(run.id)?.headId;
      if (headId !== undefined) {
        run.summary.same_call_as = headId;
        run.isRepeat = true;
      }
      if (run.summary.usage !== undefined && this.countedUsage(run) === undefined) run.summary.usage_counts = false;
    }
    const { all, own } = this.#decide();
    this.all = all;
    this.own = own;
  }

  /**
   * Returns the run whose id is the trace id. If there is none, the first run that names no parent, the first run that no
   * framework has added for itself, or the first run.
   */
  #findRoot(): TracedRun | undefined {
    const runs = this.runs.some(isLimited) ? this.#inItsProject() : this.runs;
    return (
      runs.find(({ id }) => id === this.id) ??
      earliest(runs.filter(({ run }) => !run.namesParent)) ??
      earliest(runs.filter((run) => !has(run, RunFlag.INTERNAL))) ??
      earliest(runs)
    );
  }

  /**
   * Returns the runs without those that were sent with limited keys and are not in the project of the trace. Otherwise, such
   * a key could take over a trace of another project. The project is that of the run that arrived first, of those whose parent
   * is not in the trace. Runs of other keys count as the first.
   */
  #inItsProject(): readonly TracedRun[] {
    const ids = new Set(this.members.map(({ id }) => id));
    const hasParent = ({ parentId }: TracedRun): boolean => parentId !== undefined && ids.has(parentId);
    const [first] = this.runs.toSorted(
      (a, b) => +hasParent(a) - +hasParent(b) || +isLimited(a) - +isLimited(b) || a.run.n - b.run.n,
    );
    return this.runs.filter((run) => !isLimited(run) || run.project === first?.project);
  }

  /** Decides what the trace says as a whole, and gives its thread and user to the summary of the root. */
  #decide(): Pick<AssembledTrace, 'all' | 'own'> {
    const { root, runs } = this;
    if (root === undefined) return { all: undefined, own: undefined };
    const ownRuns = runs.filter(({ project }) => project === root.project);
    const ownDeciding = decidingIn(ownRuns);
    const figuresFrom = (some: readonly TracedRun[], deciding: DecidingRuns<TracedRun>): TraceFigures => {
      const outcome = outcomeOf(root, !root.isTop && root.id !== this.id, deciding);
      return new TraceFigures(this, some, decidedTrace(root, outcome, ownDeciding));
    };
    const own = figuresFrom(ownRuns, ownDeciding);
    for (const field of ['thread', 'user'] as const) {
      const value = own.decided[field]?.summary[field];
      if (value !== undefined) root.summary[field] = value;
    }
    return { own, all: ownRuns.length === runs.length ? own : figuresFrom(runs, decidingIn(runs)) };
  }

  /** Returns what the trace says as a whole, or undefined if no run is visible. */
  figures(isLimited: boolean): TraceFigures | undefined {
    return isLimited ? this.own : this.all;
  }

  get projects(): string[] {
    return [...new Set(this.members.flatMap(({ projects }) => projects))];
  }

  countedUsage(run: TracedRun): Usage | undefined {
    const isRepeated = this.#repeatedCalls.get(run.id)?.isUsageRepeated === true;
    return this.#countsAlone(run) && !isRepeated ? run.summary.usage : undefined;
  }

  #countsAlone({ id, summary: { usage, run_type } }: TracedRun): boolean {
    return usage !== undefined && countsUsage(run_type, this.#idsAboveUsage.has(id));
  }

  #traced(run: AssembledRun, prices: PriceList): TracedRun | undefined {
    const { id, fields, facts } = run;
    const parentId = this.#parentIds.get(id);
    const summary = run.summary();
    if (summary === undefined) return undefined;
    if (parentId !== undefined) summary.parent_run_id = parentId;
    const costSource = addCost(summary, prices);
    const { dotted_order: order, error, extra } = fields;
    const compared = { summary, costSource, metadata: extra?.metadata, error, ...timesOf(summary) };
    const flags = flagsOf(fields, facts, summary);
    const call = {
      type: summary.run_type,
      name: summary.name,
      model: summary.model,
      status: summary.status,
      isRepeat: false,
      project: projectOf(summary),
      isTop: !run.namesParent || has({ flags }, RunFlag.ENTERS),
      flags,
      endUs: parseIsoTimestamp(summary.end_time ?? ''),
      ...callEvidenceOf(fields, facts),
    };
    return { run, trace: this, id, parentId, order, feedback: [...run.feedback.values()], ...call, ...compared };
  }
}

/** What a trace says as a whole, about all its runs or about those in one project. */
export class TraceFigures {
  readonly #trace: AssembledTrace;
  readonly #runs: readonly TracedRun[];
  readonly decided: DecidedTrace<TracedRun>;

  constructor(trace: AssembledTrace, runs: readonly TracedRun[], decided: DecidedTrace<TracedRun>) {
    this.#trace = trace;
    this.#runs = runs;
    this.decided = decided;
  }

  get outcome(): TraceOutcome {
    return this.decided.outcome;
  }

  /** The fields of the trace that differ from those of its root. */
  get fields(): TraceFields {
    return traceFieldsIn(this.decided, ({ summary }) => summary);
  }

  get feedback(): Feedback[] {
    return this.#runs.flatMap(({ run }) => [...run.feedback.values()]);
  }

  totals(): TraceSummary['trace'] {
    const totals: TraceSummary['trace'] = {
      runs: this.#runs.length,
      pending: 0,
      errors: 0,
      model_calls: 0,
      ...idsIn(this.decided),
    };
    for (const traced of this.#runs) {
      const { status, end_time, run_type } = traced.summary;
      if (status === 'pending') totals.pending += 1;
      if (DECIDES.failed.counts(traced)) totals.errors += 1;
      if (MODEL_TYPES.includes(run_type) && !traced.isRepeat) totals.model_calls += 1;
      if (end_time !== undefined && end_time > (totals.end_time ?? '')) totals.end_time = end_time;
      const usage = sumOfUsage(totals.usage, this.#trace.countedUsage(traced));
      if (usage !== undefined) totals.usage = usage;
    }
    const feedback = figuresOf(this.feedback);
    if (feedback.length > 0) totals.feedback = feedback;
    return totals;
  }
}

function isLimited(run: TracedRun): boolean {
  return has(run, RunFlag.LIMITED);
}

function decidingIn(runs: readonly TracedRun[]): DecidingRuns<TracedRun> {
  return Object.fromEntries(DECIDING_FIELDS.map((field) => [field, decidingRun(field, runs)]));
}

export function isInScope({ project }: Scope, { summary }: Pick<TracedRun, 'summary'>): boolean {
  return project === undefined || isOfProject(summary, project);
}

/** Returns the run that started first. Of several, the one that arrived first. */
function earliest(runs: readonly TracedRun[]): TracedRun | undefined {
  const [head] = runs;
  return head && runs.reduce((first, run) => (compareStarts(run, first) < 0 ? run : first), head);
}

export function compareStarts(a: TracedRun, b: TracedRun): number {
  return a.startUs - b.startUs || a.run.n - b.run.n;
}

/** Adds up the turns of a thread. Each turn is a root run. */
export function assembledThread(thread: string, roots: readonly TracedRun[], isLimited: boolean): ThreadSummary {
  const sorted = roots.toSorted(compareStarts);
  const turns = sorted.map(({ startUs, latencyUs, summary, trace }): Turn => {
    const figures = trace.figures(isLimited);
    return {
      startUs,
      latencyUs,
      outcome: figures?.outcome,
      project: projectOf(summary),
      user: summary.user,
      usage: figures?.totals().usage,
    };
  });
  return threadSummaryOf(thread, turns as [Turn, ...Turn[]], {
    inputs_preview: sorted[0]?.trace.figures(isLimited)?.fields.inputs_preview,
    outputs_preview: sorted.at(-1)?.trace.figures(isLimited)?.fields.outputs_preview,
    feedback: figuresOf(roots.flatMap(({ trace }) => trace.figures(isLimited)?.feedback ?? [])),
  });
}

/** Estimated memory overhead of a run, an attachment, a JSON value, and a JSON array or object, in bytes. */
const RUN_BYTES = 1_500;
const ATTACHMENT_BYTES = 300;
const VALUE_BYTES = 16;
const CONTAINER_BYTES = 56;

function jsonSizeBytes(value: unknown): number {
  if (typeof value === 'string') return VALUE_BYTES + Buffer.byteLength(value);
  if (typeof value !== 'object' || value === null) return 2 * VALUE_BYTES;
  let sizeBytes = VALUE_BYTES + CONTAINER_BYTES;
  for (const item of Object.values(value)) sizeBytes += jsonSizeBytes(item);
  if (!Array.isArray(value)) for (const key of Object.keys(value)) sizeBytes += Buffer.byteLength(key);
  return sizeBytes;
}
