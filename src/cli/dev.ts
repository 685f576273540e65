import { type Command, Option } from '@commander-js/extra-typings';
import { type EnvironmentName, env, environmentWith } from '../base/env.ts';
import { RunspanError } from '../base/errors.ts';
import { isLoopback } from '../base/options.ts';
import { messageOf, visibleJson } from '../base/text.ts';
import { exportTrace } from '../receiver/query/trace-export.ts';
import { createReceiver, type Receiver } from '../receiver/receiver.ts';
import { DEFAULT_SCOPE, type Store } from '../receiver/store/store.ts';
import { type ChildCommand, childCommand, runChild } from './child.ts';
import {
  type CommandContext,
  CommandFailure,
  collect,
  duration,
  type Ending,
  size,
  wholeNumber,
  withCommandNames,
} from './command-line.ts';
import { DEFAULT_PORT, type DevStore, type DevStoreOptions, openDevStore, waitForIdle } from './local-store.ts';
import { TraceWatch } from './trace-watch.ts';
import { drawTree, treeOptionsFor } from './tree.ts';

interface DevOptions extends DevStoreOptions {
  readonly port: number;
  readonly host?: string | undefined;
  readonly allowHost?: string[] | undefined;
  readonly strict?: true | undefined;
  readonly json?: true | undefined;
  readonly quiet?: true | undefined;
}

const HELP = `
If RUNSPAN_RECEIVER_KEY is set, the receiver requires this key to send and read runs.
RUNSPAN_RECEIVER_WRITE_KEY adds a key that can only send runs.

The command receives RUNSPAN_ENDPOINT and RUNSPAN_TRACING and, for programs that use the langsmith
package, LANGSMITH_ENDPOINT, LANGSMITH_TRACING and LANGSMITH_API_KEY. RUNSPAN_API_KEY contains the
write key if it is set, otherwise the key.

Exit code:
  that of the command, or its signal; 0 after Ctrl-C without a command; 1 if the receiver cannot
  listen or the file cannot be used; 2 for invalid arguments; 126 or 127 if the command cannot be
  started`;

export function define(command: Command, context: CommandContext): void {
  command
    .usage('[options] [-- command...]')
    .description(
      'Starts a receiver on this machine, serves a page that shows its runs, and draws each trace in the terminal when it has finished. With a command, runs the command with an environment that sends its runs to the receiver, and exits when the command exits. Without a command, runs until Ctrl-C.',
    )
    .argument('[command...]')
    .option('--port <n>', 'port to listen on; 0 selects any free port', wholeNumber('--port', 0, 65_535), DEFAULT_PORT)
    .option('--store <file>', 'file that stores the runs (default: RUNSPAN_STORE, otherwise ~/.runspan/runs.db)')
    .addOption(new Option('--memory', 'store the runs in memory until the receiver ends').conflicts('store'))
    .option('--max-age <time>', 'delete traces idle for this long, e.g. 12h (default: 30d)', duration('--max-age'))
    .option(
      '--max-size <size>',
      'delete the oldest traces beyond this size, e.g. 500mb (default: 4gb)',
      size('--max-size'),
    )
    .option(
      '--prices <file>',
      'prices of models per million tokens, for runs without a cost: { "a-model": { "input": 2.5, "output": 10 } }',
    )
    .option('--strict', 'reject requests that deviate from the documented interface')
    .option('--json', 'print each trace as one line of JSON, and the output of the command on standard error')
    .addOption(new Option('--quiet', 'print no traces').conflicts('json'))
    .option(
      '--host <address>',
      'address to listen on; other machines can connect only if RUNSPAN_RECEIVER_KEY has at least 16 characters',
    )
    .option('--allow-host <name>', 'name under which a proxy reaches the receiver; can be repeated', collect)
    .addHelpText('after', HELP)
    .action(async (words, options) => context.endAs(await dev(options, childCommand(words, context), context)));
}

async function dev(
  options: DevOptions,
  command: ChildCommand | undefined,
  { stdout, stderr }: CommandContext,
): Promise<Ending> {
  const kept = await openDevStore(options, (line) => stderr.write(`runspan: ${line}\n`));
  const { store } = kept;
  try {
    const receiver = await startReceiver(store, options);
    const watch = options.quiet ? undefined : watchOf(store, options.json === true, stdout);
    try {
      await kept.setAddress(receiver.url);
      if (!options.json) stdout.write(greeting(receiver.url, kept, command === undefined));
      if (command === undefined) return await untilStopped();
      const environment = environmentFor(receiver.url, env('RUNSPAN_RECEIVER_KEY'), env('RUNSPAN_RECEIVER_WRITE_KEY'));
      // Programs that read the JSON lines cannot parse other output between them.
      const ending = await runChild(command, environment, options.json ? 'stderr' : 'stdout');
      if (ending.kind !== 'not started') await waitForIdle(store);
      return ending;
    } finally {
      await receiver.close();
      await watch?.end();
    }
  } finally {
    await kept.close();
  }
}

