import type { PayloadRules } from '../payload/limits.ts';
import type { EncodedRun, Project } from './encoded-run.ts';
import type { SamplingDecision } from './sampling.ts';

/** What a sink wants captured of each run. */
export interface CapturePolicy {
  readonly project: Project;
  readonly hideInputs: boolean;
  readonly hideOutputs: boolean;
  readonly payload: PayloadRules;
  /** Bytes of all attachments of a run. */
  readonly attachmentBytes: number;
  /** Asked once per trace, when its first run starts; undefined when every trace is recorded. */
  readonly sampling: SamplingDecision | undefined;
  /** Time after which a result that is no longer read counts as abandoned. */
  readonly streamIdleMs: number;
}

/** How long `flush` and `close` may take, in milliseconds. */
export interface FlushLimit {
  readonly timeoutMs?: number;
}

/** `pending` counts the runs that were not delivered in time. */
export interface FlushResult {
  readonly ok: boolean;
  readonly pending: number;
}

/**
 * Where runs go: what `configure`, `createExporter` and `recordRuns` give as `exporter`. The call path knows this
 * interface and never what stands behind it. None of it throws.
 */
export interface RunSink {
  /** @internal */
  readonly capture: CapturePolicy;
  /** @internal It refuses every run: tracing is off. */
  readonly isOff?: true;
  /** @internal Called once when a run starts. False refuses it: the sink has counted it, and is not told of its end. */
  start(run: EncodedRun): boolean;
  /** @internal Called when an accepted run has ended but its record is not complete. `end` follows, and a flush waits for it. */
  ending?(run: EncodedRun): void;
  /** @internal Called once when an accepted run has ended; its fields of the end are filled in. */
  end(run: EncodedRun): void;
  /** @internal Called in the place of `start` for a run whose trace sampling has left out. */
  skip(): void;
  /** Waits until everything recorded before the call is delivered or given up, or the limit is over. Never rejects. */
  flush(limit?: FlushLimit): Promise<FlushResult>;
  /** Flushes, then takes no more: later runs are counted as dropped. Never rejects. */
  close(limit?: FlushLimit): Promise<FlushResult>;
}

let build: (() => RunSink | undefined) | undefined;
let preload: () => void = () => {};
let installed: { readonly sink: RunSink | undefined } | undefined;
/** Sinks that stand in for the installed one, the latest last. */
const standIns: RunSink[] = [];

/** Called by the composition root when it is loaded: `factory` is asked for the sink at the first run. */
export function registerSinkFactory(factory: () => RunSink | undefined): void {
  build = factory;
}

/** Registers `load`, which prepares delivery if tracing is on. Called when the composition root is loaded. */
export function registerPreload(load: () => void): void {
  preload = load;
}

/**
 * Prepares delivery ahead of the first request. The SDK wrappers call this function, and programs usually call the
 * wrappers at startup.
 */
export function preloadDelivery(): void {
  preload();
}

/** Where runs go now; undefined while tracing is off. */
export function currentSink(): RunSink | undefined {
  const standIn = standIns.at(-1);
  if (standIn !== undefined) return standIn;
  if (installed === undefined && build !== undefined) installed = { sink: build() };
  return installed?.sink;
}

/** Puts a sink, or none, in the place of the present one. Runs that have begun stay with the sink they began with. */
export function installSink(sink: RunSink | undefined): void {
  installed = { sink };
}

/** Lets a sink take all runs, whatever is installed, until the function given back is called. */
export function standIn(sink: RunSink): () => void {
  standIns.push(sink);
  return () => {
    const at = standIns.lastIndexOf(sink);
    if (at >= 0) standIns.splice(at, 1);
  };
}
