import { clock } from '../../base/clock.ts';
import { guard } from '../../base/guard.ts';
import { safeText } from '../../base/text.ts';
import { type Fields, parsedJson } from '../../payload/fields.ts';
import { type EncodedPayload, shownName } from '../../payload/serialize.ts';
import type { PayloadRules } from '../../payload/truncate.ts';
import { clearTimer, DELAY_MAX_MS, setTimer } from '../../platform/timers.ts';
import {
  belowRequest,
  type Completion,
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
import { captureFor, type Hiding } from '../../run/run-options.ts';
import { type Call, requestKey } from '../../run/same-call.ts';
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
import { isContentRefused, scopeOf, spanCall } from './span-call.ts';
import { SpanCompletion } from './span-completion.ts';
import { SkippedSpan, SpanEntry } from './span-entry.ts';

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
  /** The completion of the run that already records the call. The span's run is then not sent itself. */
  readonly completion?: Completion | undefined;
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
  return new SkippedSpan(ids, new Run({ options, parent, sink, sampling }).context);
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
export class SpanRun extends SpanEntry implements RunOwner, RunSource {
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
  /**
   * A `WeakRef` once the start is sent, so that a span that never ends does not stay in memory. A span whose run others
   * complete stays until the run ends.
   */
  #span: SpanLike | WeakRef<SpanLike> | undefined;
  #sentInputs: EncodedPayload | undefined;
  #logMessages: LogMessages | undefined;
  /** Attributes of the last exception that was emitted as a log record. */
  #exception: Attributes | undefined;
  /** The parent run. Removed when the span ends, so that a long chain of spans does not stay in memory. */
  #parent: SpanRun | undefined;
  #hasUsageBelow = false;
  readonly parentRunId: string | undefined;
  readonly #target: Pick<RunSink, 'start' | 'end'>;
  #completion: SpanCompletion | undefined;
  /** Whether the span has ended before the records that complete its run. */
  #hasSpanEnded = false;
  /** The span without content whose run has ended first. A later retry inside the span must not be a run with content. */
  #refusing: SpanLike | undefined;
  /** Ends the run, which waits for other records of its call or for the end of the span. */
  #waiting: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    span: SpanLike,
    { ids, parentIds, parent, sink, project, mapping, baggage, hiding, completion }: SpanStart,
  ) {
    super(ids);
    const { capture } = completion ?? sink;
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
    this.#target = completion ?? sink;
    const traceId = otelTraceIdOf(parent) ?? ids.traceId;
    this.spanIds = traceId === ids.traceId ? ids : { traceId, spanId: ids.spanId };
    this.#enclosingId = parent && parentIds === undefined ? enclosingSpanIds(parent)?.spanId : undefined;
    this.#startUs = startUs;
    this.#parentIds = parentIds;
    this.#mapping = mapping;
    this.#capture = hiding === undefined ? capture : captureFor(hiding, capture);
    this.#parent = parent?.owner instanceof SpanRun ? parent.owner : undefined;
    this.#record = record;
    this.#span = span;
    record.source = this;
    this.parentRunId = completion === undefined ? record.parentRunId : completion.parentRunId;
    const isAccepted = this.#target.start(record);
    if (!isAccepted) this.#release(record);
    const status = isAccepted ? 'kept' : 'refused';
    this.context = completion
      ? Object.freeze({ ...completion.context, owner: this })
      : contextOf(record, inherited, status, undefined, this, parent);
  }

  get packageCopy(): object {
    return PACKAGE_COPY;
  }

  /** Determined on each access, because some instrumentations set attributes only after the start. */
  get call(): Call | undefined {
    const span = this.isEnded ? this.#refusing : this.#openSpan;
    return span && spanCall(span, this.#mapping.index);
  }

  get completion(): SpanCompletion {
    if (this.#record !== undefined) this.#span = this.#openSpan;
    this.#completion ??= new SpanCompletion(this, this.#captureOfOthers(), () => this.#settled());
    return this.#completion;
  }

  /** Whether the span has ended, even if its run is still open. */
  get isEnded(): boolean {
    return this.#record === undefined || this.#hasSpanEnded;
  }

  /** Whether the ended span's run waits for the end of a response. */
  get isWaiting(): boolean {
    return this.#hasSpanEnded;
  }

  /** The fingerprint of the request in the attributes of the open span. */
  get request(): string | undefined {
    const span = this.#openSpan;
    const inputs = span && spanToOpenRun(span, { ...this.#capture, hideInputs: false }, this.#mapping.index).inputs;
    return inputs && requestKey(parsedJson(inputs.json));
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
    if (this.#completion === undefined) this.#span = new WeakRef(span);
    if (inputs === undefined) return;
    record.inputs = inputs.json;
    record.attachments = inputs.attachments?.slice();
    this.#sentInputs = inputs;
  }

  /** Records the end of the span, unless the run has already ended or the sink no longer waits for its end. */
  end(span: SpanLike, interruption?: string, isUnended = false): void {
    const record = this.#record;
    if (record === undefined || this.#hasSpanEnded) return;
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
    const completion = this.#completion;
    const finish = (isLate: boolean): void => {
      if (this.#record === undefined) return;
      this.#release(record);
      // The sink may have stopped waiting for the end of the run.
      if (record.endTime !== undefined) return;
      // Also called by timers and by the application's own calls, which must not fail.
      guard(OPERATION, () => {
        this.#fill(record, fields);
        completion?.complete(record, scopeOf(span), fields.inputs !== undefined, isLate);
        if (interruption !== undefined) this.#markInterrupted(record, interruption);
      });
      this.#deliver(record, span.resource);
    };
    if (completion?.isOpen === true && interruption === undefined) {
      this.#hasSpanEnded = true;
      this.#wait(() => finish(true));
    } else finish(isUnended);
  }

  /**
   * Ends the run as interrupted, because the end of the span cannot be observed. If the span object still exists, its
   * current attributes are recorded.
   */
  interrupt(reason: string): void {
    this.#waiting?.();
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
    this.#target.end(record);
  }

  /**
   * Called when no record of the call is open any more. Some instrumentations never end the span of a call that fails or
   * is aborted, so the run then ends with what the records contain.
   */
  #settled(): void {
    if (this.#hasSpanEnded) {
      this.#waiting?.();
      return;
    }
    const span = this.#openSpan;
    if (span === undefined) return;
    this.#wait(() => {
      if (this.#completion?.isOpen !== false) return;
      this.end(span, undefined, true);
      if (isContentRefused(span)) this.#refusing = span;
    });
  }

  /** Calls `end` after `streamIdleMs` or when the process is about to end, unless the run has ended before. */
  #wait(end: () => void): void {
    this.#stopWaiting();
    this.#waiting = end;
    this.#timer = setTimer(end, Math.min(DELAY_MAX_MS, this.#capture.streamIdleMs)).unref();
    watchForEnd(end);
  }

  #stopWaiting(): void {
    if (this.#waiting === undefined) return;
    clearTimer(this.#timer);
    unwatchEnd(this.#waiting);
    this.#waiting = undefined;
  }

  #captureOfOthers(): CapturePolicy {
    const span = this.#openSpan;
    const hiding = span && isContentRefused(span) ? ({ hideInputs: true, hideOutputs: true } as const) : {};
    return captureFor(hiding, this.#capture);
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
    this.#hasSpanEnded = false;
    this.#completion = undefined;
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
      this.#target.end(record);
      return;
    }
    void wait.then(() => {
      guard(OPERATION, () => {
        const known = this.#mapping.resources.of(resource, this.#capture.payload);
        record.metadata = new Map([...known, ...(record.metadata ?? [])]);
      });
      this.#target.end(record);
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
