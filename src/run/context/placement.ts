import { guard } from '../../base/guard.ts';
import type { RunSink } from '../sink.ts';
import { contextOfRoot, isOff, type RunContext, startsTrace } from './context.ts';
import { type FirstCall, requestSource } from './current.ts';
import { sinkOf } from './inherited.ts';

export interface Placement {
  readonly parent: RunContext | undefined;
  /** Undefined if the run is recorded nowhere. */
  readonly sink: RunSink | undefined;
}

interface PlacedOptions extends FirstCall {
  readonly root?: boolean | undefined;
  readonly exporter?: RunSink | undefined;
}

/**
 * Returns the parent and the sink of a run that starts in `around`. The first call of an incoming request starts the run of
 * the request, unless `isRecorded` returns false for the call. With `root`, a run starts a new trace.
 */
export function placement(options: PlacedOptions, around?: RunContext, isRecorded?: () => boolean): Placement {
  const outer = options.root === true ? contextOfRoot(around) : around;
  const sink = sinkIn(options, around, outer);
  const requests = options.root === true || !startsTrace(outer) ? undefined : requestSource();
  if (sink === undefined || requests === undefined || isRecorded?.() === false) return { parent: outer, sink };
  return { parent: guard('request', () => requests.begin(outer, sink, options)) ?? outer, sink };
}

/** With `root`, a run keeps the exporter from an enclosing `withExporter`. */
function sinkIn({ exporter }: PlacedOptions, around?: RunContext, outer?: RunContext): RunSink | undefined {
  if (exporter !== undefined && exporter.over === undefined) return sinkOf(around, exporter);
  const sink = isOff(around) ? undefined : sinkOf(outer, around?.exporter);
  return sink && exporter?.over ? exporter.over(sink) : sink;
}
