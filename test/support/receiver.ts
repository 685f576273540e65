import { onTestFinished } from 'vitest';
import { createReceiver, type Receiver, type ReceiverOptions } from '#src/receiver.ts';

/** Starts a receiver, which is closed when the test has finished. */
export async function startReceiver(options?: ReceiverOptions): Promise<Receiver> {
  const receiver = await createReceiver(options);
  onTestFinished(() => receiver.close());
  return receiver;
}
