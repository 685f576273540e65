import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { clock } from '../../base/clock.ts';
import { visible, visibleJson } from '../../base/text.ts';
import { isLoopback } from '../../config/checker.ts';
import { env } from '../../config/environment.ts';
import { exportTrace } from '../../receiver/api/trace-export.ts';
import { HOST_NAME, type Receiver, receiverWith } from '../../receiver/receiver.ts';
import { SqliteStore } from '../../receiver/store/sqlite/sqlite-store.ts';
import { DEFAULT_SCOPE, type Store } from '../../receiver/store/store.ts';
import { isoTimestamp } from '../../run/time.ts';
import {
  type CommandContext,
  collect,
  duration,
  type Ending,
  type OptionsOf,
  size,
  UsageError,
  untilStopped,
  wholeNumber,
  withCommandNames,
} from '../command-line.ts';
import { DEFAULT_PORT, openStore, PRICES_OPTION, storeFile } from '../stores.ts';
import { drawTree, treeOptionsFor } from '../tree.ts';
import { type ChildCommand, childCommand, runChild } from './child.ts';
import { withSpool } from './child-spool.ts';
import { hookVariables } from './hook-variables.ts';
import { nothingArrived } from './nothing-arrived.ts';
import { ProgramRuns } from './program-runs.ts';
import { TraceWatch } from './trace-watch.ts';
import { environmentFor, waitForIdle } from './traced-child.ts';

const HELP = `
If RUNSPAN_RECEIVER_KEY is set, the receiver requires this key to send and read runs.
RUNSPAN_RECEIVER_WRITE_KEY adds a key that can only send runs.

The command does not have to use runspan. NODE_OPTIONS loads runspan/register into its Node
processes, which records model calls. The OTEL_EXPORTER_OTLP_* variables make other programs send
their spans. RUNSPAN_ENDPOINT, RUNSPAN_TRACING, LANGSMITH_ENDPOINT, LANGSMITH_TRACING and
LANGSMITH_API_KEY send the runs of programs that use runspan or langsmith. LANGSMITH_PROJECT names
their project: that of RUNSPAN_PROJECT or LANGSMITH_PROJECT, otherwise the name in package.json.
RUNSPAN_API_KEY contains the write key if a write key is set, otherwise the key.

Exit code:
  the exit code or signal of the command; 0 after Ctrl-C without a command; 1 if the receiver cannot
  listen or the file cannot be used; 2 for invalid arguments; 126 or 127 if the command cannot be
  started`;

export function define(command: Command, context: CommandContext): void {
  withOptions(command)
    .usage('[options] [-- command...]')
    .description(
      'Starts a receiver on this machine, serves a page that shows the received runs, and draws each finished trace in the terminal. With a command, runs the command, receives its runs, and exits when the command exits. Without a command, runs until Ctrl-C.',
    )
    .argument('[command...]')
    .addHelpText('after', HELP)
    .action(async (words, options) => context.endAs(await dev(options, childCommand(words, context), context)));
}

type DevOptions = OptionsOf<typeof withOptions>;

function withOptions(command: Command) {
  return command
    .option('--port <n>', 'port to listen on; 0 selects any free port', wholeNumber(0, 65_535), DEFAULT_PORT)
    .option('--store <file>', 'file that stores the runs (default: RUNSPAN_STORE, otherwise ~/.runspan/runs.db)')
    .addOption(new Option('--memory', 'store the runs in memory until the receiver ends').conflicts('store'))
    .option('--max-age <time>', 'delete traces idle for this long, e.g. 12h (default: 30d)', duration)
    .option('--max-size <size>', 'delete the oldest traces beyond this size, e.g. 500mb (default: 4gb)', size)
    .option('--prices <file>', PRICES_OPTION)
    .option('--strict', 'reject requests that deviate from the documented interface')
    .option('--json', 'print each trace as one line of JSON, and the output of the command on standard error')
    .addOption(
      new Option(
        '--quiet',
        'print no traces; with a command, standard output contains only the output of the command',
      ).conflicts('json'),
    )
    .option(
      '--host <address>',
      'address to listen on; other machines can connect only if RUNSPAN_RECEIVER_KEY has at least 16 characters',
    )
    .option('--allow-host <name>', 'host name that a proxy uses for the receiver; can be repeated', hostName);
}

function hostName(text: string, previous?: string[]): string[] {
  if (HOST_NAME.test(text)) return collect(text, previous);
  throw new InvalidArgumentError('Expected a host name without a scheme or port.');
}

