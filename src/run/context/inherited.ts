import { isOwnWork } from '../../platform/suppress-tracing.ts';
import { withMetadata, withTags } from '../fields.ts';
import { currentSink, type EncodedFields, noopSink, type RunSink } from '../sink.ts';
import { isOff, ownerOf, type RunContext, type RunOwner, rootContext } from './context.ts';

/** Returns the sink of a run in `parent`. `exporter` is that of the run. Undefined if the run is recorded nowhere. */
export function sinkOf(parent: RunContext | undefined, exporter?: RunSink): RunSink | undefined {
  if (isOff(parent)) return undefined;
  const sink = exporter ?? inheritedSink(parent);
  return sink?.isOff === true ? undefined : sink;
}

function inheritedSink(parent: RunContext | undefined): RunSink | undefined {
  if (parent === undefined || isOwnWork()) return currentSink();
  if (parent.exporter !== undefined) return parent.exporter;
  const owner = ownerOf(parent);
  return owner === undefined ? currentSink() : owner.sink;
}

/**
 * Returns the sink of runs below a parent from another process, and of headers for other processes. They lead out of
 * "off", but not out of the library's own callbacks.
 */
export function sinkBeside(context: RunContext | undefined): RunSink | undefined {
  return isOff(context) && context?.exporter !== noopSink ? currentSink() : sinkOf(context);
}

/** Returns the address of the page of the run in `context`. Runs that are not sent have no page. */
export function urlOf(context: RunContext | undefined): string | undefined {
  const { id, traceId, project, sampled, refused, held } = context ?? rootContext;
  const isSent = sampled && !refused && (held === undefined || held.state === 'kept');
  if (id === undefined || traceId === undefined || !isSent) return undefined;
  return sinkOf(context)?.urlOf?.({ id, traceId, project });
}

/**
 * Returns the tags and metadata that a run inherits. Runs inherit nothing from a parent run with a different sink, but
 * keep the fields from `withContext`.
 */
export function inheritedFrom(parent: RunContext | undefined, sink: RunSink | undefined): EncodedFields {
  if (parent === undefined) return rootContext;
  const owner = ownerOf(parent);
  const isInherited = parent.id !== undefined && (owner === undefined || owner.sink === sink);
  const inherited = isInherited ? parent : rootContext;
  const added = isInherited ? parent.added : parent.fields;
  if (added === undefined || sink === undefined) return inherited;
  const { payload } = sink.capture;
  return {
    tags: withTags(inherited.tags, added.tags, payload),
    metadata: added.metadata ? withMetadata(inherited.metadata, added.metadata, payload) : inherited.metadata,
  };
}

/** Returns OpenTelemetry's ids of the parent run, if it is a span. */
export function spanIdsOf(parent: RunContext | undefined): RunOwner['spanIds'] {
  return parent && ownerOf(parent)?.spanIds;
}

const OTEL_IDS = /^\{"trace_id":"([\da-f]{32})","enclosing_span_id":"([\da-f]{16})"\}$/;

/** Returns the JSON text in `metadata.otel` of a run that is below a span, but is no span. Runs below inherit it. */
export function otelIdsBelow({ traceId, spanId }: NonNullable<RunOwner['spanIds']>): string {
  return JSON.stringify({ trace_id: traceId, enclosing_span_id: spanId });
}

/** Returns the ids of the nearest span. Undefined if the run is no span and below none. */
export function enclosingSpanIds(context: RunContext): RunOwner['spanIds'] {
  const own = spanIdsOf(context);
  const json = own === undefined ? context.metadata?.get('otel') : undefined;
  if (json === undefined) return own;
  const [, traceId, spanId] = OTEL_IDS.exec(json) ?? [];
  return traceId && spanId ? { traceId, spanId } : undefined;
}

/**
 * Returns the id that the trace of `parent` has in OpenTelemetry: that of a span, or the digits of our own. Undefined if
 * there is no parent run.
 */
export function otelTraceIdOf(parent: RunContext | undefined): string | undefined {
  if (parent?.traceId === undefined) return undefined;
  return enclosingSpanIds(parent)?.traceId ?? parent.traceId.replaceAll('-', '');
}

/** Returns the owner of the enclosing run, if that run has the same sink. */
export function ownerWith(sink: RunSink, parent: RunContext | undefined): RunOwner | undefined {
  const owner = parent && ownerOf(parent);
  return owner?.sink === sink ? owner : undefined;
}
