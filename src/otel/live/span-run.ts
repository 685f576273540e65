import { guard } from '../../base/guard.ts';
import { safeText } from '../../base/text.ts';
import type { Fields } from '../../payload/fields.ts';
import type { EncodedPayload } from '../../payload/serialize.ts';
import type { MappedFields, RunStart, SpanOwner } from '../../run/begin.ts';
import { type CallStart, callsOf, type RecordedCall } from '../../run/calls.ts';
import {
  belowRequest,
  enclosingSpanIds,
  inheritedFrom,
  otelTraceIdOf,
  PACKAGE_COPY,
  type RunContext,
  type RunOwner,
  startsTrace,
} from '../../run/context.ts';
import type { Project } from '../../run/encoded-run.ts';
import { Run } from '../../run/run.ts';
import { captureFor, type Hiding, hiddenByEither, type StartOptions } from '../../run/run-options.ts';
import { isCallType } from '../../run/same-call.ts';
import { sample } from '../../run/sampling.ts';
import type { CapturePolicy, RunSink } from '../../run/sink.ts';
import type { Attributes } from '../conventions/values.ts';
import { LogMessages } from '../mapping/message-events.ts';
import { exceptionFields } from '../mapping/span-error.ts';
import { hrTimeUs, runIdOf, startUsOf } from '../mapping/span-identity.ts';
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
import type { SpanContextLike, SpanLike } from '../span-like.ts';
import { resourceWait } from './flushing.ts';
import { callTypeOf, inputsIn, LateEnd, mayRefuseLater, refusedContent, scopeOf, toolNameOf } from './span-call.ts';
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

/** Starts the run of a span. */
export function startSpanRun(span: SpanLike, given: SpanStart): SpanRun {
  return new SpanRun(span, given.isAboveRequest === true || !startsTrace(given.parent) ? given : startInRequest(given));
}

function startInRequest(given: SpanStart): SpanStart {
  const { parent, sink, project } = given;
  return { ...given, parent: belowRequest(parent, sink, namedProject(project)) };
}

/**
 * What the run of a span has beyond that of a function. Attributes are mapped when the span ends. If there are hooks, or
 * the start is sent earlier, attributes are also mapped then.
 */
export class SpanRun implements SpanEntry, SpanOwner {
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
  readonly #mapping: SpanMapping;
  /** Undefined if the span has ended, or its run is not recorded. */
  #run: Run | undefined;
  /** A `WeakRef` once the start is sent, so that a span that never ends does not stay in memory. */
  #span: SpanLike | WeakRef<SpanLike> | undefined;
  #sentInputs: EncodedPayload | undefined;
  #logMessages: LogMessages | undefined;
  /** Attributes of the last exception that was emitted as a log record. */
  #exception: Attributes | undefined;
  /** The parent run. Removed when the span ends, so that a long chain of spans does not stay in memory. */
  #parent: SpanRun | undefined;
  #hasUsageBelow = false;
  /** The number of the start among the starts and ends of the sink's calls. */
  readonly #startSequence: number;
  /** The scope of the span, which is the source of its record. */
  readonly #source: string;
  /** Whether the open span may turn out to record a call, because some instrumentations set attributes after the start. */
  #isUndecided = false;
  /** Undefined if no call of another source has started inside the span. */
  #lateEnd: LateEnd | undefined;

