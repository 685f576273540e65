import { onTestFinished } from 'vitest';
import { createReceiver, type Receiver, type ReceiverOptions } from '#src/receiver.ts';

export async function startReceiver(options?: ReceiverOptions): Promise<Receiver> {
  const receiver = await createReceiver(options);
  onTestFinished(() => receiver.close());
  return receiver;
}
