import { clock } from '../base/clock.ts';
import { guard } from '../base/guard.ts';
import { safeText } from '../base/text.ts';
import { contextOf, type RunContext, SinkHandle } from '../run/context.ts';
import { dottedOrder } from '../run/dotted-order.ts';
import { type EncodedRun, newRecord } from '../run/encoded-run.ts';
import { shownError } from '../run/error-text.ts';
import { isRunId, newRunId, spanRunId } from '../run/ids.ts';
import { metadataJson, metadataKey, shownName } from '../run/payload.ts';
import { type AttachingField, PayloadAttachments } from '../run/payload-attachments.ts';
import { inheritedFrom } from '../run/run.ts';
import { RunAttachments } from '../run/run-attachments.ts';
import { serializeParsed } from '../run/serialize.ts';
import type { RunSink } from '../run/sink.ts';
import { withTags } from '../run/tags.ts';
import { isoTimestamp } from '../run/timestamp.ts';
import { isCancelledCall } from './cancelled-call.ts';
import { hrTimeUs } from './hr-time.ts';
import { hiddenCarriers, type KnownInputs, type MappedSpan, mapSpan, mapStart } from './mapping.ts';
import { spanError } from './span-error.ts';
import { spanEventsJson, withFirstToken } from './span-events.ts';
import type { SpanContextLike, SpanLike } from './span-like.ts';
import { spanModelCall } from './span-model-call.ts';
import { endedOriginJson, originJson, resourceMetadata } from './span-origin.ts';
import type { SpanEntry } from './span-registry.ts';
import { withVectorEvents } from './vector-events.ts';
import type { Found } from './vocabulary.ts';

/** Where a span starts: below what, by what ids, and with which sink. */
export interface SpanStart {
  readonly ids: SpanContextLike;
  /** The span above it for OpenTelemetry, whether or not that is a run. */
  readonly parentIds: SpanContextLike | undefined;
  /** The run above it. */
  readonly parent: RunContext | undefined;
  readonly sink: RunSink;
  /** For a run without a parent, when its span names none. */
  readonly project: string | undefined;
}

const PLACE = 'reading a span';

/** The run that a span is, from the span's start to its end. The span itself is not held on to. */
export class SpanRun extends SinkHandle implements SpanEntry {
  readonly context: RunContext;
  readonly #startUs: number;
  readonly #origin: string;
  /** Undefined once the run has ended, or when the sink has refused it. */
  #record: EncodedRun | undefined;
  #knownInputs: KnownInputs | undefined;
  #attachments: RunAttachments | undefined;

  constructor(span: SpanLike, { ids, parentIds, parent, sink, project }: SpanStart) {
    super(sink);
    const startUs = startUsOf(span);
    const id = idOf(startUs, ids);
    const refused = parent?.refused ?? false;
    const mapped = refused ? undefined : guard(PLACE, () => mapStart(span.attributes, sink.capture));
    const origin = originJson(ids, parentIds);
    const inherited = inheritedFrom(parent, sink);
    const record = newRecord({
      id,
      traceId: parent?.traceId ?? id,
      dottedOrder: dottedOrder(parent?.dottedOrder, startUs, id),
      parentRunId: parent?.id,
      startTime: isoTimestamp(startUs),
      project: mapped?.project ?? parent?.project ?? project ?? sink.capture.project,
      refused,
      name: shownName(mapped?.name ?? safeText(span.name), sink.capture.payload),
      runType: mapped?.runType ?? 'chain',
      tags: inherited.tags,
      metadata: inherited.metadata,
    });
    this.modelCall = mapped && spanModelCall(span.attributes, mapped.runType);
    this.#startUs = startUs;
    this.#origin = origin;
    if (mapped?.inputs?.payload !== undefined) {
      const { payload, sources, used } = mapped.inputs;
      this.#knownInputs = { sources, used };
      record.inputs = this.#encode(record, 'inputs', payload);
    }
    record.metadata = new Map(inherited.metadata).set('otel', origin);
    const isAccepted = sink.start(record);
    if (isAccepted) this.#record = record;
    // Runs below take over what this one has from above, and not what is told of the span itself.
    this.context = contextOf(record, inherited, isAccepted ? 'kept' : 'refused', undefined, this);
  }

  /** Records the end of the span. Only the first end counts. */
  end(span: SpanLike): void {
    const record = this.#record;
    if (record === undefined) return;
    this.#record = undefined;
    const { capture } = this.sink;
    const { attributes, events } = guard(PLACE, () => withVectorEvents(span)) ?? span;
    const mapped = guard(PLACE, () => mapSpan(attributes, capture, this.#knownInputs));
    this.#knownInputs = undefined;
    const name = mapped?.name ?? safeText(span.name);
    record.name = shownName(name, capture.payload);
    if (mapped !== undefined) guard(PLACE, () => this.#take(record, mapped));
    guard(PLACE, () => {
      const metadata = new Map(record.metadata);
      for (const [key, json] of resourceMetadata(span.resource, capture.payload)) metadata.set(key, json);
      if (isCancelledCall(span)) metadata.set('end_reason', '"cancelled"');
      record.metadata = metadata.set('otel', endedOriginJson(this.#origin, span, name, capture.payload));
    });
    guard(PLACE, () => {
      const error = spanError(span);
      record.error = error && shownError(error, capture.payload.redaction);
      const shown = withFirstToken(events, this.#startUs, mapped?.firstTokenUs);
      record.events = spanEventsJson(shown, this.#startUs, capture.payload, hiddenCarriers(capture));
    });
    record.endTime = isoTimestamp(Math.max(this.#startUs, hrTimeUs(span.endTime) ?? this.#startUs));
    this.#attachments = undefined;
    this.sink.end(record);
  }

  #take(record: EncodedRun, { runType, tags, inputs, outputs, metadata }: MappedSpan): void {
    const { payload } = this.sink.capture;
    record.runType = runType;
    record.tags = withTags(this.context.tags, tags, payload);
    // The sink lets go of inputs that it has delivered; they are told again only when they have changed.
    const changed = inputs?.payload;
    if (changed !== undefined) record.inputs = this.#encode(record, 'inputs', changed);
    if (outputs !== undefined) record.outputs = this.#encode(record, 'outputs', outputs);
    const encoded = new Map(this.context.metadata);
    for (const [key, value] of metadata) encoded.set(metadataKey(key, payload), metadataJson(key, value, payload));
    record.metadata = encoded;
  }

  /** JSON text of a payload that takes the place of the one before, attachments and all. */
  #encode(record: EncodedRun, field: AttachingField, { fields, text }: Found): string {
    const { payload, attachmentBytes } = this.sink.capture;
    this.#attachments?.forget(field);
    const attachments = new PayloadAttachments(field, attachmentBytes, this.#attachments);
    const json = serializeParsed(fields, text, payload, [field], attachments);
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

/** Generators of ids that applications bring may not keep to hexadecimal. */
function idOf(startUs: number, { traceId, spanId }: SpanContextLike): string {
  const id = spanRunId(startUs, traceId, spanId);
  return isRunId(id) ? id : newRunId(startUs);
}
