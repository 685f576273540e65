export { type ErrorCode, errorCodes, RunspanError } from './base/errors.ts';
export type { ReceiverFailure, ReceiverFaults } from './receiver/faults.ts';
export type { Feedback, FeedbackFigures, FeedbackToken } from './receiver/feedback/feedback.ts';
export type {
  Figures,
  GroupKey,
  ListQuery,
  Page,
  RunQuery,
  SortKey,
  Statistics,
  StatisticsQuery,
} from './receiver/query/query.ts';
export { createReceiver, type Receiver, type ReceiverOptions } from './receiver/receiver.ts';
export { MemoryStore, type MemoryStoreOptions } from './receiver/store/memory-store.ts';
export type { Price, Prices } from './receiver/store/prices.ts';
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
} from './receiver/store/run-view.ts';
export type { StoreOwner } from './receiver/store/sqlite-file.ts';
export { SqliteStore, type SqliteStoreOptions } from './receiver/store/sqlite-store.ts';
export type { RunFields, RunOperation, Store, StoreChange } from './receiver/store/store.ts';
export type { Attachment, RunEvent, RunRecord, RunType, UsageMetadata } from './run/record.ts';
