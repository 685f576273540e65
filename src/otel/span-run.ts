import { clock } from '../base/clock.ts';
import { guard } from '../base/guard.ts';
import { safeText } from '../base/text.ts';
import { type AttachingField, PayloadAttachments, RunAttachments } from '../payload/attachment.ts';
import { shownError } from '../payload/errors.ts';
import { metadataJson, metadataKey, serialize, shownName } from '../payload/serialize.ts';
import {
  contextOf,
  inheritedFrom,
  type ModelCall,
  PACKAGE_COPY,
  type RunContext,
  type RunOwner,
} from '../run/context.ts';
import { EncodedRun, type Project } from '../run/encoded-run.ts';
import { isRunId, newRunId, spanRunId } from '../run/ids.ts';
import { withTags } from '../run/run-fields.ts';
import { type Hiding, hidingCapture } from '../run/run-options.ts';
import type { CapturePolicy, RunSink } from '../run/sink.ts';
import { isoTimestamp } from '../run/time.ts';
import { isCancelledCall } from './cancelled-call.ts';
import { hrTimeUs } from './hr-time.ts';
import { LogMessages } from './log-messages.ts';
import { hiddenCarriers, type KnownInputs, type MappedSpan, mapSpan, mapStart, USAGE } from './mapping.ts';
import { toldByEvents, withoutTellers } from './message-events.ts';
import { resourceWait } from './resource-wait.ts';
import { exceptionFields, spanError } from './span-error.ts';
import { spanEventsJson, withFirstToken } from './span-events.ts';
import type { ResourceLike, SpanContextLike, SpanLike } from './span-like.ts';
import { isAgentAlone, spanModelCall } from './span-model-call.ts';
import { endedOriginJson, originJson, resourceMetadata } from './span-origin.ts';
import type { SpanEntry } from './span-registry.ts';
import type { Attributes } from './conventions/values.ts';
import type { Found } from './conventions/vocabulary.ts';

/** Where a span starts: below what, by what ids, and with which sink. */
export interface SpanStart {
  readonly ids: SpanContextLike;
  /** The span above it for OpenTelemetry, whether or not that is a run. */
  readonly parentIds: SpanContextLike | undefined;
  /** The run above it. */
  readonly parent: RunContext | undefined;
  readonly sink: RunSink;
  /** For a run without a parent, when its span names none. */
  readonly project: Project | undefined;
  /** Payloads that the run does not record, even if its sink captures them. */
  readonly hiding?: Hiding;
}

const PLACE = 'reading a span';

/** The run that a span is, from the span's start to its end. */
export class SpanRun implements RunOwner, SpanEntry {
  readonly sink: RunSink;
  readonly context: RunContext;
  readonly #startUs: number;
  readonly #origin: string;
  /** That of the record from the start on, added to at the end. */
  #metadata: Map<string, string> | undefined;
  /** While it is open, for what it has been given since, should its end not be seen. Held on to at first: see `letGo`. */
  #span: SpanLike | WeakRef<SpanLike> | undefined;
  /** Undefined once the run has ended, or when the sink has refused it. */
  #record: EncodedRun | undefined;
  #knownInputs: KnownInputs | undefined;
  #attachments: RunAttachments | undefined;
  #logMessages: LogMessages | undefined;
  /** The attributes of the latest exception that was emitted as a log record. */
  #exception: Attributes | undefined;
  /**
   * The parent run. The reference is released when the span ends; otherwise an endless chain of spans would stay in
   * memory.
   */
  #parent: SpanRun | undefined;
  #hasUsageBelow = false;
  /** The model call that the span recorded. Set when the span ends. */
  endedCall: ModelCall | undefined;
  readonly #capture: CapturePolicy;

