import { clock } from '../../base/clock.ts';
import { guard } from '../../base/guard.ts';
import { safeText } from '../../base/text.ts';
import type { Fields } from '../../payload/fields.ts';
import { type EncodedPayload, shownName } from '../../payload/serialize.ts';
import type { PayloadRules } from '../../payload/truncate.ts';
import { clearTimer, DELAY_MAX_MS, setTimer } from '../../platform/timers.ts';
import { callsOf, endCall, RecordedCall } from '../../run/calls.ts';
import {
  belowRequest,
  contextOf,
  enclosingSpanIds,
  inheritedFrom,
  observeRun,
  otelTraceIdOf,
  PACKAGE_COPY,
  type RunContext,
  type RunOwner,
  startsTrace,
} from '../../run/context.ts';
import { EncodedRun, type Project, type RunSource } from '../../run/encoded-run.ts';
import { withMetadata, withTags } from '../../run/fields.ts';
import { Run } from '../../run/run.ts';
import { captureFor, type Hiding, hiddenByEither } from '../../run/run-options.ts';
import { isCallType } from '../../run/same-call.ts';
import { sample } from '../../run/sampling.ts';
import type { CapturePolicy, EncodedFields, RunSink } from '../../run/sink.ts';
import { isoTimestamp } from '../../run/time.ts';
import type { Attributes } from '../conventions/values.ts';
import { LogMessages } from '../mapping/message-events.ts';
import { exceptionFields } from '../mapping/span-error.ts';
import { runIdOf, startUsOf } from '../mapping/span-identity.ts';
import { openOriginJson } from '../mapping/span-origin.ts';
import {
  hiddenNames,
  OPERATION,
  projectOf,
  type SpanFields,
  type SpanMapping,
  spanToOpenRun,
  spanToRun,
} from '../mapping/span-to-run.ts';
import type { ResourceLike, SpanContextLike, SpanLike } from '../span-like.ts';
import { resourceWait, unwatchEnd, watchForEnd } from './flushing.ts';
import { callTypeOf, inputsIn, mayRefuseLater, refusedContent, scopeOf, toolNameOf } from './span-call.ts';
import type { SpanEntry } from './span-registry.ts';

/** Data that is known when the run of a span starts. */
export interface SpanStart {
  readonly ids: SpanContextLike;
  /** Ids of the parent span, even if the parent span has no run. */
  readonly parentIds: SpanContextLike | undefined;
  readonly parent: RunContext | undefined;
  /** Whether the span belongs to no run of an incoming request: it records the request itself, or starts a new trace. */
  readonly isAboveRequest?: boolean;
  readonly sink: RunSink;
  /** The project for a run without a parent. A project in the span's attributes takes precedence. */
  readonly project: Project | undefined;
  readonly mapping: SpanMapping;
  /** Metadata from the baggage of the span's parent context. */
  readonly baggage?: Fields | undefined;
  /** Payloads that the run must not record, even if its sink records payloads. */
  readonly hiding?: Hiding;
  /** The number of the start among the starts and ends of the sink's calls. */
  readonly startSequence: number;
  /** Whether the span has ended already, because only its last attributes have selected it. */
  readonly isEnded?: boolean;
}

/** Starts the run of a span. If the trace is not sampled, returns an entry without a run. */
export function startSpanRun(span: SpanLike, given: SpanStart): SpanEntry {
  const start = given.isAboveRequest === true || !startsTrace(given.parent) ? given : startInRequest(given);
  const { ids, parent, sink, project } = start;
  if (parent?.sampled !== false && sink.capture.sampling === undefined) return new SpanRun(span, start);
  const named = typeof project === 'string' ? { project } : project && { projectId: project.id };
  const options = { name: safeText(span.name), id: runIdOf(startUsOf(span), ids), ...named };
  const sampling = sample(options, parent, sink, ids.traceId);
  if (sampling.isSampled) return new SpanRun(span, start);
  return { ids, isOpen: true, context: new Run({ options, parent, sink, sampling, capture: sink.capture }).context };
}

function startInRequest(given: SpanStart): SpanStart {
  const { parent, sink, project } = given;
  return {
    ...given,
    parent: belowRequest(parent, sink, typeof project === 'object' ? { projectId: project.id } : { project }),
  };
}

/**
 * The run of a span. Attributes are mapped when the span ends. If the start is sent earlier, attributes are also mapped
 * then.
 */
