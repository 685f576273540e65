import { basename } from 'node:path';
import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { clock } from '../../base/clock.ts';
import { RunspanError } from '../../base/errors.ts';
import { messageOf, visible, visibleJson } from '../../base/text.ts';
import { isAtLeast } from '../../base/version.ts';
import { isOrigin } from '../../config/checker.ts';
import { env, environmentWith, variable } from '../../config/environment.ts';
import { delay } from '../../platform/timers.ts';
import { HOST_NAME } from '../../receiver/receiver.ts';
import { pagePath } from '../../run/page-path.ts';
import { isoTimestamp } from '../../run/time.ts';
import {
  type CommandContext,
  CommandFailure,
  collect,
  documentationUrl,
  durationArgument,
  type Ending,
  type OptionsOf,
  type Output,
  size,
  untilStopped,
  wholeNumber,
} from '../command-line.ts';
import { samplingOff } from '../doctor/settings.ts';
import { NoReceiver } from '../query/run-source.ts';
import { DEFAULT_PORT, PRICES_OPTION, storeFile } from '../stores.ts';
import { drawTree, treeOptionsFor } from '../tree.ts';
import { agentSettings, isAgent } from './agents.ts';
import { type ChildCommand, childCommand, runChild } from './child.ts';
import { withSpool } from './child-spool.ts';
import { attachTo, type DevReceiver, openReceiver, withDevNames } from './dev-receiver.ts';
import { hookVariables, nodeVersionFor, otlpHeaders } from './hook-variables.ts';
import { registeredReceiver } from './registration.ts';
import { TraceWatch } from './trace-watch.ts';
import { environmentFor } from './traced-child.ts';

