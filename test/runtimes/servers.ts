import { onTestFinished } from 'vitest';
import { createReceiver, type Receiver } from '#src/receiver.ts';
import { startOpenAiServer } from '../support/openai-server.ts';

export async function startServers(): Promise<{ readonly receiver: Receiver; readonly modelUrl: string }> {
  const [receiver, model] = await Promise.all([createReceiver({ strict: true }), startOpenAiServer()]);
  onTestFinished(async () => void (await Promise.all([receiver.close(), model.close()])));
  return { receiver, modelUrl: model.url };
}
