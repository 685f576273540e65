import { Command, CommanderError, type CommandUnknownOpts } from '@commander-js/extra-typings';
import { messageOf, visible } from '../base/text.ts';
import { version } from '../base/version.ts';
import {
  type CommandContext,
  CommandFailure,
  type CommandModule,
  type Ending,
  isInvalidArgument,
  type Output,
  UsageError,
} from './command-line.ts';

/**
 * The summary and module of each command. Modules are loaded on demand, because the receiver and the clients load
 * slowly.
 */
const COMMANDS: Readonly<Record<string, readonly [summary: string, load: () => Promise<CommandModule>]>> = {
  init: ['print what to add to the program in this folder', () => import('./init/init.ts')],
  dev: ['start a receiver on this machine and draw the traces that arrive', () => import('./dev/dev.ts')],
  demo: ['try the whole package against a platform in this process', () => import('./demo.ts')],
  serve: ['start a receiver for a team, with tenants and keys', () => import('./serve/serve.ts')],
  keys: ['create, list and revoke the keys of a receiver', () => import('./serve/keys.ts')],
  traces: ['list the recorded traces', () => import('./query/traces.ts')],
  show: ['show a trace or a run', () => import('./query/show.ts')],
  rerun: ['send a recorded model call again, with changes', () => import('./rerun/rerun.ts')],
  test: ['write a test from a recorded trace', () => import('./test/trace-tests.ts')],
  set: ['add recorded traces or runs to a set of examples', () => import('./sets/set.ts')],
  mcp: ['let coding agents read traces, over the Model Context Protocol', () => import('./mcp/mcp.ts')],
  delete: ['delete a trace, thread, user or project from a receiver', () => import('./query/delete.ts')],
  backup: ['copy the store file, even while a receiver is running', () => import('./backup.ts')],
  store: ['copy runs between stores, delete old runs, and prepare ClickHouse databases', () => import('./store.ts')],
  doctor: [
    'check the settings, the service and the installation, and send a test run',
    () => import('./doctor/doctor.ts'),
  ],
  spool: ['list, send or purge the undelivered runs on disk', () => import('./spool/spool.ts')],
  deployments: ['deploy agents and wait until they are deployed', () => import('./deployments/deployments.ts')],
};

const HELP_COLUMNS_MAX = 100;

/** Runs the command and returns how the process must end. Never rejects. */
export async function main(
  argv: readonly string[],
  { stdout, stderr }: { readonly stdout: Output; readonly stderr: Output },
): Promise<Ending> {
  let ending: Ending = 0;
  const context: CommandContext = {
    stdout,
    stderr,
    argv,
    endAs: (given) => {
      ending = given;
    },
  };
  try {
    const program = await programFor(context);
    await program.parseAsync(withHelpOption(argv, program), { from: 'user' });
    return ending;
  } catch (error) {
    return report(error, context);
  }
}

async function programFor(context: CommandContext): Promise<Command> {
  const { argv, stdout, stderr } = context;
  const program = new Command('runspan')
    .usage('<command> [options]')
    .version(version, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command]', 'show help for a command')
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      outputError: (text) => writeError(text.trimEnd().replace(/^error: /, ''), stderr),
      getOutHelpWidth: () => Math.min(stdout.columns || HELP_COLUMNS_MAX, HELP_COLUMNS_MAX),
      getErrHelpWidth: () => HELP_COLUMNS_MAX,
    })
    .exitOverride();
  const [first = '', second = ''] = argv;
  const called = first === 'help' ? second : first;
  for (const [name, [summary, load]] of Object.entries(COMMANDS)) {
    const command = program.command(name).summary(summary).showHelpAfterError(hintFor(name));
    if (name === called) (await load()).define(command, context);
  }
  program.hook('preAction', (_, command) => checkValues(command));
  return program.showHelpAfterError('Run "runspan --help" for a list of commands.');
}

/**
 * Converts `help spool list` to `spool list --help`, because the parser would show the help for `spool`. Converts `help
 * foo` to `foo`, so that the parser reports the unknown command.
 */
function withHelpOption(argv: readonly string[], program: CommandUnknownOpts): string[] {
  if (argv[0] !== 'help') return [...argv];
  const names: string[] = [];
  let command: CommandUnknownOpts | undefined = program;
  for (const name of argv.slice(1)) {
    if (command.commands.length === 0) break;
    names.push(name);
    command = command.commands.find((one) => one.name() === name);
    if (command === undefined) return names;
  }
  return [...names, '--help'];
}

function hintFor(name: string): string {
  return `Run "runspan ${name} --help" for help.`;
}

/**
 * Throws if the value of an option is empty or looks like another option. Without this check, `--ref --wait` would
 * deploy a branch named `--wait`.
 */
function checkValues(command: CommandUnknownOpts): void {
  for (const option of command.options) {
    const values = [command.getOptionValue(option.attributeName())].flat();
    if (option.required && values.some((value) => value === '' || String(value).startsWith('--'))) {
      throw new UsageError(`expected a value for ${option.long}`);
    }
  }
}

function report(error: unknown, { argv, stderr }: CommandContext): number {
  // The argument parser has already printed its own errors.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  writeError(error instanceof CommandFailure ? error.message : messageOf(error), stderr);
  if (error instanceof UsageError || isInvalidArgument(error)) {
    stderr.write(`${hintFor(argv[0] ?? '')}\n`);
    return 2;
  }
  return error instanceof CommandFailure ? error.exitCode : 1;
}

function writeError(message: string, stderr: Output): void {
  const lines = message.replace(/^Expected/, 'expected').split('\n');
  stderr.write(`runspan: ${lines.map(visible).join('\n')}\n`);
}
