/** The processors of the process together: what `run/` asks for the active span and its run. */
import { trace } from '@opentelemetry/api';
import { type RunContext, type SpanSource, setSpanSource } from '../run/context.ts';
import type { RunSink } from '../run/sink.ts';
import type { SpanEntry, SpanKey, SpanRegistry } from './span-registry.ts';
import { SpanRun } from './span-run.ts';

const registries = new Set<SpanRegistry>();

const source: SpanSource = {
  activeSpan: () => trace.getActiveSpan(),
  contextOf: (span) => contextOf(span as SpanKey),
};

/** From now on runs that start inside these spans are their children. */
export function attach(registry: SpanRegistry): void {
  registries.add(registry);
  setSpanSource(source);
}

export function detach(registry: SpanRegistry): void {
  registries.delete(registry);
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
    const entry = registry.find(span);
    if (entry !== undefined) return entry.context;
  }
  return undefined;
}
