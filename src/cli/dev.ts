import { type EnvironmentName, env, environmentWith } from '../base/env.ts';
import { MemoryStore } from '../receiver/memory-store.ts';
import { createReceiver } from '../receiver/receiver.ts';
import type { Invocation } from './arguments.ts';
import { type Ending, runChild } from './child.ts';
import { quiet } from './quiet.ts';
import { treeOptionsFor } from './terminal.ts';
import { TraceWatch } from './trace-watch.ts';
import { drawTree } from './tree.ts';

/** Ends of a receiver that runs by itself. */
const STOPPING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** What turns the incumbent's package on, each by itself. */
const TRACING_OF_LANGSMITH: readonly EnvironmentName[] = [
  'LANGSMITH_TRACING',
  'LANGSMITH_TRACING_V2',
  'LANGCHAIN_TRACING',
  'LANGCHAIN_TRACING_V2',
];

/**
 * Runs a receiver beside a command, or by itself until it is told to stop, and draws what arrives. Rejects with a
 * RunspanError when the receiver cannot listen.
 */
export async function dev({ port, command }: Extract<Invocation, { kind: 'dev' }>): Promise<Ending> {
  const store = new MemoryStore();
  const receiver = await createReceiver({ port, store });
  const watch = new TraceWatch({
    store,
    draw: (runs) => drawTree(runs, treeOptionsFor(process.stdout)),
    show: (text) => process.stdout.write(`\n${text}\n`),
  });
  process.stdout.write(`runspan listens on ${receiver.url}\n`);
  if (command === undefined) {
    process.stdout.write(`To see an application here, start it with RUNSPAN_ENDPOINT=${receiver.url}\n`);
  }

  const ending = await (command === undefined ? stopped() : runChild(command, environmentFor(receiver.url)));

  if (ending.kind !== 'not started' && command !== undefined) await quiet(store);
  await receiver.close();
  await watch.end();
  return ending;
}

/**
 * What a command is started with: the same for programs that use runspan and for those that use the incumbent's package, unless
 * that has been turned off. Beside a handler of ours its tracer tells of each step once more.
 */
export function environmentFor(url: string): NodeJS.ProcessEnv {
  const isTurnedOff = TRACING_OF_LANGSMITH.some((name) => env(name)?.toLowerCase() === 'false');
  return environmentWith({
    RUNSPAN_ENDPOINT: url,
    RUNSPAN_TRACING: 'true',
    LANGSMITH_ENDPOINT: url,
    ...(!isTurnedOff && { LANGSMITH_TRACING: 'true' }),
    // Its clients send nothing without a key; the receiver asks for none.
    LANGSMITH_API_KEY: env('LANGSMITH_API_KEY') ?? 'runspan-dev',
    // It would send the runs elsewhere, whatever the endpoint.
    LANGSMITH_RUNS_ENDPOINTS: undefined,
  });
}

function stopped(): Promise<Ending> {
  return new Promise((resolve) => {
    const stop = (): void => {
      // A second signal ends us at once.
      for (const signal of STOPPING) process.off(signal, stop);
      resolve({ kind: 'exit', code: 0 });
    };
    for (const signal of STOPPING) process.on(signal, stop);
  });
}