const HELP = `
If another runspan dev already serves the store, the command sends its runs to that receiver, and
its traces are printed when it ends, unless --port, --store or --memory is given. Without a command,
the exit code is then 1.

If RUNSPAN_RECEIVER_KEY is set, the receiver requires this key to send and read runs.

The command does not have to use runspan. NODE_OPTIONS loads runspan/register into its Node
processes, which records model calls. The OTEL_EXPORTER_OTLP_* variables make other programs send
their spans. RUNSPAN_ENDPOINT, RUNSPAN_TRACING, LANGSMITH_ENDPOINT, LANGSMITH_TRACING and
LANGSMITH_API_KEY send the runs of programs that use runspan or langsmith. LANGSMITH_PROJECT names
their project: that of RUNSPAN_PROJECT or LANGSMITH_PROJECT, otherwise the name in package.json.
RUNSPAN_API_KEY contains the write key if a write key is set, otherwise the key.

The coding agents claude and codex send their own telemetry to the receiver, for example with
runspan dev --content -- claude. Without --content, it contains no prompts, answers, tool arguments
or tool outputs.

With --platform, a stand-in for a deployment platform listens instead, in memory. It prints
variables with its addresses and its key, or passes them to the command.

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
    .option(
      '--port <n>',
      `port to listen on; 0 selects any free port (default: ${DEFAULT_PORT})`,
      wholeNumber(0, 65_535),
    )
    .option('--store <file>', 'file that stores the runs (default: RUNSPAN_STORE, otherwise ~/.runspan/runs.db)')
    .addOption(new Option('--memory', 'store the runs in memory until the receiver ends').conflicts('store'))
    .option('--max-age <time>', 'delete traces idle for this long, e.g. 12h (default: 30d)', durationArgument)
    .option('--max-size <size>', 'delete the oldest traces beyond this size, e.g. 500mb (default: 4gb)', size)
    .option('--prices <file>', PRICES_OPTION)
    .option('--strict', 'reject requests that deviate from the documented interface')
    .option('--all-spans', 'store all OpenTelemetry spans, not only those related to model calls')
    .option('--with-body', 'record the bodies of incoming HTTP requests, for tests that runspan test writes')
    .option('--content', 'record the prompts, answers, tool arguments and tool outputs of claude and codex')
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
    .option('--allow-host <name>', 'host name that a proxy uses for the receiver; can be repeated', hostName)
    .option('--allow-origin <origin>', 'origin whose web pages may send spans; can be repeated', origin)
    .option(
      '--allow-service <origin>',
      'origin of a model service that gets calls that are run again, with your key; can be repeated',
      origin,
    )
    .addOption(
      new Option('--platform [hosting]', 'start a platform to test deployments and agents against')
        .choices(['cloud', 'self-hosted'])
        .preset('cloud')
        .conflicts(command.options.map((option) => option.attributeName()).filter((name) => name !== 'port')),
    );
}

function hostName(text: string, previous?: string[]): string[] {
  if (HOST_NAME.test(text)) return collect(text, previous);
  throw new InvalidArgumentError('Expected a host name without a scheme or port.');
}

function origin(text: string, previous?: string[]): string[] {
  if (isOrigin(text)) return collect(text, previous);
  throw new InvalidArgumentError('Expected an origin such as https://shop.example.com.');
}

/** What the user asked for, and where the command writes. */
interface Session extends Pick<CommandContext, 'stdout' | 'stderr'> {
  readonly options: DevOptions;
  readonly command: ChildCommand | undefined;
  readonly warn: (line: string) => unknown;
}

async function dev(
  options: DevOptions,
  command: ChildCommand | undefined,
  { stdout, stderr }: CommandContext,
): Promise<Ending> {
  if (options.platform !== undefined) return await runPlatform(options, command, stdout);
  const session: Session = { options, command, stdout, stderr, warn: (line) => stderr.write(`runspan: ${line}\n`) };
  const receiver = await receiverFor(session);
  const watch = options.quiet ? undefined : watchOf(receiver, session);
  try {
    if (!options.json) introduce(receiver, session);
    return await (command === undefined ? untilStopped() : runProgram(command, receiver, session));
  } finally {
    try {
      await receiver.stop();
      await watch?.end();
    } finally {
      await receiver.close();
    }
  }
}

/** Starts a platform for the command, or until the user stops it. */
async function runPlatform(
  { platform: hosting = 'cloud', port = DEFAULT_PORT }: DevOptions,
  command: ChildCommand | undefined,
  stdout: Output,
): Promise<Ending> {
  const { startPlatform } = await import('../../testing/platform/platform.ts');
  const platform = await startPlatform({ hosting, port }).catch((error) => Promise.reject(withDevNames(error, port)));
  const { url, agentUrl, apiKey, tenantId } = platform;
  const variables = {
    CONTROL_PLANE_URL: url,
    CONTROL_PLANE_KEY: apiKey,
    RUNSPAN_CONTROL_PLANE_URL: url,
    RUNSPAN_CONTROL_PLANE_KEY: apiKey,
    RUNSPAN_WORKSPACE_ID: tenantId,
    AGENT_URL: agentUrl,
    AGENT_KEY: apiKey,
    RUNSPAN_ENDPOINT: url,
    RUNSPAN_API_KEY: apiKey,
  };
  try {
    if (command !== undefined) return await runChild(command, environmentWith(variables));
    const stopped = untilStopped();
    const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${value}\n`);
    stdout.write(`a platform in memory listens on ${url}, whose page asks for the key\n${lines.join('')}`);
    return await stopped;
  } finally {
    await platform.close();
  }
}

/** Prints the address of the receiver. With `--quiet`, only the command writes to standard output. */
function introduce({ url, isOwn, isOnDisk, storePath }: DevReceiver, session: Session): void {
  const { options, command, stdout, stderr } = session;
  const output = options.quiet && command !== undefined ? stderr : stdout;
  const then = options.quiet ? '' : '; this terminal prints them when the command ends';
  output.write(
    `${isOwn ? `runspan listens on ${url}` : `using the receiver at ${url}, whose page shows the traces${then}`}\n`,
  );
  if (command !== undefined) return;
  // Another command without options finds a receiver whose store is a file that no option names.
  if (storePath !== undefined && options.store === undefined)
    stdout.write('To trace a program, start it in another terminal: npx runspan dev -- <command>\n');
  stdout.write(usageOf(url, isOnDisk ? storePath : undefined));
}

