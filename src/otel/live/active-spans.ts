/**
 * The registries of all span processors in this process. The code in `run/` uses them to find the active span and its
 * run.
 */
import { type Context, context, isSpanContextValid, type Span, trace } from '@opentelemetry/api';
import { SUPPRESS_TRACING } from '../../platform/suppress-tracing.ts';
import { type RunContext, SAMPLED } from '../../run/context/context.ts';
import { enteredContext, type SpanSource, SUPPRESSED, sampledBy, setSpanSource } from '../../run/context/current.ts';
import { currentSink, type RunSink } from '../../run/sink.ts';
import { ExtractedRun, extractedFor } from './extracted-run.ts';
import type { SpanEntry, SpanKey, SpanRegistry } from './span-registry.ts';
import { SpanRun } from './span-run.ts';

/** An array, because iterating over a `Set` at every span start is slower. */
let registries: readonly SpanRegistry[] = [];

const source: SpanSource = {
  activeSpan: () => {
    const active = context.active();
    if (active.getValue(SUPPRESS_TRACING) === true) return SUPPRESSED;
    return trace.getSpan(active) ?? extractedFor(active, undefined);
  },
  traceOf: (span) => {
    const ids = span instanceof ExtractedRun ? undefined : (span as Partial<Span>).spanContext?.();
    // Checking the ids is slow. Only spans that are not sampled have invalid ids.
    return ids !== undefined && ((ids.traceFlags & SAMPLED) !== 0 || isSpanContextValid(ids)) ? ids : undefined;
  },
  contextOf: (span) => contextOf(span as Span | ExtractedRun, context.active()),
};

/** Adds a registry. Runs that start inside its spans become children of the spans' runs. */
export function addRegistry(registry: SpanRegistry): void {
  registries = [...registries, registry];
  observeActiveSpan();
}

/** Makes runs follow the sampling decision of the active span. */
export function observeActiveSpan(): void {
  setSpanSource(source);
}

export function detach(registry: SpanRegistry): void {
  registries = registries.filter((other) => other !== registry);
}

export function isRecordedSpan(span: object, sink: RunSink): boolean {
  for (const registry of registries) {
    const entry = registry.get(span);
    if (entry instanceof SpanRun && entry.sink === sink) return true;
  }
  return false;
}

export function recordedRun(span: SpanKey, sink: RunSink): SpanRun | undefined {
  return entriesOf(span).find((entry): entry is SpanRun => entry instanceof SpanRun && entry.sink === sink);
}

export function entriesOf(span: SpanKey): SpanEntry[] {
  return registries.flatMap((registry) => registry.find(span) ?? []);
}

export function runAbove(given: Context): RunContext | undefined {
  const entered = enteredContext();
  const span = trace.getSpan(given) ?? extractedFor(given, undefined);
  if (span === undefined || span === entered?.span) return entered;
  return sampledBy(span, contextOf(span, given) ?? entered);
}

/**
 * Returns whether a span with this parent context was started with `root: true`. For such a span, the SDK copies the
 * active context and removes the active span from the copy.
 */
export function isRoot(given: Context): boolean {
  const active = context.active();
  if (trace.getSpan(given) !== undefined) return false;
  return trace.getSpan(active) !== undefined || (given !== active && isCopy(given, active));
}

/** OpenTelemetry's API can compare contexts only by key. All releases of the API keep the values in this property. */
function isCopy(one: Context, other: Context): boolean {
  const [values, others] = [one, other].map((given) => Reflect.get(given, '_currentContext') as unknown);
  if (!(values instanceof Map && others instanceof Map) || values.size !== others.size) return false;
  return [...values].every(([key, value]) => others.get(key) === value);
}

function contextOf(span: Span | ExtractedRun, within: Context): RunContext | undefined {
  if (span instanceof ExtractedRun) return remoteContextOf(span);
  for (const registry of registries) {
    const found = registry.find(span)?.context;
    if (found !== undefined) return found;
  }
  return remoteContextOf(extractedFor(within, span));
}

function remoteContextOf(extracted: ExtractedRun | undefined): RunContext | undefined {
  const sink = extracted && currentSink();
  return sink && extracted?.contextFor(sink);
}
