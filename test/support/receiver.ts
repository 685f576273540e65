import { onTestFinished } from 'vitest';
import {
  createReceiver,
  DEFAULT_SCOPE,
  MemoryStore,
  type Receiver,
  type ReceiverOptions,
  type RunOperation,
} from '#src/receiver.ts';

export async function startReceiver(options?: ReceiverOptions): Promise<Receiver> {
  const receiver = await createReceiver(options);
  onTestFinished(() => receiver.close());
  return receiver;
}

/** Starts a receiver that has stored these runs. */
export async function startFilled(operations: readonly RunOperation[]): Promise<{ store: MemoryStore; url: string }> {
  const store = new MemoryStore();
  await store.apply(DEFAULT_SCOPE, operations);
  return { store, url: (await startReceiver({ store })).url };
}
