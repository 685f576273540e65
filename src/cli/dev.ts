import { type EnvironmentName, env, environmentWith } from '../base/env.ts';
import { visibleJson } from '../base/text.ts';
import { exportTrace } from '../receiver/query/trace-export.ts';
import { createReceiver } from '../receiver/receiver.ts';
import type { Store } from '../receiver/store/store.ts';
import { type Ending, runChild } from './child.ts';
import type { DevInvocation } from './dev-arguments.ts';
import { type DevStore, openDevStore } from './dev-store.ts';
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
 * Runs a receiver beside a command, or by itself until it is told to stop, and draws what arrives. Rejects with what there
 * is to say to the user when the receiver cannot listen, or its file cannot be used.
 */
export async function dev(invocation: DevInvocation): Promise<Ending> {
  const kept = await openDevStore(invocation, (line) => process.stderr.write(`runspan: ${line}\n`));
  try {
    return await receiveInto(kept, invocation);
  } finally {
    await kept.close();
  }
}

async function receiveInto(
  { store, where, isFallback, setAddress }: DevStore,
  { port, host, allowedHosts, isStrict, isJson, isQuiet, command }: DevInvocation,
): Promise<Ending> {
  const apiKey = env('RUNSPAN_RECEIVER_KEY');
  const writeKey = env('RUNSPAN_RECEIVER_WRITE_KEY');
  const receiver = await createReceiver({
    port,
    store,
    strict: isStrict,
    allowedHosts,
    ...(host && { host }),
    ...(apiKey && { apiKey }),
    ...(writeKey && { writeKey }),
  });
  const watch = isQuiet ? undefined : watchOf(store, isJson);
  try {
    await setAddress(receiver.url);
    const keyName = writeKey !== undefined ? 'write key' : apiKey !== undefined ? 'key' : undefined;
    if (!isJson) process.stdout.write(greeting(receiver.url, where, isFallback, command === undefined, keyName));
    const ending = await (command === undefined
      ? stopped()
      : // Whoever reads lines of JSON can do nothing with what the command prints among them.
        runChild(command, environmentFor(receiver.url, apiKey, writeKey), isJson ? 'stderr' : 'stdout'));
    if (ending.kind !== 'not started' && command !== undefined) await quiet(store);
    return ending;
  } finally {
    await receiver.close();
    await watch?.end();
  }
}

function watchOf(store: Store, isJson: boolean): TraceWatch {
  return new TraceWatch({
    store,
    draw: async (runs, traceId) =>
      isJson ? visibleJson((await exportTrace(store, traceId)) ?? '') : drawTree(runs, treeOptionsFor(process.stdout)),
    isPlain: isJson,
    show: (text) => process.stdout.write(isJson ? `${text}\n` : `\n${text}\n`),
  });
}

function greeting(
  url: string,
  where: string,
  isFallback: boolean,
  isAlone: boolean,
  keyName: 'key' | 'write key' | undefined,
): string {
  const lines = [`runspan listens on ${url}`];
  if (isFallback) lines.push('Runs are kept in memory only, and are lost when the receiver ends');
  if (isAlone) {
    const key = keyName === undefined ? '' : ` and RUNSPAN_API_KEY, which is its ${keyName}`;
    lines.push(`To see an application here, start it with RUNSPAN_ENDPOINT=${url}${key}`);
    lines.push(`Open ${url} in a browser to read its runs; they are kept in ${where}`);
  }
  return `${lines.join('\n')}\n`;
}

/**
 * What a command is started with: the same for programs that use runspan and for those that use the incumbent's package, unless
 * that has been turned off. Beside a handler of ours its tracer tells of each step once more.
 */
export function environmentFor(url: string, readKey?: string, writeKey?: string): NodeJS.ProcessEnv {
  const apiKey = writeKey ?? readKey;
  const isTurnedOff = TRACING_OF_LANGSMITH.some((name) => env(name)?.toLowerCase() === 'false');
  return environmentWith({
    RUNSPAN_ENDPOINT: url,
    RUNSPAN_TRACING: 'true',
    // Open runs appear on the page soon. The application's own limit takes precedence.
    RUNSPAN_START_DELAY_MS: env('RUNSPAN_START_DELAY_MS') ?? '250',
    ...(apiKey !== undefined && { RUNSPAN_API_KEY: apiKey }),
    ...(writeKey !== undefined && { RUNSPAN_RECEIVER_KEY: undefined, RUNSPAN_RECEIVER_WRITE_KEY: undefined }),
    LANGSMITH_ENDPOINT: url,
    ...(!isTurnedOff && { LANGSMITH_TRACING: 'true' }),
    // Its clients send nothing without a key, also where the receiver asks for none.
    LANGSMITH_API_KEY: apiKey ?? env('LANGSMITH_API_KEY') ?? 'runspan-dev',
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
