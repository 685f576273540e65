import { monotonicNowMs } from '../../base/clock.ts';
import { guard } from '../../base/guard.ts';
import { type EncodedPayload, isSamePayload, shownName } from '../../payload/serialize.ts';
import { policyOf, type SpanOwner } from '../../run/begin.ts';
import { endCall, endsBeside, markSame, type RecordedCall } from '../../run/calls/calls.ts';
import { PACKAGE_COPY, type RunContext, type RunOwner } from '../../run/context/context.ts';
import { observeRun, requestSource } from '../../run/context/current.ts';
import { enclosingSpanIds, otelTraceIdOf, ownerWith } from '../../run/context/inherited.ts';
import {
  EncodedRun,
  extraJson,
  mainJson,
  mainText,
  type Project,
  type RunSource,
  runtimeJson,
} from '../../run/encoded-run.ts';
import { withTags } from '../../run/fields.ts';
import { Run } from '../../run/run.ts';
import { measureRun } from '../../run/run-meters.ts';
import { captureFor, type Hiding, hiddenByEither } from '../../run/run-options.ts';
import { sample } from '../../run/sampling/sampling.ts';
import { type CapturePolicy, type EndedTexts, type LightRun, type RunSink, STREAM_IDLE_MS } from '../../run/sink.ts';
import { dottedOrder, isoTimestamp } from '../../run/time.ts';
import type { Attributes } from '../conventions/values.ts';
import { hiddenContent } from '../mapping/hidden-content.ts';
import type { MappedFields, StartFields } from '../mapping/mapped-fields.ts';
import { SpanLogs } from '../mapping/message-events.ts';
import type { RowIndex } from '../mapping/row-index.ts';
import { hrTimeUs, runIdOf, scopeOf, startUsOf } from '../mapping/span-identity.ts';
import { openOriginJson } from '../mapping/span-origin.ts';
import type { PlannedFields } from '../mapping/span-plan.ts';
import {
  OPERATION,
  projectInAttributes,
  SpanFields,
  type SpanSurroundings,
  spanToOpenRun,
  spanToRun,
} from '../mapping/span-to-run.ts';
import type { SpanContextLike, SpanLike } from '../span-like.ts';
import { resourceWait } from './flushing.ts';
import { callTypeOf, inputsIn, mayRefuseLater, refusedContent, SpanCall } from './span-call.ts';
import type { SpanEntry } from './span-registry.ts';
import { lightContext, mayBeLight, optionsOf, type SpanStart } from './span-start.ts';

type RecordedContext = RunContext & Pick<EncodedRun, 'id' | 'traceId' | 'dottedOrder' | 'project'>;

type TextsOfSpan = Omit<EndedTexts, 'id' | 'startedAtMs'>;

/**
 * The run of a span. A light run becomes a `Run` if it needs more than its start and its end. Attributes are mapped when
 * the span ends. If there are hooks, or the start is sent earlier, attributes are also mapped then.
 */
export class SpanRun implements SpanEntry, SpanOwner, RunSource, LightRun {
  readonly ids: SpanContextLike;
  isOpen = true;
  isLight: boolean;
  readonly startedAtMs: number;
  readonly parentRunId: string | undefined;
  readonly sink: RunSink;
  /** The scope of the span, which is the source of its record. */
  readonly source: string;
  readonly context: RunContext;
  /** The ids of the span, in the trace of its root run. The SDK starts another trace for a span below a function. */
  readonly spanIds: RunOwner['spanIds'];
  readonly #startUs: number;
  #capture: CapturePolicy;
  readonly #index: RowIndex;
  /** Undefined if the span has ended, or its run is not recorded, so that a long chain of spans does not stay in memory. */
  #start: SpanStart | undefined;
  /** Undefined if the run is light, or the span has ended. */
  #run: Run | undefined;
  /** A `WeakRef` once the start is sent, so that a span that never ends does not stay in memory. */
  #span: SpanLike | WeakRef<SpanLike> | undefined;
  #sentInputs: EncodedPayload | undefined;
  #record: EncodedRun | undefined;
  /** The recorded name. A hook may give the run another one. */
  #name = '';
  /** Undefined if there is no log record of the span. A light run has none. */
  #logs: SpanLogs | undefined;
  #hasUsageBelow = false;
  readonly #call: SpanCall = new SpanCall(this);

