import { guard } from '../../base/guard.ts';
import { shared } from '../../base/shared.ts';
import type { RecordedCall } from '../calls/calls.ts';
import type { HeldTrace, Project } from '../encoded-run.ts';
import type { ContextFields, Hiding } from '../run-options.ts';
import { noopSink, type RunSink } from '../sink.ts';

/**
 * Determines the parent of new runs and the fields that new runs inherit. A context is a plain frozen object. All
 * copies of the package in a process share contexts, so runs from different copies form one tree.
 */
export interface RunContext {
  /**
   * The id of the parent run. Undefined if the context only selects an exporter. A run in such a context starts a new
   * trace.
   */
  readonly id: string | undefined;
  readonly traceId: string | undefined;
  readonly dottedOrder: string | undefined;
  readonly project: Project | undefined;
  readonly tags: readonly string[] | undefined;
  /** Metadata values are JSON text. */
  readonly metadata: ReadonlyMap<string, string> | undefined;
  /** Fields from `withContext`. A run that inherits nothing from a parent run records all of these fields. */
  readonly fields: ContextFields | undefined;
  /** The part of `fields` that `tags` and `metadata` do not contain yet. */
  readonly added: ContextFields | undefined;
  /** Whether the sink refused the parent run. The sink also refuses all runs below a refused run. */
  readonly refused: boolean;
  readonly sampled: boolean;
  /** The trace of the run, if this process holds it. */
  readonly held?: HeldTrace | undefined;
  /** The rate by which the caller drops the trace, if it holds its part. NaN if the rate is not known. */
  readonly heldRate?: number | undefined;
  /** The sink for nested runs. If undefined, nested runs use the parent's sink, `owner.sink`. */
  readonly exporter: RunSink | undefined;
  /** The OpenTelemetry span that was active when this context became current. */
  readonly span: object | undefined;
  /** The run id of the framework step that was active when this context became current. */
  readonly step: string | undefined;
  /** Payloads that calls below do not record, because the source of a call above was asked not to record them. */
  readonly hiding?: Hiding | undefined;
  /** The parent's `RunOwner`. Ignored if another version of the package created the owner. */
  readonly owner: object | undefined;
}

/** Identifies this version of the package, because a process may load several versions. */
export const PACKAGE_COPY: object = shared('packageCopy', () => Object.freeze({}));

/** The object that records a run, for example a `Run` or an OpenTelemetry span. */
export interface RunOwner {
  readonly packageCopy: object;
  readonly sink: RunSink | undefined;
  /** The call that this run records. Undefined if the run has ended or records no call. */
  readonly call: Pick<RecordedCall, 'type' | 'source'> | undefined;
  /** OpenTelemetry's ids of the run, if it is a span or belongs to a caller's trace. */
  readonly spanIds?: Omit<SpanIds, 'traceFlags'> | undefined;
  /** How the run below that has started or ended last was stopped, if it was. */
  stoppedBy?: 'abort' | 'timeout' | undefined;
  /** Called when a record of a call has started inside the open run. */
  callStarted?(call: RecordedCall): void;
  /** Called when a record of a call has ended inside the run. */
  callEnded?(call: RecordedCall): void;
}

/** A run is `off` if it has no sink. */
export type RunStatus = 'kept' | 'refused' | 'sampledOut' | 'off';

/**
 * Returns the context for a run that another process records. Nested runs are sent to `sink`. `spanIds` are the caller's
 * ids in OpenTelemetry.
 */
export function remoteContext(fields: Partial<RunContext>, sink: RunSink, spanIds?: RunOwner['spanIds']): RunContext {
  const owner: RunOwner = { packageCopy: PACKAGE_COPY, sink, call: undefined, spanIds };
  // The span is left out, because its attributes would stay in memory. It is set when the context becomes current.
  return Object.freeze({ ...rootContext, ...fields, span: undefined, owner });
}

