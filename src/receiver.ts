/** A server that stores runs and displays them on a web page. @packageDocumentation */

export type { PriceTable } from './receiver/domain/cost/price-table.ts';
export {
  addCost,
  type Price,
  PriceList,
  type PriceOptions,
  type Prices,
  type UnpricedRun,
} from './receiver/domain/cost/prices.ts';
export type { Feedback, FeedbackFigures } from './receiver/domain/feedback.ts';
export type { SpanIds } from './receiver/domain/identity.ts';
export type * from './receiver/domain/query/query.ts';
export type { Search } from './receiver/domain/query/search-words.ts';
export type { RunFields, RunOperation } from './receiver/domain/run-message.ts';
export type {
  AttachmentInfo,
  CacheComparison,
  CalledTool,
  CostSource,
  PayloadField,
  ProjectSummary,
  PromptDifference,
  RunDetails,
  RunOutline,
  RunStatus,
  RunSummary,
  StoredRun,
  ThreadSummary,
  ToolMessages,
  ToolOutcome,
  TraceOutcome,
  TraceSummary,
  UnpricedUsage,
  Usage,
  UsageDetails,
} from './receiver/domain/run-view.ts';
export type * from './receiver/filter/filter.ts';
export { ALL_TIMES, type Parsed, parsedQuery, type RunFilter } from './receiver/filter/run-filter.ts';
export type { ReceiverFailure, ReceiverFaults } from './receiver/http/server/faults.ts';
export { createReceiver, type Receiver, type ReceiverOptions } from './receiver/receiver.ts';
export { ClickHouseStore, type ClickHouseStoreOptions } from './receiver/store/clickhouse/clickhouse-store.ts';
export { MemoryStore, type MemoryStoreOptions } from './receiver/store/memory-store.ts';
export type { StoreOwner } from './receiver/store/sqlite/file/file.ts';
export { SqliteStore, type SqliteStoreOptions } from './receiver/store/sqlite/sqlite-store.ts';
export {
  type ChangeFeed,
  DEFAULT_SCOPE,
  type DeletionStore,
  type FeedbackStore,
  type IngestStore,
  type MergedRun,
  type QueryStore,
  type Store,
  type StoreChange,
  StoreError,
  type TokenSecret,
  type TokenStore,
} from './receiver/store/store.ts';
