import { shared } from '../base/shared.ts';
import type { PayloadRules } from '../payload/limits.ts';
import type { EncodedRun, Project } from './encoded-run.ts';
import type { RunHooks } from './run-hooks.ts';

/** The settings of a sink that decide which parts of a run are recorded. */
export interface CapturePolicy {
  readonly project: Project;
  readonly hideInputs: boolean;
  readonly hideOutputs: boolean;
  readonly payload: PayloadRules;
  /** Maximum total bytes of the attachments of a run. */
  readonly attachmentBytes: number;
  /** The function that makes sampling decisions, or undefined if every trace is recorded. */
  readonly sampling: SamplingDecision | undefined;
  /** Milliseconds without a read after which a stream is abandoned. */
  readonly streamIdleMs: number;
  /** The hooks of all runs, or undefined if there are none. */
  readonly hooks?: RunHooks | undefined;
}

/** Describes a trace to a sampler before the first run starts. */
export interface TraceStart {
  readonly traceId: string;
  /** The name of the first run. */
  readonly name: string;
  /** The type of the first run. */
  readonly runType: string;
  /** The name or the id of the project. */
  readonly project: string;
}

/** Decides whether a trace is recorded. Called when the first run of the trace starts. */
export type SamplingDecision = (start: TraceStart) => boolean;

/** Limits the time of a flush. */
export interface FlushLimit {
  /** Maximum milliseconds to wait. */
  readonly timeoutMs?: number;
}

/** The result of a flush. */
export interface FlushResult {
  /** Whether every run was delivered or dropped in time. */
  readonly ok: boolean;
  /** Number of runs that were not delivered in time. */
  readonly pending: number;
}

/**
 * The destination of runs. `configure`, `createExporter` and `recordRuns` return a sink, which can be passed as the
 * option `exporter`. No method throws.
 */
export interface RunSink {
  /** @internal */
  readonly capture: CapturePolicy;
  /** @internal True if tracing is off and the sink refuses every run. */
  readonly isOff?: true;
  /**
   * @internal Called once when a run starts. Returns false to refuse the run. `end` is not called for a refused run.
   */
  start(run: EncodedRun): boolean;
  /** @internal Called once when an accepted run has ended and its record is complete. */
  end(run: EncodedRun): void;
  /**
   * @internal Called instead of `start` for each run of a trace that sampling left out.
   */
  skip(): void;
  /** Waits for at most `timeoutMs` until every run recorded before the call is delivered or dropped. Never rejects. */
  flush(limit?: FlushLimit): Promise<FlushResult>;
  /** Flushes and then closes the sink. Runs that start after the call are counted as dropped. Never rejects. */
  close(limit?: FlushLimit): Promise<FlushResult>;
}

/** The sink while tracing is off. */
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

interface SinkState {
  create: (() => RunSink | undefined) | undefined;
  preload: () => void;
  installed: { readonly sink: RunSink | undefined } | undefined;
  readonly overrides: RunSink[];
}

const state: SinkState = shared('sink', () => ({
  create: undefined,
  preload: () => {},
  installed: undefined,
  overrides: [],
}));

export function registerSinkFactory(factory: () => RunSink | undefined): void {
  state.create = factory;
}

export function registerPreload(load: () => void): void {
  state.preload = load;
}

/** Loads the delivery code in advance. Called when a program wraps an SDK client, usually at startup. */
export function preloadDelivery(): void {
  state.preload();
}

/** Returns the sink of new traces, or undefined while tracing is off. */
export function currentSink(): RunSink | undefined {
  if (state.overrides.length > 0) return state.overrides.at(-1);
  if (state.installed === undefined && state.create !== undefined) state.installed = { sink: state.create() };
  return state.installed?.sink;
}

/** Sets the sink of new traces. A run that has already started keeps its sink. */
export function installSink(sink: RunSink | undefined): void {
  state.installed = { sink };
}

export function overrideSink(sink: RunSink): () => void {
  const { overrides } = state;
  overrides.push(sink);
  return () => {
    const at = overrides.lastIndexOf(sink);
    if (at >= 0) overrides.splice(at, 1);
  };
}
