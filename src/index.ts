/** Traces functions and blocks of code, and configures how runs are delivered. @packageDocumentation */
export type { Log, LogLevel } from './base/diagnostics.ts';
export { type ErrorCode, errorCodes, RunspanError } from './base/errors.ts';
export type { Limits } from './config/limits.ts';
export type { ConfigureOptions, Durability } from './config/options.ts';
export type { Protocol } from './config/otlp.ts';
export type { HeaderFields } from './config/service.ts';
export type { OnDrop } from './delivery/ledger.ts';
export {
  type FunctionName,
  type MethodName,
  type Traced,
  type TracedDecorator,
  traced,
  traceMethods,
} from './instrument/methods.ts';
export type { ArgumentsOf, OutcomeOf, TraceableOptions, WholeOf, WithOptions } from './instrument/plan.ts';
export { type Traceable, traceable, withTrace } from './instrument/traceable.ts';
export type { AttachmentContent } from './payload/attachment.ts';
export { secretPatterns } from './payload/redaction/patterns.ts';
export { type Redaction, type RedactOptions, redact } from './payload/redaction/redact.ts';
export type { Fields } from './run/fields.ts';
export type { HookedRun, RunChanges, RunHooks } from './run/hooks.ts';
export { runIdFrom } from './run/ids.ts';
export {
  type FromHeadersOptions,
  fromHeaders,
  type HeaderField,
  type HeadersLike,
  type RemoteRun,
  toHeaders,
} from './run/propagation/propagation.ts';
export type { Attachment, RunEvent, RunRecord, RunType, UsageMetadata } from './run/record.ts';
export type { Run } from './run/run.ts';
export type { ContextFields, EndOptions, RunOptions, ThreadOptions, WrapOptions } from './run/run-options.ts';
export type { KeepRule } from './run/sampling/keep.ts';
export type { Sampler } from './run/sampling/sampling.ts';
export type { EndedTrace, FlushLimit, FlushResult, RunSink, TraceStart } from './run/sink.ts';
export { currentRun, startRun, traceUrl, withContext, withExporter, withRun } from './run/start-run.ts';
export type {
  Backlog,
  ChannelMessages,
  DeliveryError,
  DropMessage,
  DroppedRun,
  DropReason,
  Latency,
  OutageMessage,
  RecoveryMessage,
  RequestKind,
  RequestMessage,
  Stats,
} from './run/stats.ts';
export type { Timestamp } from './run/time.ts';
export { configure, createExporter, type Exporter, flush, shutdown, stats, withFlush } from './runspan.ts';