const OPTION_NAMES = {
  apiKey: 'RUNSPAN_RECEIVER_KEY',
  writeKey: 'RUNSPAN_RECEIVER_WRITE_KEY',
  allowedHosts: '--allow-host',
  host: '--host',
};

async function startReceiver(store: Store, { port, host, allowHost, strict }: DevOptions): Promise<Receiver> {
  const [apiKey, writeKey] = [env('RUNSPAN_RECEIVER_KEY'), env('RUNSPAN_RECEIVER_WRITE_KEY')];
  if (host !== undefined && !isLoopback(host) && apiKey === undefined) {
    throw new CommandFailure(`--host ${host} requires RUNSPAN_RECEIVER_KEY with at least 16 characters`);
  }
  try {
    return await createReceiver({
      port,
      store,
      strict: strict === true,
      allowedHosts: allowHost ?? [],
      ...(host && { host }),
      ...(apiKey && { apiKey }),
      ...(writeKey && { writeKey }),
    });
  } catch (error) {
    const code = error instanceof RunspanError ? error.code : undefined;
    if (code === 'RUNSPAN_ADDRESS_IN_USE') {
      throw new CommandFailure(`port ${port} is in use; choose another with --port (0 selects any free port)`);
    }
    if (code === 'RUNSPAN_LISTEN_FAILED') {
      const reason = messageOf((error as RunspanError).cause);
      throw new CommandFailure(
        host === undefined
          ? `cannot listen on port ${port}: ${reason}; choose another with --port`
          : `cannot listen on ${host}, port ${port}: ${reason}; choose another with --host or --port`,
      );
    }
    throw withCommandNames(error, OPTION_NAMES);
  }
}

function watchOf(store: Store, isJson: boolean, stdout: CommandContext['stdout']): TraceWatch {
  return new TraceWatch({
    store,
    draw: async (runs, traceId) =>
      isJson
        ? visibleJson((await exportTrace(store, DEFAULT_SCOPE, traceId)) ?? '')
        : drawTree(runs, treeOptionsFor(stdout)),
    isPlain: isJson,
    show: (text) => stdout.write(isJson ? `${text}\n` : `\n${text}\n`),
  });
}

function greeting(url: string, { where, isFallback }: DevStore, isAlone: boolean): string {
  const lines = [`runspan listens on ${url}`];
  if (isFallback) lines.push('Runs are kept in memory only, and are lost when the receiver ends');
  if (isAlone) {
    let key = '';
    if (env('RUNSPAN_RECEIVER_WRITE_KEY') !== undefined) key = ' and its write key as RUNSPAN_API_KEY';
    else if (env('RUNSPAN_RECEIVER_KEY') !== undefined) key = ' and its key as RUNSPAN_API_KEY';
    lines.push(`To trace an application, start it with RUNSPAN_ENDPOINT=${url}${key}`);
    lines.push(`Open ${url} in a browser to read its runs; they are kept in ${where}`);
  }
  return `${lines.join('\n')}\n`;
}

/** Each of these variables turns the tracing of the langsmith package on or off. */
const LANGSMITH_TRACING: readonly EnvironmentName[] = [
  'LANGSMITH_TRACING',
  'LANGSMITH_TRACING_V2',
  'LANGCHAIN_TRACING',
  'LANGCHAIN_TRACING_V2',
];

/**
 * Returns the environment of a command, for programs that use runspan and for programs that use the langsmith package. If
 * the tracing of langsmith was turned off, it stays off: with a runspan handler, it would record each step again.
 */
export function environmentFor(url: string, readKey?: string, writeKey?: string): NodeJS.ProcessEnv {
  const apiKey = writeKey ?? readKey;
  const isTurnedOff = LANGSMITH_TRACING.some((name) => env(name)?.toLowerCase() === 'false');
  return environmentWith({
    RUNSPAN_ENDPOINT: url,
    RUNSPAN_TRACING: 'true',
    // Shows open runs on the page soon. A limit that the application sets takes precedence.
    RUNSPAN_START_DELAY_MS: env('RUNSPAN_START_DELAY_MS') ?? '250',
    ...(apiKey !== undefined && { RUNSPAN_API_KEY: apiKey }),
    ...(writeKey !== undefined && { RUNSPAN_RECEIVER_KEY: undefined, RUNSPAN_RECEIVER_WRITE_KEY: undefined }),
    LANGSMITH_ENDPOINT: url,
    ...(!isTurnedOff && { LANGSMITH_TRACING: 'true' }),
    // The clients of langsmith send nothing without a key, even if the receiver requires none.
    LANGSMITH_API_KEY: apiKey ?? env('LANGSMITH_API_KEY') ?? 'runspan-dev',
    // This variable would send the runs to other endpoints.
    LANGSMITH_RUNS_ENDPOINTS: undefined,
  });
}

const STOP_SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

function untilStopped(): Promise<Ending> {
  return new Promise((resolve) => {
    const stop = (): void => {
      // A second signal ends the process immediately.
      for (const signal of STOP_SIGNALS) process.off(signal, stop);
      resolve({ kind: 'exit', code: 0 });
    };
    for (const signal of STOP_SIGNALS) process.on(signal, stop);
  });
}
