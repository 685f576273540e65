export { type ErrorCode, errorCodes, RunspanError } from './base/errors.ts';
export type { Limits } from './base/limits.ts';
export type { HeldAttachment } from './payload/attachment.ts';
export type { Redaction } from './payload/redact.ts';
export type { Attachment, RunEvent, RunRecord, RunType } from './run/record.ts';
export type { FlushLimit, FlushResult, RunSink } from './run/sink.ts';
export type { AsymmetricMatcher, MatcherContext, MatcherResult, Tester } from './testing/comparison.ts';
export type { ExpectedFields } from './testing/expected-fields.ts';
export type { ExpectedRun } from './testing/expected-run.ts';
export type { ExpectedNode, ExpectedTrace, TraceMatchOptions } from './testing/expected-trace.ts';
export { matchers, type RunMatchers } from './testing/matchers.ts';
export { outlineOf } from './testing/outline.ts';
export {
  type CaptureLimits,
  type RecordedRun,
  type RecordOptions,
  type RunRecorder,
  recordRuns,
} from './testing/record-runs.ts';
export type { Recorded } from './testing/recorded.ts';
export type { AttachmentFacts, EventFacts } from './testing/run-facts.ts';
export { type RunSnapshot, type SnapshotOptions, snapshotOf } from './testing/snapshot.ts';