/** Returns a copy of `context` that sends nested runs to `exporter`. Below "off", the context stays off. */
export function contextTo(exporter: RunSink, context: RunContext | undefined): RunContext {
  if (exporter.isOff === true) return OFF;
  return context !== undefined && isOff(context) ? context : Object.freeze({ ...(context ?? rootContext), exporter });
}

export const rootContext: RunContext = {
  id: undefined,
  traceId: undefined,
  dottedOrder: undefined,
  project: undefined,
  tags: undefined,
  metadata: undefined,
  fields: undefined,
  added: undefined,
  refused: false,
  sampled: true,
  exporter: undefined,
  span: undefined,
  step: undefined,
  hiding: undefined,
  owner: undefined,
};

/** The sink of the contexts that are off. A sink of its own, so that headers tell other programs that they are off. */
export const offSink: RunSink = { ...noopSink };

/**
 * The context below a call that is off, for example with `enabled: false`. Nothing is recorded in it, also not with an
 * `exporter` option. Only an explicit parent run leads out of it.
 */
export const OFF: RunContext = Object.freeze({ ...rootContext, exporter: offSink, sampled: false });

/**
 * Whether a context is off. Contexts that sampling has left out are not off: they count as `sampledOut`, and a run with
 * `root: true` gets a decision of its own. In both, `sampled` is false, and nothing is recorded.
 */
export function isOff(context: RunContext | undefined): boolean {
  return context?.sampled === false && context.exporter?.isOff === true;
}

/** Returns a copy of `context` in which new runs also record `fields`. */
export function contextWith(fields: ContextFields, context: RunContext = rootContext): RunContext {
  return Object.freeze({ ...context, fields: joined(context.fields, fields), added: joined(context.added, fields) });
}

function joined(one: ContextFields | undefined, other: ContextFields): ContextFields {
  return {
    tags: one?.tags && other.tags ? [...one.tags, ...other.tags] : (other.tags ?? one?.tags),
    metadata: (other.metadata && guard('metadata', () => ({ ...one?.metadata, ...other.metadata }))) ?? one?.metadata,
  };
}

/** Returns the context for a run that starts a new trace. It keeps the fields from `withContext`, and what is hidden. */
export function contextOfRoot(around: RunContext | undefined): RunContext | undefined {
  if (isOff(around)) return around;
  const { fields, hiding } = around ?? rootContext;
  const outer = fields && contextWith(fields);
  return hiding === undefined ? outer : Object.freeze({ ...(outer ?? rootContext), hiding });
}

/** Returns the exporter and the fields of a context, without its run. */
export function outsideOfRuns(context: RunContext | undefined): RunContext | undefined {
  const outer = contextOfRoot(context);
  return context?.exporter === undefined ? outer : contextTo(context.exporter, outer);
}

export function ownerOf(context: RunContext): RunOwner | undefined {
  const owner = context.owner as Partial<RunOwner> | undefined;
  return owner?.packageCopy === PACKAGE_COPY ? (owner as RunOwner) : undefined;
}

/** Returns the sample rate that drops a held trace. Undefined if the trace is not held. */
export function heldRateOf(context: RunContext | undefined): number | undefined {
  return context?.held?.rate ?? context?.heldRate;
}

export const SAMPLED = 1;

export interface SpanIds {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

/** Whether the first run in a context starts a trace that may be recorded. */
export function startsTrace(context: RunContext | undefined): boolean {
  return context?.id === undefined && context?.sampled !== false;
}

/** Returns a context in which the first run starts a trace that is left out. */
export function leftOutContext(context: RunContext | undefined): RunContext {
  return { ...(context ?? rootContext), id: undefined, traceId: undefined, dottedOrder: undefined, sampled: false };
}

/** The context of the library's own callbacks. Unlike "off", it says nothing to other programs. */
export const untracedContext: RunContext = Object.freeze({ ...OFF, exporter: noopSink });
