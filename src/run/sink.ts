import { shared } from '../base/shared.ts';
import type { RunsEndpoint } from '../config/runs-endpoints.ts';
import type { AttachmentPolicy } from '../payload/attachment.ts';
import { isOwnWork } from '../platform/suppress-tracing.ts';
import type { EncodedRun, HeldTrace, PayloadTexts, Project } from './encoded-run.ts';
import type { RunHooks } from './hooks.ts';
import type { RunRecord } from './record.ts';
import type { Stats } from './stats.ts';

/** Tags and metadata of a run. Metadata values are JSON text. */
export interface EncodedFields {
  readonly tags: readonly string[] | undefined;
  readonly metadata: ReadonlyMap<string, string> | undefined;
}

/** The sink settings that determine which parts of a run are recorded. */
export interface CapturePolicy extends AttachmentPolicy {
  readonly project: Project;
  readonly hideInputs: boolean;
  readonly hideOutputs: boolean;
  /** Finds attributes of spans that the application says contain no content. They are recorded beside hidden payloads. */
  readonly isKept?: ((name: string) => boolean) | undefined;
  /** Whether headers for other processes contain no metadata. */
  readonly hidesMetadata?: boolean;
  /** Decides which traces are recorded. Undefined if every trace is recorded. */
  readonly sampling?: SamplingDecision | undefined;
  /** Selects the traces that are sent although the sample rate drops them. */
  readonly keep?: KeepRules | undefined;
  /** Replaces `STREAM_IDLE_MS` in tests. */
  readonly streamIdleMs?: number;
  readonly hooks?: RunHooks | undefined;
  /** Origins whose requests get the current run as headers, besides loopback under `runspan dev`. */
  readonly propagateTo?: ReadonlySet<string> | undefined;
  /** The services to which all runs are sent, if there are several, and the options of their exporters. */
  readonly replication?: { readonly endpoints: readonly RunsEndpoint[]; readonly options: object } | undefined;
}

/** Longest wait for the next read of a traced result, or for the end of a span whose call has ended, in milliseconds. */
export const STREAM_IDLE_MS = 900_000;

/** Has the settings that determine which parts of a run are recorded. */
export interface Capturing {
  readonly capture: CapturePolicy;
  /** @internal Holds a trace that a sample rate drops. NaN is an unknown rate. Undefined if `keep` is not set. */
  readonly hold?: ((rate: number) => HeldTrace) | undefined;
}

/** Describes a trace before its first run starts. Passed to samplers. */
export interface TraceStart {
  /** OpenTelemetry's trace id if the trace starts with a span or inside a span, otherwise the id of the first run. */
  readonly traceId: string;
  readonly name: string;
  readonly runType: string;
  readonly project: string;
}

/** Returns true to record a trace, false if the sampler leaves it out, or the sample rate that drops it. */
export type SamplingDecision = (start: TraceStart) => boolean | number;

/** A trace whose first run in this process has ended, or that can be held no longer. Other runs may be open. */
export interface EndedTrace {
  readonly traceId: string;
  /** Name of the first run of the trace in this process. */
  readonly name: string;
  /** Duration of the first run, in milliseconds. If the run is still open, the time since the call that started it. */
  readonly durationMs: number;
  /** Copies of the runs in start order. Open runs have no `end_time`. */
  readonly runs: readonly RunRecord[];
}

/** Which traces are kept, by the outcome of their runs. */
export interface KeepRules {
  readonly onError: boolean;
  /** Kept if the first run takes longer, in milliseconds. Infinity if the duration does not matter. */
  readonly slowMs: number;
  readonly functions: readonly ((trace: EndedTrace) => boolean)[];
}

/** What identifies the page of a run. */
export interface RunPlace {
  readonly id: string;
  readonly traceId: string;
  readonly project: Project | undefined;
}

/** Options for a flush. */
export interface FlushLimit {
  /** Maximum time to wait for the flush, in milliseconds. */
  readonly timeoutMs?: number;
}

/** The result of a flush. */
export interface FlushResult {
  /** Whether every run was delivered or dropped before the timeout. */
  readonly ok: boolean;
  /** Number of runs that were neither delivered nor dropped before the timeout. */
  readonly pending: number;
}

export async function flushed(flushes: readonly Promise<FlushResult>[]): Promise<FlushResult> {
  const results = await Promise.all(flushes);
  return { ok: results.every(({ ok }) => ok), pending: results.reduce((sum, { pending }) => sum + pending, 0) };
}

/**
 * The destination for runs, returned by `configure`, `createExporter` and `recordRuns`. Pass a sink as the `exporter`
 * option. No method throws.
 */