  constructor(span: SpanLike, start: SpanStart) {
    const { ids, parent, sink } = start;
    this.ids = ids;
    this.sink = sink;
    this.startedAtMs = monotonicNowMs();
    this.parentRunId = parent?.id;
    const traceId = otelTraceIdOf(parent) ?? ids.traceId;
    this.spanIds = traceId === ids.traceId ? ids : { traceId, spanId: ids.spanId };
    this.#startUs = startUsOf(span);
    this.#capture = captureFor(hiddenByEither(start.hiding, parent?.hiding) ?? {}, sink.capture);
    this.source = scopeOf(span)?.name ?? '';
    this.#index = start.mapping.index;
    this.#start = start;
    this.#span = span;
    const id = runIdOf(this.#startUs, ids);
    const project = projectInAttributes(span.attributes) ?? parent?.project ?? start.project ?? sink.capture.project;
    this.isLight = mayBeLight(start);
    // The sink looks at `isLight` while it takes the run.
    if (this.isLight) this.isLight = sink.light?.start(this) === true;
    if (this.isLight) {
      const place = { id, project, dottedOrder: dottedOrder(parent?.dottedOrder, this.#startUs, id) };
      this.context = lightContext(place, span, this, start);
    } else {
      const run = this.#newRun(id, project, span, start);
      this.context = run.context;
      if (!run.isOpen) {
        this.#release();
        return;
      }
    }
    if (mayRefuseLater(span)) this.#hideLater(parent);
    if (start.isEnded !== true) this.#call.start(callTypeOf(span, this.#index), span.name, ownerWith(sink, parent));
    this.#run?.started();
  }

  get packageCopy(): object {
    return PACKAGE_COPY;
  }

  /** Determined on each access, because some instrumentations set attributes only after the start. */
  get call(): RunOwner['call'] {
    const span = this.#openSpan;
    const type = span && callTypeOf(span, this.#index);
    return type === undefined ? undefined : { type, source: this.source };
  }

  get #openSpan(): SpanLike | undefined {
    return this.#span instanceof WeakRef ? this.#span.deref() : this.#span;
  }

  /**
   * Adds the attributes of an exception, or messages by attribute name, from a log record. Returns false if the span has
   * ended.
   */
  addLog(values: Attributes, isException: boolean): boolean {
    if (this.#start === undefined) return this.context.refused || !this.context.sampled;
    this.begin();
    this.#logs ??= new SpanLogs(this.#capture.payload, hiddenContent(this.#capture, this.#index)?.hides);
    this.#logs.add(values, isException);
    return true;
  }

  inputsIn(span: SpanLike | undefined = this.#openSpan): unknown {
    return span && inputsIn(span, this.#logs?.attributes, this.#index);
  }

  begin(): void {
    const span = this.#openSpan;
    if (!this.isLight || span === undefined || this.#start === undefined) return;
    const { id, project } = this.context;
    this.#newRun(id as string, project as Project, span, this.#start);
  }

  pass(record: EncodedRun, run: Run): boolean {
    this.setRecord(record, run);
    if (!this.isLight) return (record.held ?? this.sink).start(record, this.sink);
    this.isLight = false;
    this.sink.light?.begun(this, record);
    return true;
  }

  setRecord(record: EncodedRun, run: Run): void {
    this.#run = run;
    this.#capture = run.capture;
    this.#record = record;
    this.#name = record.name;
    record.source = this;
  }

  describe(): void {
    const span = this.#openSpan;
    const start = this.#start;
    const record = this.#record;
    if (span === undefined || start === undefined || record === undefined) return;
    const fields = spanToOpenRun(span, this.#capture, this.#index);
    this.#span = new WeakRef(span);
    this.#sentInputs = fields.inputs;
    const origin = this.#inTrace(openOriginJson(this.ids, start.parentIds), start);
    this.#fill(record, { ...fields, metadata: new Map([['otel', origin]]) });
  }

  /** Records the end of the span, unless its run has already ended. `span` is undefined if it is no longer in memory. */
  end(span: SpanLike | undefined, interruption?: string): void {
    const start = this.#start;
    if (start === undefined) return;
    const mayStayLight = this.isLight && span !== undefined && interruption === undefined;
    if (mayStayLight && guard(OPERATION, () => this.#endLight(span, start)) === true) return;
    this.begin();
    const run = this.#run;
    const call = span && run?.isOpen ? guard(OPERATION, () => this.#fillRun(run, span, start)) : undefined;
    // A hook may do what ends open spans.
    this.#start = undefined;
    if (run !== undefined) run.call = call;
    if (interruption !== undefined) run?.interrupt(interruption);
    else run?.finish(this.#endUsOf(span));
    this.#release();
    if (call?.isLate === false) ownerWith(this.sink, start.parent)?.callEnded?.(call);
  }

  /**
   * Ends the run as interrupted, because the end of the span cannot be observed. If the span object still exists, its
   * current attributes are recorded.
   */
  interrupt(reason: string): void {
    this.end(this.#openSpan, reason);
  }

  callStarted(call: RecordedCall): void {
    this.#call.startedInside(call);
  }

  /**
   * Some instrumentations never end the span of a call that fails or is aborted. The run is therefore interrupted after
   * `STREAM_IDLE_MS`, or when the process is about to end, unless another call starts inside.
   */
  callEnded(call: RecordedCall): void {
    if (!this.#call.endedInside(call) || this.#start === undefined) return;
    if (this.call?.type !== call.type || !this.#call.mayBeSame(call)) return;
    // Keeps the span, because its attributes are recorded if the run is interrupted.
    this.#span = this.#openSpan;
    const interrupt = (): void => this.interrupt('the span of a call that has ended did not end');
    this.#call.awaitEnd(this.#capture.streamIdleMs ?? STREAM_IDLE_MS, interrupt);
  }

  #hideLater(parent: RunContext | undefined): void {
    const get = (): Hiding | undefined =>
      hiddenByEither(parent?.hiding, this.#openSpan && refusedContent(this.#openSpan));
    Object.defineProperty(this.context, 'hiding', { enumerable: true, get });
  }

  #newRun(id: string, project: Project, span: SpanLike, start: SpanStart): Run {
    const { ids, parent, sink } = start;
    const options = optionsOf(id, project, span, this.#startUs, start);
    const sampling = sample(options, parent, sink, ids);
    return new Run({ options, parent, sink, sampling, capture: this.#capture, span: this });
  }

  /** Ends the run without a `Run`. Returns false if it needs one. */
  #endLight(span: SpanLike, start: SpanStart): boolean {
    if (resourceWait(span.resource) !== undefined) return false;
    const planned = this.#plannedFields(span, start);
    const fields = planned ?? this.#fieldsOf(span, start);
    if ((fields.inputs?.attachments ?? fields.outputs?.attachments) !== undefined) return false;
    const call = this.#call.at(span, fields, start.startSequence);
    const isBeside = planned && call && endsBeside(this.sink, call, planned.hasUsageMetadata);
    let texts: TextsOfSpan;
    if (planned !== undefined && isBeside !== true) {
      texts = this.#textsOf(planned, start);
      const { name, runType, measured: metadata } = planned;
      if (metadata !== undefined) measureRun({ name, runType, metadata }, this.#startUs, this.#endUsOf(span));
    } else {
      const record = this.#recordOf(fields instanceof SpanFields ? fields : this.#fieldsOf(span, start), start);
      if (isBeside === true) markSame(call, record);
      else if (call !== undefined) endCall(this.sink, call, record);
      measureRun(record, this.#startUs, this.#endUsOf(span));
      observeRun(record, this.sink);
      const { inputs, outputs, events } = record;
      texts = { main: mainJson(record, true), inputs, outputs, events };
    }
    this.isLight = false;
    this.#release();
    if (call?.isLate === false) ownerWith(this.sink, start.parent)?.callEnded?.(call);
    this.sink.light?.end({ id: this.context.id as string, startedAtMs: this.startedAtMs, ...texts });
    return true;
  }

  #endUsOf(span: SpanLike | undefined): number {
    return Math.max(this.#startUs, hrTimeUs(span?.endTime) ?? this.#startUs);
  }

  #recordOf(fields: SpanFields, { parent }: SpanStart): EncodedRun {
    const { id, project, tags, metadata } = this.context as RecordedContext;
    const given = { id, startUs: this.#startUs, parent, project, name: this.#name, runType: 'chain', tags, metadata };
    const record = new EncodedRun(given);
    this.#fill(record, fields);
    record.endTime = fields.endTime;
    return record;
  }

  #textsOf(fields: PlannedFields, start: SpanStart): TextsOfSpan {
    const { parentRunId } = this;
    const { id, traceId, dottedOrder, project } = this.context as RecordedContext;
    const startTime = isoTimestamp(this.#startUs);
    const { name, runType, inputs, outputs } = fields;
    const run = { id, traceId, parentRunId, dottedOrder, project, startTime, name, runType };
    const metadata = `${fields.metadata}"otel":${this.#inTrace(fields.origin, start)}`;
    const main = mainText(run, fields, extraJson(metadata, parentRunId === undefined ? runtimeJson() : undefined));
    return { main, inputs: inputs?.json, outputs: outputs?.json, events: undefined };
  }

  #fill(record: EncodedRun, fields: StartFields & Partial<SpanFields>): void {
    const { inputs, outputs, metadata = new Map() } = fields;
    const { payload } = this.#capture;
    if (record.name === this.#name && fields.name !== this.#name) {
      record.name = shownName(fields.name, payload);
      this.#name = record.name;
    }
    record.runType = fields.runType;
    record.tags = withTags(record.tags, fields.tags, payload);
    record.metadata = record.metadata === undefined ? metadata : new Map([...record.metadata, ...metadata]);
    record.error = fields.error;
    record.endReason = fields.endReason;
    record.events = fields.events;
    if (this.#run === undefined) {
      record.inputs = inputs?.json;
      record.outputs = outputs?.json;
      return;
    }
    this.#run.keepPayload('inputs', inputs);
    this.#run.keepPayload('outputs', outputs);
  }

  /** Gives the run the fields of the ended span, and returns the call that the span records. */
  #fillRun(run: Run, span: SpanLike, start: SpanStart): RecordedCall | undefined {
    const fields = this.#fieldsOf(span, start);
    const sent = this.#sentInputs;
    // If inputs were sent with the start, they are sent again only if they have changed.
    if (fields.inputs !== undefined && sent !== undefined && isSamePayload(fields.inputs, sent))
      fields.inputs = undefined;
    const record = this.#record as EncodedRun;
    this.#fill(record, fields);
    const { resource } = span;
    const addResource = (): void => {
      const hidden = hiddenContent(this.#capture, this.#index);
      const known = start.mapping.resources.of(resource, this.#capture.payload, hidden);
      const metadata = new Map([...known, ...(record.metadata ?? [])]);
      hidden?.addCount(metadata);
      record.metadata = metadata;
    };
    run.complete = resourceWait(resource)?.then(() => guard(OPERATION, addResource));
    return this.#call.at(span, fields, start.startSequence);
  }

  #fieldsOf(span: SpanLike, start: SpanStart): SpanFields {
    const capture = policyOf(this.#capture, this.#record?.held?.state === 'held');
    const fields = spanToRun(span, capture, this.#around(start));
    this.#noteUsage(fields, start);
    fields.metadata.set('otel', this.#inTrace(fields.metadata.get('otel') as string, start));
    return fields;
  }

  /** Returns the fields of a run with nothing of its own but its span. Undefined if they need the full mapping. */
  #plannedFields(span: SpanLike, start: SpanStart): PlannedFields | undefined {
    const { tags, metadata } = this.context;
    if (tags !== undefined || metadata !== undefined || requestSource() !== undefined) return undefined;
    const fields = start.plans.fieldsOf(span, this.#capture, this.#around(start));
    if (fields !== undefined) this.#noteUsage(fields, start);
    return fields;
  }

  #around({ parentIds, mapping }: SpanStart): SpanSurroundings {
    return {
      startUs: this.#startUs,
      parentIds,
      logs: this.#logs,
      mapping,
      sentInputs: this.#sentInputs?.json,
      hasUsageBelow: this.#hasUsageBelow,
    };
  }

  #noteUsage({ hasUsage }: MappedFields, { parent }: SpanStart): void {
    if (parent?.owner instanceof SpanRun && (this.#hasUsageBelow || hasUsage)) parent.owner.#hasUsageBelow = true;
  }

  /** Adds ids to `metadata.otel` if the parent run is in another trace of OpenTelemetry, for example that of a caller. */
  #inTrace(origin: string, { parent, parentIds }: SpanStart): string {
    const { spanIds } = this;
    if (spanIds === this.ids) return origin;
    const callerId = parent && parentIds === undefined ? enclosingSpanIds(parent)?.spanId : undefined;
    const enclosing = callerId === undefined ? '' : `,"enclosing_span_id":"${callerId}"`;
    return `${origin.slice(0, -1)},"root_trace_id":"${spanIds?.traceId}"${enclosing}}`;
  }

  #release(): void {
    this.#start = undefined;
    this.#run = undefined;
    this.#record = undefined;
    this.#span = undefined;
    this.#sentInputs = undefined;
    this.#call.leave();
    this.#logs = undefined;
  }
}
