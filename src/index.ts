export type { Log, LogLevel } from './base/diagnostics.ts';
export { type ErrorCode, errorCodes, RunspanError } from './base/errors.ts';
export type { Limits } from './base/limits.ts';
export type { OnDrop } from './export/drop-notice.ts';
export type { ConfigureOptions, Durability, HeaderFields } from './export/settings.ts';
export {
  type FunctionName,
  type MethodName,
  type Traced,
  type TracedDecorator,
  traced,
  traceMethods,
} from './instrument/methods.ts';
export type { ArgumentsOf, CallOptions, OutcomeOf, TraceableOptions, WholeOf } from './instrument/plan.ts';
export { type Traceable, traceable } from './instrument/traceable.ts';
export type { AttachmentChunk, AttachmentContent } from './run/attachment.ts';
export type {
  ChannelMessages,
  DropMessage,
  OutageMessage,
  RecoveryMessage,
  RequestMessage,
} from './run/channels.ts';
export { runIdFrom } from './run/ids.ts';
export {
  type FromHeadersOptions,
  fromHeaders,
  type HeaderField,
  type HeadersLike,
  type RemoteRun,
  toHeaders,
} from './run/propagation.ts';
export type { Attachment, RunEvent, RunRecord, RunType, UsageMetadata } from './run/record.ts';
export { type RedactOptions, redact } from './run/redact.ts';
export type { Redaction } from './run/redaction.ts';
export type { Run, RunChanges } from './run/run.ts';
export type { Fields, RunOptions } from './run/run-options.ts';
export type { Sampler, TraceStart } from './run/sampling.ts';
export { secretPatterns } from './run/secret-patterns.ts';
export type { FlushLimit, FlushResult, RunSink } from './run/sink.ts';
export { currentRun, startRun, withExporter, withRun } from './run/start-run.ts';
export type { Backlog, DeliveryError, DroppedRun, DropReason, Latency, Stats } from './run/stats.ts';
export { configure, createExporter, type Exporter, flush, shutdown, stats, withFlush } from './runspan.ts';
