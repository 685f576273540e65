/** The processors of the process together: what `run/` asks for the active span and its run. */
import { trace } from '@opentelemetry/api';
import { type RunContext, type SpanSource, setSpanSource } from '../run/context.ts';
import type { RunSink } from '../run/sink.ts';
import type { SpanEntry, SpanKey, SpanRegistry } from './span-registry.ts';
import { SpanRun } from './span-run.ts';

const registries = new Set<SpanRegistry>();

/** Those of processors that were shut down last: a batch that is exported after that may have spans of theirs. */
const detached: SpanRegistry[] = [];
const DETACHED_MAX = 8;

const source: SpanSource = {
  activeSpan: () => trace.getActiveSpan(),
  contextOf: (span) => contextOf(span as SpanKey),
};

/** From now on runs that start inside these spans are their children. */
export function attach(registry: SpanRegistry): void {
  registries.add(registry);
  setSpanSource(source);
}

/** From now on they are not. */
export function detach(registry: SpanRegistry): void {
  if (!registries.delete(registry)) return;
  detached.push(registry);
  if (detached.length > DETACHED_MAX) detached.shift();
  if (registries.size === 0) setSpanSource(undefined);
}

/** Whether a processor has made a run of this span in this sink already: a second one would send it twice. */
export function isRecorded(span: object, sink: RunSink): boolean {
  for (const registry of registries) {
    const entry = registry.get(span);
    if (entry instanceof SpanRun && entry.sink === sink) return true;
  }
  return false;
}

/** The run that a processor, perhaps one that was shut down since, has made of this span in this sink. */
export function recordedRun(span: SpanKey, sink: RunSink): SpanRun | undefined {
  for (const registry of [...registries, ...detached]) {
    const entry = registry.find(span);
    if (entry instanceof SpanRun && entry.sink === sink) return entry;
  }
  return undefined;
}

/** What the processors of the process have made of a span, each for itself. */
export function entriesOf(span: SpanKey): SpanEntry[] {
  const entries: SpanEntry[] = [];
  for (const registry of registries) {
    const entry = registry.find(span);
    if (entry !== undefined) entries.push(entry);
  }
  return entries;
}

function contextOf(span: SpanKey): RunContext | undefined {
  for (const registry of registries) {
    const context = registry.find(span)?.context;
    if (context !== undefined) return context;
  }
  return undefined;
}