/** Maximum time to wait for another process that has the store open to start its receiver, in milliseconds. */
const START_MAX_MS = 15_000;
const POLL_MS = 100;
/** Maximum number of traces that are printed when the command ends, if they have not been printed before. */
const PRINTED_MAX = 20;

/** Attaches to the receiver that serves the store, or starts one. */
async function receiverFor({ options, command, warn }: Session): Promise<DevReceiver> {
  const hasProgram = command !== undefined;
  const storePath = options.memory ? undefined : storeFile(options.store);
  const mayAttach = options.port === undefined && options.store === undefined;
  const startMs = performance.now();
  for (let attemptAtMs = 0; ; ) {
    const url = mayAttach ? await registeredReceiver(storePath) : undefined;
    const waitedMs = performance.now() - startMs;
    try {
      if (url !== undefined && storePath !== undefined) {
        if (!hasProgram)
          throw new CommandFailure(
            `a receiver already runs at ${url}: open this address, or start a program with \`runspan dev -- <command>\``,
          );
        const isAll = options.json || options.quiet;
        const receiver = await attachTo(url, { storePath, tracesMax: isAll ? Infinity : PRINTED_MAX, warn });
        warnOfIgnored(options, (option) => warn(`${option} has no effect on the receiver at ${url}`));
        return receiver;
      }
      if (waitedMs >= attemptAtMs) {
        // Each attempt starts a thread, so that the next one follows after twice the time.
        attemptAtMs = POLL_MS + 2 * waitedMs;
        return await openReceiver(options, { storePath, hasProgram, warn });
      }
    } catch (error) {
      if (!mayAttach || !mayBeStarting(error, waitedMs)) throw withDevNames(error, options.port);
    }
    await delay(POLL_MS, undefined, true);
  }
}

/** Warns of options that affect only a receiver of this process. */
function warnOfIgnored(
  { json: _, quiet: __, content: ___, withBody: ____, ...ignored }: DevOptions,
  warn: (option: string) => void,
): void {
  for (const name of Object.keys(ignored)) warn(`--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`);
}

/** Whether the error may come from another process that starts a receiver at the same time. */
function mayBeStarting(error: unknown, waitedMs: number): boolean {
  const isInUse = error instanceof RunspanError && error.code === 'RUNSPAN_STORE_IN_USE';
  return (isInUse || error instanceof NoReceiver) && waitedMs < START_MAX_MS;
}

/** Runs the command, waits for its last runs, and ends the runs that it left open. */
async function runProgram(command: ChildCommand, receiver: DevReceiver, { options, warn }: Session): Promise<Ending> {
  const { url, programId, storePath } = receiver;
  const apiKey = env('RUNSPAN_RECEIVER_KEY');
  const [name, ...args] = command;
  const agent = agentSettings(name, url, otlpHeaders(apiKey, programId), options.content === true);
  const hooks = agent?.variables ?? (await hookVariables(name, url, apiKey, programId, warn));
  const given = agent && OTLP_ENDPOINTS.find(variable);
  if (given !== undefined) warn(`${name} sends its telemetry to the receiver, not to ${given}`);
  if (agent === undefined && options.content) warn('--content has an effect only on claude and codex');
  const dev = { program: programId, ...(options.withBody && { recordBody: true }) };
  const environment: NodeJS.ProcessEnv = { ...environmentFor(url, dev, apiKey), ...hooks };
  let endTime = '';
  const currentUrl = (): Promise<string | undefined> => receiver.currentUrl();
  // With `--json`, the command's output goes to standard error, so standard output contains only JSON lines.
  const output = options.json ? 'stderr' : 'stdout';
  const [ending, isLeft] = await withSpool({ url, apiKey, programId, storePath, currentUrl }, async (variables) => {
    const ending = await runChild([name, ...(agent?.args ?? []), ...args], { ...environment, ...variables }, output);
    endTime = isoTimestamp(clock.nowUs());
    await receiver.untilIdle();
    return ending;
  });
  // The command's exit code must not depend on the receiver, which may have ended.
  const hasArrived = await receiver.endProgram(endTime).catch((error) => {
    warn(`${messageOf(error)}, so no traces are printed here`);
    return true;
  });
  // A receiver of another process does not recognize requests of the langsmith package with another key.
  const mayHaveArrived = hasArrived || (!receiver.isOwn && environment.LANGSMITH_API_KEY !== programId);
  // Without NODE_OPTIONS, a warning has already told the reason.
  const isHooked = agent !== undefined || hooks.NODE_OPTIONS !== undefined;
  if (!mayHaveArrived && !isLeft && !options.quiet && isHooked) warn(await nothingArrived(name, ending));
  return ending;
}

