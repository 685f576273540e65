export { type ErrorCode, errorCodes, RunspanError } from './base/errors.ts';
export type { ReceiverFailure, ReceiverFaults } from './receiver/faults.ts';
export type { Feedback, FeedbackFigures, FeedbackToken } from './receiver/feedback.ts';
export { MemoryStore, type MemoryStoreOptions } from './receiver/memory-store.ts';
export type { Price, Prices } from './receiver/prices.ts';
export type {
  Figures,
  GroupKey,
  ListQuery,
  Page,
  RunQuery,
  SortKey,
  Statistics,
  StatisticsQuery,
} from './receiver/query.ts';
export { createReceiver, type Receiver, type ReceiverOptions } from './receiver/receiver.ts';
export type {
  AttachmentInfo,
  PayloadField,
  ProjectSummary,
  RunDetails,
  RunOutline,
  RunStatus,
  RunSummary,
  StoredRun,
  TraceSummary,
  Usage,
} from './receiver/run-view.ts';
export type { StoreOwner } from './receiver/sqlite-file.ts';
export { SqliteStore, type SqliteStoreOptions } from './receiver/sqlite-store.ts';
export type { RunFields, RunOperation, Store, StoreChange } from './receiver/store.ts';
export type { Attachment, RunEvent, RunRecord, RunType, UsageMetadata } from './run/record.ts';
