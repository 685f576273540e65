/** Records runs in memory for tests, and provides a matcher and snapshots. @packageDocumentation */
export type { WaitingAttachment } from './payload/attachment.ts';
export type { RouteResponse } from './receiver/http/route.ts';
export type { ReplayMode } from './replay/fixture.ts';
export type { Replayed } from './replay/replayed.ts';
export { type ReplayOptions, replay } from './replay/run-replay.ts';
export { runSet, type SetExample, type SetOptions } from './replay/run-set.ts';
export type { AsymmetricMatcher, ExpectedFields, MatcherContext, Tester } from './testing/expected-fields.ts';
export { type ExpectedRun, type MatcherResult, matchers, type RunMatchers } from './testing/matchers.ts';
export type { AssistantFunction, AssistantRun, AssistantThread } from './testing/platform/assistant.ts';
export { createPlatform } from './testing/platform/create-platform.ts';
export type { Platform, PlatformOptions } from './testing/platform/platform-options.ts';
export type { PlatformAnswer, PlatformRequest } from './testing/platform/requests.ts';
export * from './testing/record-runs.ts';
export type { AttachmentFacts, EventFacts, Recorded } from './testing/recorded-run.ts';
export { outlineOf, type RunSnapshot, type SnapshotOptions, snapshotOf } from './testing/snapshot.ts';