export interface RunSink {
  /** @internal */
  readonly capture: CapturePolicy;
  /** @internal True if tracing is off, so that the sink refuses every run. */
  readonly isOff?: true;
  /**
   * @internal Called once when a run starts. Returns false to refuse the run. For a refused run, `end` is not called.
   */
  start(run: EncodedRun): boolean;
  /** @internal Takes runs of spans. Undefined if each run needs an `EncodedRun` from its start. */
  readonly light?: LightSink | undefined;
  /** @internal Called once when an accepted run has ended and all its data is recorded. */
  end(run: EncodedRun): void;
  /** @internal Called instead of `start` for runs in a trace that sampling left out. */
  skip(): void;
  /** @internal Holds a trace that a sample rate drops. Undefined if `keep` is not set. */
  readonly hold?: Capturing['hold'];
  /** @internal Returns the sink to use instead of this one. `sink` is the one of a run without an `exporter` option. */
  over?(sink: RunSink): RunSink;
  /** @internal Returns the address of a run's page, if the service has one. */
  urlOf?(run: RunPlace): string | undefined;
  /**
   * Waits until all runs recorded before this call are delivered or dropped, or until `timeoutMs` has passed. Never
   * rejects.
   */
  flush(limit?: FlushLimit): Promise<FlushResult>;
  /** @internal Returns the counters of an exporter. */
  stats?(): Stats;
  /** Flushes and then closes the sink. Runs that start after this call are dropped. Never rejects. */
  close(limit?: FlushLimit): Promise<FlushResult>;
}

/** A run that has no `EncodedRun`. Most runs of spans end before something needs one. */
export interface LightRun {
  readonly parentRunId: string | undefined;
  /** Monotonic time of the start, in milliseconds. */
  readonly startedAtMs: number;
  /** Whether the run is open, and has no `EncodedRun`. */
  readonly isLight: boolean;
  /** Makes an `EncodedRun` of it, and passes it to `begun`. Does nothing if the run is not light. */
  begin(): void;
}

/** A light run that has ended, as JSON texts. */
export interface EndedTexts extends PayloadTexts {
  readonly id: string;
  readonly startedAtMs: number;
  /** The run without its payloads. */
  readonly main: string;
}

/** The part of a sink that takes light runs. */
export interface LightSink {
  /** Called instead of the sink's `start`. Returns false if the run must be passed to that. */
  start(run: LightRun): boolean;
  /** Called instead of the sink's `start` for a run that is no longer light. */
  begun(run: LightRun, record: EncodedRun): void;
  /** Called instead of the sink's `end` for a run that is still light. */
  end(run: EndedTexts): void;
}

/** The sink that is used while tracing is off. */
export const noopSink: RunSink = shared('noopSink', () => ({
  capture: {
    project: 'default',
    hideInputs: true,
    hideOutputs: true,
    payload: { depth: 1, width: 1, nodes: 1, bytes: 1 },
    attachmentBytes: 0,
  },
  isOff: true,
  start: () => false,
  end: () => {},
  skip: () => {},
  flush: async () => ({ ok: true, pending: 0 }),
  close: async () => ({ ok: true, pending: 0 }),
}));

interface SinkState {
  create: (() => RunSink | undefined) | undefined;
  preload: () => void;
  hasExporters: () => boolean;
  installed: { readonly sink: RunSink | undefined } | undefined;
  replicate: (sink: RunSink) => RunSink;
  readonly overrides: RunSink[];
}

const state: SinkState = shared('sink', () => ({
  create: undefined,
  preload: () => {},
  hasExporters: () => false,
  installed: undefined,
  replicate: (sink) => sink,
  overrides: [],
}));

export function registerSinkFactory(factory: () => RunSink | undefined, hasExporters: () => boolean): void {
  state.create = factory;
  state.hasExporters = hasExporters;
}

export function registerPreload(load: () => void): void {
  state.preload = load;
}

/** Loads the delivery code early, when a program wraps an SDK client. */
export function preloadDelivery(): void {
  state.preload();
}

/**
 * Returns the sink for new traces. Returns undefined while tracing is off and during the library's own work, which may
 * be to create this sink.
 */
export function currentSink(): RunSink | undefined {
  if (isOwnWork()) return undefined;
  if (state.overrides.length > 0) return state.overrides.at(-1);
  if (state.installed === undefined && state.create !== undefined) installSink(state.create());
  return state.installed?.sink;
}

/** Whether a run outside of every context may be recorded, with or without an `exporter` of its own. */
export function mayRecord(): boolean {
  return currentSink() !== undefined || state.hasExporters();
}

/** Sets the sink for new traces. Runs that have already started keep their sink. */
export function installSink(sink: RunSink | undefined): void {
  state.installed = { sink: sink && replicated(sink) };
}

/** Returns a sink that passes the runs to all services of the environment, or the sink itself. */
export function replicated(sink: RunSink): RunSink {
  return state.replicate(sink);
}

/** Sets what is installed instead of a sink, for example a sink that passes the runs to several exporters. */
export function registerReplication(replicate: (sink: RunSink) => RunSink): void {
  state.replicate = replicate;
  if (state.installed !== undefined) installSink(state.installed.sink);
}

export function overrideSink(sink: RunSink): () => void {
  const { overrides } = state;
  overrides.push(sink);
  return () => {
    const at = overrides.lastIndexOf(sink);
    if (at >= 0) overrides.splice(at, 1);
  };
}
