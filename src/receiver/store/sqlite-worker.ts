import { parentPort, workerData } from 'node:worker_threads';
import { Desk, type DeskOptions } from './sqlite-desk.ts';
import { type Asked, failureOf, type Told } from './sqlite-link.ts';

// What a thread runs that has the file of a store open: it answers what the store on the main thread asks.
const tell = (told: Told): void => parentPort?.postMessage(told);

void serve(workerData as DeskOptions);

async function serve(options: DeskOptions): Promise<void> {
  try {
    const desk = await Desk.open(options, (change) => tell({ kind: 'change', change }));
    parentPort?.on('message', (asked: Asked) => void (asked === 'close' ? end(desk) : answer(desk, asked)));
    tell({ kind: 'open' });
  } catch (error) {
    tell({ kind: 'failure', failure: failureOf(error) });
  }
}

async function answer(desk: Desk, { id, name, args }: Exclude<Asked, 'close'>): Promise<void> {
  try {
    tell({ kind: 'answer', id, value: await desk.answer(name, args) });
  } catch (error) {
    tell({ kind: 'answer', id, failure: failureOf(error) });
  }
}

/** Nothing is left that would keep the thread, and so it ends. */
async function end(desk: Desk): Promise<void> {
  await desk.close();
  parentPort?.close();
}