export class SpanRun implements SpanEntry, RunOwner, RunSource {
  readonly ids: SpanContextLike;
  isOpen = true;
  readonly sink: RunSink;
  readonly context: RunContext;
  /** The ids of the span, in the trace of its root run. The SDK starts another trace for a span below a function. */
  readonly spanIds: RunOwner['spanIds'];
  readonly #startUs: number;
  readonly #parentIds: SpanContextLike | undefined;
  /** The span id of a caller, if the span has no parent in OpenTelemetry. */
  readonly #enclosingId: string | undefined;
  readonly #capture: CapturePolicy;
  readonly #mapping: SpanMapping;
  /** The encoded run. Undefined if the run has ended or the sink has refused the run. */
  #record: EncodedRun | undefined;
  /** A `WeakRef` once the start is sent, so that a span that never ends does not stay in memory. */
  #span: SpanLike | WeakRef<SpanLike> | undefined;
  #sentInputs: EncodedPayload | undefined;
  #logMessages: LogMessages | undefined;
  /** Attributes of the last exception that was emitted as a log record. */
  #exception: Attributes | undefined;
  /** The parent run. Removed when the span ends, so that a long chain of spans does not stay in memory. */
  #parent: SpanRun | undefined;
  #hasUsageBelow = false;
  readonly parentRunId: string | undefined;
  /** The number of the start among the starts and ends of the sink's calls. */
  readonly #startSequence: number;
  /** The scope of the span, which is the source of its record. */
  readonly #source: string;
  /** The record of a call. Undefined if the span is not known to record one. */
  #call: RecordedCall | undefined;
  /** Whether the open span may turn out to record a call, because some instrumentations set attributes after the start. */
  #isUndecided = false;
  /** The number of open records of calls inside the span that other sources have started. */
  #openCalls = 0;
  /** Ends the run of a span that may never end. */
  #interruptLate: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    span: SpanLike,
    { ids, parentIds, parent, sink, project, mapping, baggage, hiding, startSequence, isEnded }: SpanStart,
  ) {
    this.ids = ids;
    const { capture } = sink;
    const startUs = startUsOf(span);
    const inherited = withBaggage(inheritedFrom(parent, sink), baggage, capture.payload);
    const record = new EncodedRun({
      id: runIdOf(startUs, ids),
      startUs,
      parent,
      project: projectOf(span.attributes) ?? parent?.project ?? project ?? capture.project,
      name: shownName(safeText(span.name), capture.payload),
      runType: 'chain',
      tags: inherited.tags,
      metadata: inherited.metadata,
    });
    this.sink = sink;
    const traceId = otelTraceIdOf(parent) ?? ids.traceId;
    this.spanIds = traceId === ids.traceId ? ids : { traceId, spanId: ids.spanId };
    this.#enclosingId = parent && parentIds === undefined ? enclosingSpanIds(parent)?.spanId : undefined;
    this.#startUs = startUs;
    this.#parentIds = parentIds;
    this.#mapping = mapping;
    this.#capture = captureFor(hiddenByEither(hiding, parent?.hiding) ?? {}, capture);
    this.#parent = parent?.owner instanceof SpanRun ? parent.owner : undefined;
    this.#record = record;
    this.#span = span;
    record.source = this;
    this.parentRunId = record.parentRunId;
    this.#startSequence = startSequence;
    this.#source = scopeOf(span) ?? '';
    const isAccepted = sink.start(record);
    if (!isAccepted) this.#release(record);
    else if (!isEnded) this.#startCall(record, span);
    const status = isAccepted ? 'kept' : 'refused';
    this.context = contextOf(record, inherited, status, undefined, this, parent, refusedContent(span));
    if (mayRefuseLater(span)) {
      const get = (): Hiding | undefined =>
        hiddenByEither(parent?.hiding, this.#openSpan && refusedContent(this.#openSpan));
      Object.defineProperty(this.context, 'hiding', { enumerable: true, get });
    }
  }

  get packageCopy(): object {
    return PACKAGE_COPY;
  }

  /** Determined on each access, because some instrumentations set attributes only after the start. */
  get call(): RunOwner['call'] {
    const span = this.#openSpan;
    const type = span && callTypeOf(span, this.#mapping.index);
    return type === undefined ? undefined : { type, source: this.#source };
  }

  get isEnded(): boolean {
    return this.#record === undefined;
  }

  get #openSpan(): SpanLike | undefined {
    return this.#span instanceof WeakRef ? this.#span.deref() : this.#span;
  }

  /** Adds messages from a log record by attribute name. Returns false if the span has ended. */
  addMessages(values: Attributes): boolean {
    if (this.isEnded) return this.context.refused;
    const isHidden = hiddenNames(this.#capture, this.#mapping.index);
    const shown = Object.entries(values).filter(([name]) => isHidden?.(name) !== true);
    if (shown.length === 0) return true;
    this.#logMessages ??= new LogMessages(this.#capture.payload);
    this.#logMessages.add(Object.fromEntries(shown));
    return true;
  }

  /** Stores the attributes of an exception that was emitted as a log record. Returns false if the span has ended. */
  addException(attributes: Attributes): boolean {
    if (this.isEnded) return this.context.refused;
    this.#exception = exceptionFields(attributes);
    return true;
  }

  describe(): void {
    const record = this.#record;
    const span = this.#openSpan;
    if (record === undefined || span === undefined) return;
    const { name, runType, inputs } = spanToOpenRun(span, this.#capture, this.#mapping.index);
    record.name = shownName(name, this.#capture.payload);
    record.runType = runType;
    const origin = this.#inTrace(openOriginJson(this.ids, this.#parentIds));
    record.metadata = new Map(record.metadata).set('otel', origin);
    this.#span = new WeakRef(span);
    if (inputs === undefined) return;
    record.inputs = inputs.json;
    record.attachments = inputs.attachments?.slice();
    this.#sentInputs = inputs;
  }

  /** Records the end of the span, unless the run has already ended or the sink no longer waits for its end. */
  end(span: SpanLike, interruption?: string): void {
    const record = this.#record;
    if (record === undefined) return;
    const parent = this.#parent;
    if (record.endTime !== undefined) {
      this.#release(record);
      return;
    }
    const fields = spanToRun(span, this.#capture, {
      startUs: this.#startUs,
      parentIds: this.#parentIds,
      messages: this.#logMessages?.attributes,
      droppedMessages: this.#logMessages?.leftOut,
      exception: this.#exception,
      mapping: this.#mapping,
      sentInputs: this.#sentInputs?.json,
      hasUsageBelow: this.#hasUsageBelow,
    });
    if (parent !== undefined && (this.#hasUsageBelow || fields.hasUsage)) parent.#hasUsageBelow = true;
    guard(OPERATION, () => {
      this.#fill(record, fields);
      if (interruption !== undefined) this.#markInterrupted(record, interruption);
      this.#endCall(record, span, fields);
    });
    this.#release(record);
    this.#deliver(record, span.resource);
  }

  /**
   * Ends the run as interrupted, because the end of the span cannot be observed. If the span object still exists, its
   * current attributes are recorded.
   */
  interrupt(reason: string): void {
    const span = this.#openSpan;
    if (span !== undefined) {
      this.end(span, reason);
      return;
    }
    const record = this.#record;
    if (record === undefined) return;
    this.#release(record);
    if (record.endTime !== undefined) return;
    this.#markInterrupted(record, reason);
    this.sink.end(record);
  }

  callStarted({ source }: RecordedCall): void {
    if (source === this.#source) return;
    this.#openCalls++;
    this.#stopWaiting();
  }

  /**
   * Some instrumentations never end the span of a call that fails or is aborted. The run is therefore interrupted after
   * `streamIdleMs`, or when the process is about to end, unless another call starts inside. A call with another request says
   * nothing about the span's own call.
   */
  callEnded({ type, source, key }: RecordedCall): void {
    if (source === this.#source || --this.#openCalls > 0 || this.isEnded || this.call?.type !== type) return;
    if (key !== undefined && (this.#call?.readKey() ?? key) !== key) return;
    this.#stopWaiting();
    // Keeps the span, because its attributes are recorded if the run is interrupted.
    this.#span = this.#openSpan;
    const interruptLate = (): void => this.interrupt('the span of a call that has ended did not end');
    this.#interruptLate = interruptLate;
    this.#timer = setTimer(interruptLate, Math.min(DELAY_MAX_MS, this.#capture.streamIdleMs)).unref();
    watchForEnd(interruptLate);
  }

  #stopWaiting(): void {
    if (this.#interruptLate === undefined) return;
    clearTimer(this.#timer);
    unwatchEnd(this.#interruptLate);
    this.#interruptLate = undefined;
  }

  #startCall(record: EncodedRun, span: SpanLike): void {
    const calls = callsOf(this.sink);
    const type = callTypeOf(span, this.#mapping.index);
    if (type !== undefined) {
      this.#call = this.#recordedCall(record, type, () => this.#openSpan);
      calls.start(this.#call);
      this.#parent?.callStarted(this.#call);
    } else {
      this.#isUndecided = calls.startUndecided(this.#source);
    }
  }

  #recordedCall(record: EncodedRun, type: string, spanOf: () => SpanLike | undefined): RecordedCall {
    const inputs = (): unknown => {
      const span = spanOf();
      return span && inputsIn(span, this.#logMessages?.attributes, this.#mapping.index);
    };
    return new RecordedCall(record, type, { source: this.#source, inputs });
  }

  /** Ends the record of a call. Only now is it certain whether the span records one. */
  #endCall(record: EncodedRun, span: SpanLike, { runType, model, responseId }: SpanFields): void {
    if (!isCallType(runType)) return;
    const calls = callsOf(this.sink);
    const isKnown = this.#call?.type === runType;
    const call = isKnown ? (this.#call as RecordedCall) : this.#recordedCall(record, runType, () => span);
    call.startSequence = this.#startSequence;
    if (runType === 'tool') call.name = toolNameOf(span);
    call.model = model;
    call.responseId = responseId;
    const endLate = () => (this.#isUndecided ? calls.endUndecided(this.#source, call) : calls.endLate(call));
    endCall(this.sink, call, record, isKnown ? undefined : endLate);
    this.#isUndecided = false;
    if (!isKnown) return;
    this.#call = undefined;
    this.#parent?.callEnded(call);
  }

  /** Adds ids to `metadata.otel` if the parent run is in another trace of OpenTelemetry, for example that of a caller. */
  #inTrace(origin: string): string {
    const { spanIds } = this;
    if (spanIds === this.ids) return origin;
    const enclosing = this.#enclosingId === undefined ? '' : `,"enclosing_span_id":"${this.#enclosingId}"`;
    return `${origin.slice(0, -1)},"root_trace_id":"${spanIds?.traceId}"${enclosing}}`;
  }

  #release(record: EncodedRun): void {
    record.source = undefined;
    this.#record = undefined;
    this.#span = undefined;
    this.#parent = undefined;
    this.#stopWaiting();
    if (this.#call !== undefined) callsOf(this.sink).leave(this.#call);
    if (this.#isUndecided) callsOf(this.sink).endUndecided(this.#source);
    this.#call = undefined;
    this.#isUndecided = false;
    this.#logMessages = undefined;
  }

  #fill(record: EncodedRun, fields: SpanFields): void {
    const { payload } = this.#capture;
    const { tags, metadata } = this.context;
    if (fields.name !== record.name) record.name = shownName(fields.name, payload);
    record.runType = fields.runType;
    if (fields.tags !== undefined) record.tags = withTags(tags, fields.tags, payload);
    fields.metadata.set('otel', this.#inTrace(fields.metadata.get('otel') as string));
    record.metadata = metadata === undefined ? fields.metadata : new Map([...metadata, ...fields.metadata]);
    record.error = fields.error;
    record.events = fields.events;
    record.endTime = fields.endTime;
    const { inputs, outputs } = fields;
    // If inputs were sent with the start, they are sent again only if they have changed.
    const sent = this.#sentInputs;
    if (inputs !== undefined && (sent === undefined || !isSamePayload(inputs, sent))) {
      record.inputs = inputs.json;
      record.attachments = inputs.attachments?.slice();
    }
    this.#sentInputs = undefined;
    if (outputs === undefined) return;
    record.outputs = outputs.json;
    if (outputs.attachments !== undefined) {
      record.attachments = [...(record.attachments ?? []), ...outputs.attachments];
    }
  }

  #markInterrupted(record: EncodedRun, reason: string): void {
    record.metadata = new Map(record.metadata).set('end_reason', '"interrupted"');
    record.error ??= `Interrupted: ${reason}`;
    record.endTime = isoTimestamp(Math.max(this.#startUs, clock.nowUs()));
  }

  /** Delivers a run once the attributes of its resource are known. The first spans of a process may end before that. */
  #deliver(record: EncodedRun, resource: ResourceLike): void {
    observeRun(record, this.sink);
    const wait = resourceWait(resource);
    if (wait === undefined) {
      this.sink.end(record);
      return;
    }
    void wait.then(() => {
      guard(OPERATION, () => {
        const known = this.#mapping.resources.of(resource, this.#capture.payload);
        record.metadata = new Map([...known, ...(record.metadata ?? [])]);
      });
      this.sink.end(record);
    });
  }
}

/** Adds metadata from baggage. What a run above has set takes precedence. */
function withBaggage(inherited: EncodedFields, baggage: Fields | undefined, rules: PayloadRules): EncodedFields {
  if (baggage === undefined) return inherited;
  const { tags, metadata } = inherited;
  return { tags, metadata: new Map([...withMetadata(undefined, baggage, rules), ...(metadata ?? [])]) };
}

function isSamePayload(one: EncodedPayload, other: EncodedPayload): boolean {
  if (one.json !== other.json) return false;
  return (one.attachments ?? []).every(({ bytes }, at) => {
    const before = other.attachments?.[at]?.bytes;
    // Attachments of spans are never `Blob` objects.
    return bytes instanceof Uint8Array && before instanceof Uint8Array && Buffer.compare(bytes, before) === 0;
  });
}