/** The variables with which the user may have named another endpoint for the traces and logs of a coding agent. */
const OTLP_ENDPOINTS: readonly string[] = ['', 'TRACES_', 'LOGS_'].map(
  (signal) => `OTEL_EXPORTER_OTLP_${signal}ENDPOINT`,
);

/** Maximum number of lines of a trace in the terminal. */
const LINES_MAX = 40;

function watchOf(receiver: DevReceiver, { options, command, stdout }: Session): TraceWatch {
  const isJson = options.json === true;
  return new TraceWatch({
    store: receiver.traces,
    draw: async (runs, traceId) =>
      isJson
        ? visibleJson((await receiver.exported(traceId)) ?? '')
        : drawTree(runs, { ...treeOptionsFor(stdout), isFolded: true, linesMax: LINES_MAX }),
    isPlain: isJson,
    // A coding agent uses the whole terminal.
    isAtEnd: command !== undefined && isAgent(command[0]),
    lastLine: (traceId) => treeOptionsFor(stdout).paint('detail', receiver.url + pagePath({ id: traceId, traceId })),
    show: (text) => stdout.write(isJson ? `${text}\n` : `\n${text}\n`),
  });
}

function usageOf(url: string, file: string | undefined): string {
  const key = env('RUNSPAN_RECEIVER_KEY') === undefined ? '' : ' and the key of the receiver as RUNSPAN_API_KEY';
  const where = file === undefined ? 'memory, until the receiver ends' : visible(file);
  return (
    `A program that loads runspan needs only RUNSPAN_ENDPOINT=${url}${key}\n` +
    `Open ${url} in a browser to see the runs, which are stored in ${where}\n`
  );
}

/** The first version of Node with hooks for ES modules. */
const HOOKS_MIN = [22, 15] as const;

const BUN_OR_DENO = /^(?:bunx?|deno)(?:\.exe)?$/i;
const OTHER_LANGUAGE = /^(?:python[\d.]*|py|uv|poetry|ruby|php|java|go|dotnet|cargo)(?:\.exe)?$/i;

/** Returns a line about a command whose runs did not arrive: the reason if it is known, otherwise what is recorded. */
async function nothingArrived(program: string, ending: Ending): Promise<string> {
  if (typeof ending === 'number' && ending > 0)
    return `no run of the command arrived before it ended with code ${ending}`;
  const [reason, page] = await reasonFor(program);
  return `no run of the command arrived: ${reason}; see ${documentationUrl(page)}`;
}

async function reasonFor(program: string): Promise<readonly [reason: string, page: string]> {
  const sampling = samplingOff();
  if (sampling !== undefined) return [`${sampling} is 0, so no run is recorded`, 'docs/configuration.md#settings'];
  const name = visible(basename(program));
  if (isAgent(program)) return [`${name} sent no telemetry`, 'docs/dev.md#trace-a-coding-agent'];
  if (BUN_OR_DENO.test(name)) return [`${name} does not read NODE_OPTIONS`, 'docs/register.md#other-runtimes'];
  const other = `${name} is not Node, so the program needs langsmith or an OpenTelemetry SDK`;
  if (OTHER_LANGUAGE.test(name)) return [other, 'docs/opentelemetry.md#services-in-other-languages'];
  const clients = 'no call that runspan reads used fetch, and calls with node:http or axios are not recorded';
  const version = await nodeVersionFor(program);
  if (version === undefined || isAtLeast(version, HOOKS_MIN)) return [clients, 'docs/fetch.md#limits'];
  return [`${clients}; Node ${version} records no steps of packages`, 'docs/register.md#requirements'];
}
