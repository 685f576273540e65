export type { ReceiverFailure, ReceiverFaults } from './receiver/faults.ts';
export { MemoryStore, type MemoryStoreOptions } from './receiver/memory-store.ts';
export { createReceiver, type Receiver, type ReceiverOptions } from './receiver/receiver.ts';
export type {
  AttachmentInfo,
  RunFields,
  RunOperation,
  RunQuery,
  Store,
  StoreChange,
  StoredRun,
} from './receiver/store.ts';
export type { Attachment, RunEvent, RunRecord, RunType } from './run/record.ts';