  constructor(span: SpanLike, { ids, parentIds, parent, sink, project, hiding }: SpanStart) {
    this.sink = sink;
    this.#capture = hiding === undefined ? sink.capture : hidingCapture(hiding, sink.capture);
    const startUs = startUsOf(span);
    const id = idOf(startUs, ids);
    const refused = parent?.refused ?? false;
    const mapped = refused ? undefined : guard(PLACE, () => mapStart(span.attributes, this.#capture));
    const origin = originJson(ids, parentIds);
    const inherited = inheritedFrom(parent, sink);
    const record = new EncodedRun({
      id,
      startUs,
      parent,
      project: mapped?.project ?? parent?.project ?? project ?? sink.capture.project,
      name: shownName(nameOf(span, mapped), sink.capture.payload),
      runType: mapped?.runType ?? 'chain',
      tags: inherited.tags,
      metadata: inherited.metadata,
    });
    this.#startUs = startUs;
    this.#origin = origin;
    this.#parent = parent?.owner instanceof SpanRun ? parent.owner : undefined;
    if (mapped?.inputs?.payload !== undefined) {
      const { payload, sources, used } = mapped.inputs;
      this.#knownInputs = { sources, used };
      record.inputs = this.#encode(record, 'inputs', payload);
    }
    const metadata = new Map(inherited.metadata).set('otel', origin);
    record.metadata = metadata;
    const isAccepted = sink.start(record);
    if (isAccepted) {
      this.#record = record;
      this.#span = span;
      this.#metadata = metadata;
    }
    // Runs below take over what this one has from above, and not what is told of the span itself.
    this.context = contextOf(record, inherited, isAccepted ? 'kept' : 'refused', undefined, this);
  }

  get packageCopy(): object {
    return PACKAGE_COPY;
  }

  /** Reads the current attributes of the span, because some instrumentations set them after the start. */
  get modelCall(): ModelCall | undefined {
    const span = this.#openSpan;
    return span && spanModelCall(span);
  }

  get #openSpan(): SpanLike | undefined {
    return this.#span instanceof WeakRef ? this.#span.deref() : this.#span;
  }

  /** Takes what a log record tells, under the names of attributes, until the span ends; false when it has ended. */
  tell(values: Attributes): boolean {
    if (this.#record === undefined) return this.context.refused;
    const capture = this.#capture;
    const isHidden = hiddenCarriers(capture);
    const shown = Object.entries(values).filter(([name]) => isHidden?.(name) !== true);
    if (shown.length === 0) return true;
    this.#logMessages ??= new LogMessages(capture.payload);
    this.#logMessages.add(Object.fromEntries(shown));
    return true;
  }

  /** Stores the attributes of an exception that was emitted as a log record. Returns false if the span has ended. */
  addException(attributes: Attributes): boolean {
    if (this.#record === undefined) return this.context.refused;
    this.#exception = exceptionFields(attributes);
    return true;
  }

  /** Records the end of the span. Only the first end counts, and none once the sink has given up waiting for it. */
  end(span: SpanLike, interruption?: string): void {
    const record = this.#record;
    this.#record = undefined;
    this.#span = undefined;
    if (record === undefined || record.endTime !== undefined) return;
    const capture = this.#capture;
    const told = guard(PLACE, () => toldByEvents(span.events));
    const logged = this.#logMessages;
    const beside = told && logged ? { ...logged.attributes, ...told.attributes } : (told ?? logged)?.attributes;
    const isOwnUsage = (attributes: Attributes): boolean => !this.#hasUsageBelow && isAgentAlone(span.kind, attributes);
    const mapped = guard(PLACE, () => mapSpan(span.attributes, capture, this.#knownInputs, beside, isOwnUsage));
    if (this.#parent !== undefined && (this.#hasUsageBelow || mapped?.metadata.has(USAGE))) {
      this.#parent.#hasUsageBelow = true;
    }
    this.#parent = undefined;
    this.#knownInputs = undefined;
    this.#logMessages = undefined;
    const name = nameOf(span, mapped);
    record.name = shownName(name, capture.payload);
    const metadata = this.#metadata ?? new Map();
    this.#metadata = undefined;
    record.metadata = metadata;
    if (mapped !== undefined) guard(PLACE, () => this.#take(record, metadata, mapped));
    this.endedCall = mapped && spanModelCall(span, mapped.runType);
    this.#tellOrigin(metadata, span, name, logged?.leftOut ?? 0);
    guard(PLACE, () => {
      const error = spanError(span, this.#exception);
      record.error = error && shownError(error, capture.payload.redaction);
      const used = mapped?.toldUsed;
      const events = told && used ? withoutTellers(span.events, told, used) : span.events;
      const shown = withFirstToken(events, this.#startUs, mapped?.firstTokenUs);
      record.events = spanEventsJson(shown, this.#startUs, capture.payload, hiddenCarriers(capture));
    });
    record.endTime = isoTimestamp(Math.max(this.#startUs, hrTimeUs(span.endTime) ?? this.#startUs));
    this.#attachments = undefined;
    if (interruption !== undefined) this.#markInterrupted(record, interruption);
    this.#deliver(record, span.resource);
  }

  /** Ends the run of a span whose end will not be seen, with what the span says by now if it is still there. */
  interrupt(reason: string): void {
    const span = this.#openSpan;
    if (span !== undefined) {
      this.end(span, reason);
      return;
    }
    const record = this.#record;
    this.#record = undefined;
    if (record === undefined || record.endTime !== undefined) return;
    this.#markInterrupted(record, reason);
    this.sink.end(record);
  }

  /** Holds on to the span no longer: it may be one that nobody will end. */
  letGo(): void {
    if (this.#span !== undefined && !(this.#span instanceof WeakRef)) this.#span = new WeakRef(this.#span);
  }

  /** Each part by itself: what is odd about one is no reason to leave out the others. */
  #tellOrigin(metadata: Map<string, string>, span: SpanLike, name: string, leftOut: number): void {
    const { payload } = this.sink.capture;
    guard(PLACE, () => {
      for (const [key, json] of resourceMetadata(span.resource, payload)) metadata.set(key, json);
    });
    guard(PLACE, () => {
      if (isCancelledCall(span)) metadata.set('end_reason', '"cancelled"');
    });
    if (leftOut > 0) metadata.set('dropped_log_records', String(leftOut));
    guard(PLACE, () => metadata.set('otel', endedOriginJson(this.#origin, span, name, payload)));
  }

  #markInterrupted(record: EncodedRun, reason: string): void {
    record.metadata = new Map(record.metadata).set('end_reason', '"interrupted"');
    record.error ??= `Interrupted: ${reason}`;
    record.endTime = isoTimestamp(Math.max(this.#startUs, clock.nowUs()));
  }

  /** Early spans end before their resource knows who it is. */
  #deliver(record: EncodedRun, resource: ResourceLike): void {
    const wait = guard(PLACE, () => resourceWait(resource));
    if (wait === undefined) {
      this.sink.end(record);
      return;
    }
    void wait.then(() => {
      guard(PLACE, () => {
        const known = resourceMetadata(resource, this.sink.capture.payload);
        record.metadata = new Map([...known, ...(record.metadata ?? [])]);
      });
      this.sink.end(record);
    });
  }

  #take(record: EncodedRun, metadata: Map<string, string>, mapped: MappedSpan): void {
    const { runType, tags, inputs, outputs } = mapped;
    const { payload } = this.sink.capture;
    record.runType = runType;
    record.tags = withTags(this.context.tags, tags, payload);
    // The sink lets go of inputs that it has delivered; they are told again only when they have changed.
    const changed = inputs?.payload;
    if (changed !== undefined) record.inputs = this.#encode(record, 'inputs', changed);
    if (outputs !== undefined) record.outputs = this.#encode(record, 'outputs', outputs);
    for (const [key, value] of mapped.metadata)
      metadata.set(metadataKey(key, payload), metadataJson(key, value, payload));
  }

  /** JSON text of a payload that takes the place of the one before, attachments and all. */
  #encode(record: EncodedRun, field: AttachingField, found: Found): string {
    const { payload, attachmentBytes } = this.sink.capture;
    this.#attachments?.forget(field);
    if (found.text !== undefined) return found.text;
    const attachments = new PayloadAttachments(field, attachmentBytes, this.#attachments);
    const json = serialize(found.fields, payload, [field], attachments);
    if (attachments.taken !== undefined) {
      this.#attachments ??= new RunAttachments(record, this.sink.capture);
      this.#attachments.keep(field, attachments.taken);
    }
    return json;
  }
}

/** The id of the run that a span becomes. */
export function runIdOf(span: SpanLike): string {
  return idOf(startUsOf(span), span.spanContext());
}

function startUsOf(span: SpanLike): number {
  return hrTimeUs(span.startTime) ?? clock.nowUs();
}

function nameOf(span: SpanLike, mapped: Pick<MappedSpan, 'name' | 'rename'> | undefined): string {
  if (mapped?.name !== undefined) return mapped.name;
  const own = safeText(span.name);
  return own === mapped?.rename?.plain ? mapped.rename.telling : own;
}

/** Generators of ids that applications bring may not keep to hexadecimal. */
function idOf(startUs: number, { traceId, spanId }: SpanContextLike): string {
  const id = spanRunId(startUs, traceId, spanId);
  return isRunId(id) ? id : newRunId(startUs);
}
