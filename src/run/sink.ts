import type { PayloadRules } from '../payload/limits.ts';
import type { EncodedRun, Project } from './encoded-run.ts';

/** Settings that decide which parts of a run a sink records. */
export interface CapturePolicy {
  readonly project: Project;
  readonly hideInputs: boolean;
  readonly hideOutputs: boolean;
  readonly payload: PayloadRules;
  /** Maximum size in bytes of all attachments of a run. */
  readonly attachmentBytes: number;
  /** Called when the first run of a trace starts. Undefined if every trace is recorded. */
  readonly sampling: SamplingDecision | undefined;
  /** Milliseconds after which a stream that nobody reads counts as abandoned. */
  readonly streamIdleMs: number;
}

/** Describes a trace whose first run is about to start. */
export interface TraceStart {
  readonly traceId: string;
  /** The name and type of the first run, and the name or id of its project. */
  readonly name: string;
  readonly runType: string;
  readonly project: string;
}

/** Whether a trace is recorded. The decision applies to all runs of the trace. */
export type SamplingDecision = (start: TraceStart) => boolean;

/** Time limit of `flush` and `close`, in milliseconds. */
export interface FlushLimit {
  readonly timeoutMs?: number;
}

/** `pending` is the number of runs that were not delivered in time. */
export interface FlushResult {
  readonly ok: boolean;
  readonly pending: number;
}

/**
 * The destination of runs. `configure`, `createExporter` and `recordRuns` return sinks. Pass a sink as the option
 * `exporter`. No method throws.
 */
export interface RunSink {
  /** @internal */
  readonly capture: CapturePolicy;
  /** @internal True if tracing is off and the sink refuses every run. */
  readonly isOff?: true;
  /** @internal Called once when a run starts. Returns false to refuse the run, whose end is then not reported. */
  start(run: EncodedRun): boolean;
  /** @internal Called once when an accepted run has ended and its record is complete. */
  end(run: EncodedRun): void;
  /** @internal Called instead of `start` for a run of a trace that sampling left out. */
  skip(): void;
  /** Waits until every run recorded before the call is delivered or dropped, or until the time limit. Never rejects. */
  flush(limit?: FlushLimit): Promise<FlushResult>;
  /** Flushes and then closes. Later runs are counted as dropped. Never rejects. */
  close(limit?: FlushLimit): Promise<FlushResult>;
}

/** The sink that is used while tracing is off. */
export const noopSink: RunSink = {
  capture: {
    project: 'default',
    hideInputs: true,
    hideOutputs: true,
    payload: { depth: 1, width: 1, nodes: 1, bytes: 1 },
    attachmentBytes: 0,
    sampling: undefined,
    streamIdleMs: 1,
  },
  isOff: true,
  start: () => false,
  end: () => {},
  skip: () => {},
  flush: async () => ({ ok: true, pending: 0 }),
  close: async () => ({ ok: true, pending: 0 }),
};

let createSink: (() => RunSink | undefined) | undefined;
let preload: () => void = () => {};
let installed: { readonly sink: RunSink | undefined } | undefined;
/** Sinks set by `overrideSink`. The last sink is used instead of the installed sink. */
const overrides: RunSink[] = [];

/** Registers the function that creates the sink at the first run. Called when the composition root is loaded. */
export function registerSinkFactory(factory: () => RunSink | undefined): void {
  createSink = factory;
}

/** Registers `load`, which prepares delivery if tracing is on. Called when the composition root is loaded. */
export function registerPreload(load: () => void): void {
  preload = load;
}

/** Prepares delivery before the first request. Called when a program wraps an SDK client, usually at startup. */
export function preloadDelivery(): void {
  preload();
}

/** Returns the sink of new traces, or undefined while tracing is off. */
export function currentSink(): RunSink | undefined {
  if (overrides.length > 0) return overrides.at(-1);
  if (installed === undefined && createSink !== undefined) installed = { sink: createSink() };
  return installed?.sink;
}

/** Sets the sink of new traces. Runs that have started keep their sink. */
export function installSink(sink: RunSink | undefined): void {
  installed = { sink };
}

/** Sends all new traces to this sink until the returned function is called. */
export function overrideSink(sink: RunSink): () => void {
  overrides.push(sink);
  return () => {
    const at = overrides.lastIndexOf(sink);
    if (at >= 0) overrides.splice(at, 1);
  };
}
