/** Test cases for your own implementation of a receiver's store. @packageDocumentation */
export { type ErrorCode, errorCodes, RunspanError } from './base/errors.ts';
export type { Feedback, FeedbackFigures } from './receiver/domain/feedback.ts';
export type * from './receiver/domain/query.ts';
export type {
  AttachmentInfo,
  PayloadField,
  ProjectSummary,
  RunDetails,
  RunOutline,
  RunStatus,
  RunSummary,
  ThreadSummary,
  TraceSummary,
  Usage,
} from './receiver/domain/run-view.ts';
export type * from './receiver/filter/filter.ts';
export { type StoreCase, storeCases } from './receiver/store/conformance/store-cases.ts';
export type {
  ChangeFeed,
  Changes,
  FeedbackStore,
  IngestStore,
  QueryStore,
  Removal,
  RemovalStore,
  RemovalTarget,
  RunFields,
  RunOperation,
  Scope,
  Store,
  StoreChange,
  TokenSecret,
  TokenStore,
} from './receiver/store/store.ts';
export type { Attachment, RunEvent, RunRecord, RunType, UsageMetadata } from './run/record.ts';