async function dev(
  options: DevOptions,
  command: ChildCommand | undefined,
  { stdout, stderr }: CommandContext,
): Promise<Ending> {
  const file = options.memory ? undefined : storeFile(options.store);
  const warn = (line: string): unknown => stderr.write(`runspan: ${line}\n`);
  const store = await openStore(file, options, warn);
  const sqlite = store instanceof SqliteStore ? store : undefined;
  const program = new ProgramRuns();
  try {
    const receiver = await startReceiver(store, options, program);
    const watch = options.quiet ? undefined : watchOf(store, receiver.url, options.json === true, stdout);
    try {
      await sqlite?.setAddress(receiver.url);
      if (!options.json) {
        // With `--quiet`, only the command writes to standard output.
        const output = options.quiet && command !== undefined ? stderr : stdout;
        output.write(`runspan listens on ${receiver.url}\n`);
        if (command === undefined) stdout.write(usageOf(receiver.url, sqlite && file));
      }
      if (command === undefined) return await untilStopped();
      // With `--json`, the command's output goes to standard error, so standard output contains only JSON lines.
      const output = options.json ? 'stderr' : 'stdout';
      const isQuiet = options.quiet === true;
      return await runProgram(command, { url: receiver.url, store, program, output, warn, isQuiet });
    } finally {
      await receiver.close();
      await watch?.end();
    }
  } finally {
    await sqlite?.close();
  }
}

interface ProgramContext {
  readonly url: string;
  readonly store: Store;
  readonly program: ProgramRuns;
  readonly output: 'stdout' | 'stderr';
  readonly warn: (line: string) => unknown;
  readonly isQuiet: boolean;
}

/** Runs the command, waits for its last runs, and ends the runs that it left open. */
async function runProgram(
  command: ChildCommand,
  { url, store, program, output, warn, isQuiet }: ProgramContext,
): Promise<Ending> {
  const [readKey, writeKey] = [env('RUNSPAN_RECEIVER_KEY'), env('RUNSPAN_RECEIVER_WRITE_KEY')];
  const apiKey = writeKey ?? readKey;
  const hooks = await hookVariables(command[0], url, apiKey, warn);
  const environment = { ...environmentFor(url, readKey, writeKey, program.id), ...hooks };
  let endTime = '';
  const ending = await withSpool({ url, apiKey, programId: program.id }, async (variables) => {
    const ending = await runChild(command, { ...environment, ...variables }, output);
    endTime = isoTimestamp(clock.nowUs());
    await waitForIdle(store);
    return ending;
  });
  await program.interrupt(store, endTime);
  // Without NODE_OPTIONS, a warning has already told the reason.
  if (!program.hasArrived && !isQuiet && hooks.NODE_OPTIONS !== undefined) warn(await nothingArrived(command[0]));
  return ending;
}

const OPTION_NAMES = {
  apiKey: 'RUNSPAN_RECEIVER_KEY',
  writeKey: 'RUNSPAN_RECEIVER_WRITE_KEY',
  host: '--host',
  port: '--port',
};

async function startReceiver(
  store: Store,
  { port, host, allowHost, strict }: DevOptions,
  program: ProgramRuns,
): Promise<Receiver> {
  const [apiKey, writeKey] = [env('RUNSPAN_RECEIVER_KEY'), env('RUNSPAN_RECEIVER_WRITE_KEY')];
  if (host !== undefined && !isLoopback(host) && apiKey === undefined) {
    throw new UsageError(`--host ${host} requires RUNSPAN_RECEIVER_KEY with at least 16 characters`);
  }
  try {
    const given = {
      port,
      store,
      strict: strict === true,
      allowedHosts: allowHost ?? [],
      ...(host && { host }),
      ...(apiKey && { apiKey }),
      ...(writeKey && { writeKey }),
    };
    return await receiverWith(given, (request, operations) => program.received(request, operations));
  } catch (error) {
    throw withCommandNames(error, OPTION_NAMES);
  }
}

/** Maximum number of lines of a trace in the terminal. */
const LINES_MAX = 40;

function watchOf(store: Store, url: string, isJson: boolean, stdout: CommandContext['stdout']): TraceWatch {
  return new TraceWatch({
    store,
    draw: async (runs, traceId) =>
      isJson
        ? visibleJson((await exportTrace(store, DEFAULT_SCOPE, traceId)) ?? '')
        : drawTree(runs, { ...treeOptionsFor(stdout), isFolded: true, linesMax: LINES_MAX }),
    isPlain: isJson,
    lastLine: (traceId) => treeOptionsFor(stdout).paint('detail', `${url}/?trace=${encodeURIComponent(traceId)}`),
    show: (text) => stdout.write(isJson ? `${text}\n` : `\n${text}\n`),
  });
}

function usageOf(url: string, file: string | undefined): string {
  let key = '';
  if (env('RUNSPAN_RECEIVER_WRITE_KEY') !== undefined) key = ' and the write key of the receiver as RUNSPAN_API_KEY';
  else if (env('RUNSPAN_RECEIVER_KEY') !== undefined) key = ' and the key of the receiver as RUNSPAN_API_KEY';
  const where = file === undefined ? 'memory, until the receiver ends' : visible(file);
  return (
    `To trace an application, start it with RUNSPAN_ENDPOINT=${url}${key}\n` +
    `Open ${url} in a browser to see the runs, which are stored in ${where}\n`
  );
}