  constructor(span: SpanLike, start: SpanStart) {
    const { ids, parentIds, parent, sink, mapping, startSequence, isEnded } = start;
    this.ids = ids;
    this.sink = sink;
    const traceId = otelTraceIdOf(parent) ?? ids.traceId;
    this.spanIds = traceId === ids.traceId ? ids : { traceId, spanId: ids.spanId };
    this.#enclosingId = parent && parentIds === undefined ? enclosingSpanIds(parent)?.spanId : undefined;
    this.#startUs = startUsOf(span);
    this.#parentIds = parentIds;
    this.#mapping = mapping;
    this.#span = span;
    this.#startSequence = startSequence;
    this.#source = scopeOf(span) ?? '';
    const type = isEnded === true ? undefined : callTypeOf(span, mapping.index);
    const call = { type, source: this.#source, inputs: () => this.#inputsIn(this.#openSpan) };
    const run = new Run({ ...runStartOf(span, this.#startUs, start), call, span: this });
    this.context = run.context;
    if (!run.isOpen) {
      this.#span = undefined;
      return;
    }
    this.#run = run;
    this.#parent = parent?.owner instanceof SpanRun ? parent.owner : undefined;
    if (type === undefined && isEnded !== true) this.#isUndecided = callsOf(sink).startUndecided(this.#source);
    if (mayRefuseLater(span)) {
      const get = (): Hiding | undefined =>
        hiddenByEither(parent?.hiding, this.#openSpan && refusedContent(this.#openSpan));
      Object.defineProperty(this.context, 'hiding', { enumerable: true, get });
    }
    run.started();
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

  get #openSpan(): SpanLike | undefined {
    return this.#span instanceof WeakRef ? this.#span.deref() : this.#span;
  }

  /**
   * Adds the attributes of an exception, or messages by attribute name, from a log record. Returns false if the span has
   * ended.
   */
  addLog(values: Attributes, isException: boolean): boolean {
    const run = this.#run;
    if (run === undefined) return this.context.refused || !this.context.sampled;
    if (isException) {
      this.#exception = exceptionFields(values);
      return true;
    }
    const isHidden = hiddenNames(run.capture, this.#mapping.index);
    const shown = Object.entries(values).filter(([name]) => isHidden?.(name) !== true);
    if (shown.length === 0) return true;
    this.#logMessages ??= new LogMessages(run.capture.payload);
    this.#logMessages.add(Object.fromEntries(shown));
    return true;
  }

  describe(capture: CapturePolicy): MappedFields | undefined {
    const span = this.#openSpan;
    if (span === undefined) return undefined;
    const fields = spanToOpenRun(span, capture, this.#mapping.index);
    this.#span = new WeakRef(span);
    this.#sentInputs = fields.inputs;
    const metadata = new Map([['otel', this.#inTrace(openOriginJson(this.ids, this.#parentIds))]]);
    return { ...fields, metadata };
  }

  /** Records the end of the span, unless its run has already ended. `span` is undefined if it is no longer in memory. */
  end(span: SpanLike | undefined, interruption?: string): void {
    const run = this.#run;
    if (run === undefined) return;
    if (span === undefined) run.keepCall(undefined);
    else if (run.isOpen) guard(OPERATION, () => this.#fill(run, span));
    this.#release();
    if (interruption !== undefined) run.interrupt(interruption);
    else run.finish(Math.max(this.#startUs, hrTimeUs(span?.endTime) ?? this.#startUs));
  }

  /**
   * Ends the run as interrupted, because the end of the span cannot be observed. If the span object still exists, its
   * current attributes are recorded.
   */
  interrupt(reason: string): void {
    this.end(this.#openSpan, reason);
  }

  callStarted({ source }: RecordedCall): void {
    if (source === this.#source) return;
    this.#lateEnd ??= new LateEnd();
    this.#lateEnd.callStarted();
  }

  /**
   * Some instrumentations never end the span of a call that fails or is aborted. The run is therefore interrupted after
   * `streamIdleMs`, or when the process is about to end, unless another call starts inside. A call with another request says
   * nothing about the span's own call.
   */
  callEnded({ type, source, key }: RecordedCall): void {
    const run = this.#run;
    if (
      source === this.#source ||
      this.#lateEnd?.callEnded() !== false ||
      run === undefined ||
      this.call?.type !== type
    )
      return;
    if (key !== undefined && (run.call?.readKey() ?? key) !== key) return;
    // Keeps the span, because its attributes are recorded if the run is interrupted.
    this.#span = this.#openSpan;
    const interrupt = (): void => this.interrupt('the span of a call that has ended did not end');
    this.#lateEnd.await(run.capture.streamIdleMs, interrupt);
  }

  #fill(run: Run, span: SpanLike): void {
    const sent = this.#sentInputs;
    const fields = spanToRun(span, run.capture, {
      startUs: this.#startUs,
      parentIds: this.#parentIds,
      messages: this.#logMessages?.attributes,
      droppedMessages: this.#logMessages?.leftOut,
      exception: this.#exception,
      mapping: this.#mapping,
      sentInputs: sent?.json,
      hasUsageBelow: this.#hasUsageBelow,
    });
    if (this.#parent !== undefined && (this.#hasUsageBelow || fields.hasUsage)) this.#parent.#hasUsageBelow = true;
    fields.metadata.set('otel', this.#inTrace(fields.metadata.get('otel') as string));
    // If inputs were sent with the start, they are sent again only if they have changed.
    if (fields.inputs !== undefined && sent !== undefined && isSamePayload(fields.inputs, sent))
      fields.inputs = undefined;
    run.keepFields(fields);
    this.#fillCall(run, span, fields);
    const { resource } = span;
    const settled = resourceWait(resource);
    if (settled === undefined) return;
    const { payload } = run.capture;
    run.awaitMetadata(settled, () => this.#mapping.resources.of(resource, payload));
  }

  /** Only at the end of a span is it certain whether it records a call. */
  #fillCall(run: Run, span: SpanLike, { runType, model, responseId }: SpanFields): void {
    const start: CallStart = { source: this.#source, inputs: () => this.#inputsIn(span) };
    const call = run.keepCall(isCallType(runType) ? runType : undefined, start);
    if (call === undefined) return;
    call.startSequence = this.#startSequence;
    if (runType === 'tool') call.name = toolNameOf(span);
    call.model = model;
    call.responseId = responseId;
    call.isUndecided = this.#isUndecided;
    this.#isUndecided = false;
  }

  #inputsIn(span: SpanLike | undefined): unknown {
    return span && inputsIn(span, this.#logMessages?.attributes, this.#mapping.index);
  }

  /** Adds ids to `metadata.otel` if the parent run is in another trace of OpenTelemetry, for example that of a caller. */
  #inTrace(origin: string): string {
    const { spanIds } = this;
    if (spanIds === this.ids) return origin;
    const enclosing = this.#enclosingId === undefined ? '' : `,"enclosing_span_id":"${this.#enclosingId}"`;
    return `${origin.slice(0, -1)},"root_trace_id":"${spanIds?.traceId}"${enclosing}}`;
  }

  #release(): void {
    this.#run = undefined;
    this.#span = undefined;
    this.#sentInputs = undefined;
    this.#parent = undefined;
    this.#lateEnd?.stop();
    if (this.#isUndecided) callsOf(this.sink).endUndecided(this.#source);
    this.#isUndecided = false;
    this.#logMessages = undefined;
  }
}

function runStartOf(span: SpanLike, startUs: number, start: SpanStart): RunStart {
  const { ids, parent, sink, project, baggage, hiding } = start;
  const options: StartOptions = {
    ...namedProject(projectOf(span.attributes) ?? parent?.project ?? project),
    name: safeText(span.name),
    id: runIdOf(startUs, ids),
    startUs,
    hiding: refusedContent(span),
  };
  if (baggage !== undefined) options.metadata = notInherited(baggage, start);
  const sampling = sample(options, parent, sink, ids.traceId);
  const capture = captureFor(hiddenByEither(hiding, parent?.hiding) ?? {}, sink.capture);
  return { options, parent, sink, sampling, capture };
}

function namedProject(project: Project | undefined): Pick<StartOptions, 'project' | 'projectId'> {
  if (project === undefined) return {};
  return typeof project === 'string' ? { project } : { projectId: project.id };
}

/** Returns the baggage that no run above has set as metadata. */
function notInherited(baggage: Fields, { parent, sink }: SpanStart): Fields {
  const { metadata } = inheritedFrom(parent, sink);
  return Object.fromEntries(Object.entries(baggage).filter(([key]) => metadata?.has(key) !== true));
}

function isSamePayload(one: EncodedPayload, other: EncodedPayload): boolean {
  if (one.json !== other.json) return false;
  return (one.attachments ?? []).every(({ bytes }, at) => {
    const before = other.attachments?.[at]?.bytes;
    // Attachments of spans are never `Blob` objects.
    return bytes instanceof Uint8Array && before instanceof Uint8Array && Buffer.compare(bytes, before) === 0;
  });
}
