import { parentPort, workerData } from 'node:worker_threads';
import { type Request, type Response, sentError } from './thread.ts';
import { CallHandler, type ConnectionOptions } from './worker-calls.ts';

const send = (response: Response): void => parentPort?.postMessage(response);

void serve(workerData as ConnectionOptions);

async function serve(options: ConnectionOptions): Promise<void> {
  try {
    const handler = await CallHandler.open(options, (change) => send({ kind: 'change', change }));
    parentPort?.on('message', (request: Request) => void respond(handler, request));
    send({ kind: 'open' });
  } catch (error) {
    send({ kind: 'failure', error: sentError(error) });
  }
}

async function respond(handler: CallHandler, request: Request): Promise<void> {
  if (request === 'close') {
    await handler.close();
    // The thread ends, because nothing else keeps it alive.
    parentPort?.close();
    return;
  }
  const { id, name, args } = request;
  try {
    send({ kind: 'result', id, value: await handler.call(name, args) });
  } catch (error) {
    send({ kind: 'result', id, error: sentError(error) });
  }
}
