/** Records runs in memory for tests, and provides a matcher and snapshots. @packageDocumentation */
export { type ErrorCode, errorCodes, RunspanError } from './base/errors.ts';
export type { Limits } from './config/limits.ts';
export type { HeldAttachment } from './payload/attachment.ts';
export type { Redaction } from './payload/redaction/redact.ts';
export type { ReplayMode } from './replay/fixture.ts';
export type { Replayed } from './replay/replayed.ts';
export { type ReplayOptions, replay } from './replay/run-replay.ts';
export type { Attachment, RunEvent, RunRecord, RunType } from './run/record.ts';
export type { ThreadOptions } from './run/run-options.ts';
export type { FlushLimit, FlushResult, RunSink } from './run/sink.ts';
export { createPlatform, type Platform, type PlatformOptions } from './testing/create-platform.ts';
export type { AsymmetricMatcher, ExpectedFields, MatcherContext, Tester } from './testing/expected-fields.ts';
export { type ExpectedRun, type MatcherResult, matchers, type RunMatchers } from './testing/matchers.ts';
export type { Assistant, AssistantRun, AssistantThread } from './testing/platform/assistant.ts';
export type { PlatformAnswer, PlatformRequest } from './testing/platform/requests.ts';
export * from './testing/record-runs.ts';
export type { AttachmentFacts, EventFacts, Recorded } from './testing/recorded-run.ts';
export { outlineOf, type RunSnapshot, type SnapshotOptions, snapshotOf } from './testing/snapshot.ts';
