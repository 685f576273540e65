import { parseArgs } from 'node:util';
import { parseSpool, type SpoolInvocation, spoolUsage } from './spool-arguments.ts';
import { quoted } from './terminal-text.ts';

/** What the command line asks for. */
export type Invocation =
  | { readonly kind: 'help'; readonly topic: Topic }
  | { readonly kind: 'version' }
  | {
      readonly kind: 'dev';
      readonly port: number;
      /** None when the receiver runs by itself. */
      readonly command: Command | undefined;
    }
  | {
      readonly kind: 'audit';
      readonly isJson: boolean;
      /** The file that is written instead of standard error. */
      readonly output: string | undefined;
      readonly command: Command;
    }
  | { readonly kind: 'doctor'; readonly isJson: boolean }
  | SpoolInvocation
  | { readonly kind: 'mistake'; readonly message: string; readonly topic: Topic };

/** What there is help on: all of it, or one command. */
export type Topic = 'runspan' | 'dev' | 'audit' | 'doctor' | 'spool';

/** A program to start and its arguments. */
export type Command = readonly [string, ...string[]];

export const DEFAULT_PORT = 4777;

const PORT_MAX = 65_535;

/** What `--help` prints. */
export const usage: Readonly<Record<Topic, string>> = {
  runspan: `Usage: runspan <command> [options]

Commands:
  dev [--port ${DEFAULT_PORT}] [-- command args]
                 start a receiver on this machine and draw the traces that arrive
  audit [--json] [--output file] -- command args
                 run a command and show what would be sent, without sending it anywhere
  doctor [--json]
                 check settings, service and installation, and send a test run
  spool list | send | purge
                 show, deliver or delete the runs that wait on disk

Options:
  -h, --help     print this; with a command, what there is to say of it
  -v, --version  print the version
`,
  dev: `Usage: runspan dev [--port ${DEFAULT_PORT}] [-- command args]

Starts a receiver on 127.0.0.1 and draws each trace in the terminal when it has finished. With a
command, runs it with an environment that sends its runs to the receiver, and ends as the command
ends; without one, runs until Ctrl-C. Runs are kept in memory.

Options:
  --port <n>  where to listen; 0 takes any free port (default ${DEFAULT_PORT})
  -h, --help  print this

The command gets RUNSPAN_ENDPOINT and RUNSPAN_TRACING, and for programs that use the langsmith
package LANGSMITH_ENDPOINT, LANGSMITH_TRACING and, when it is unset, LANGSMITH_API_KEY.

Exit code:
  that of the command, or its signal; 0 after Ctrl-C without a command; 1 when the receiver cannot
  listen; 2 for a mistake in the arguments; 126 and 127 when the command cannot be started
`,
  audit: `Usage: runspan audit [--json] [--output file] -- command args

Runs a command with an environment that sends its runs to a receiver within this process, which
forwards nothing, and shows each record as it arrives: what would have left the process, after
sampling and redaction. The streams of the command are its own; records go to standard error.

Options:
  --json           one object of JSON on a line for each record, complete
  --output <file>  write the records there instead, in full; the file is replaced
  -h, --help       print this

Runs that the command sends to an endpoint in its own code are neither stopped nor shown.

Exit code:
  that of the command, or its signal; 1 when the file cannot be written; 2 for a mistake in the
  arguments; 126 and 127 when the command cannot be started
`,
  doctor: `Usage: runspan doctor [--json]

Checks what tracing needs, with the environment that it is started in: Node, each setting and where
it comes from, the service and the way to it, the key, the clocks, and the packages that the working
directory has. Then it sends one run, named "runspan doctor", and reads it back where the service
can be asked. It shows no key, and no other secret.

Options:
  --json      print one object of JSON instead
  -h, --help  print this

Exit code:
  0 when nothing fails, 1 when something does, 2 for a mistake in the arguments
`,
  spool: spoolUsage,
};

/** Reads the arguments after the name of the program. Never throws: what is wrong is an invocation of its own. */
export function parseArguments(argv: readonly string[]): Invocation {
  const [first, ...rest] = argv;
  switch (first) {
    case undefined:
      return mistake('expected a command');
    case '-h':
    case '--help':
      return { kind: 'help', topic: 'runspan' };
    case '-v':
    case '--version':
      return { kind: 'version' };
    case 'dev':
      return parseDev(rest);
    case 'audit':
      return parseAudit(rest);
    case 'doctor':
      return parseDoctor(rest);
    case 'spool':
      return parseSpool(rest);
    default:
      return mistake(`unknown ${first.startsWith('-') ? 'option' : 'command'} ${quoted(first)}`);
  }
}

function parseDev(argv: readonly string[]): Invocation {
  const { options, command } = wordsOf(argv, { port: 'string', help: 'boolean' });
  if (typeof options === 'string') return mistake(options, 'dev');
  const port = options.has('port') ? portOf(options.get('port')) : DEFAULT_PORT;
  if (port === undefined) return mistake(`expected --port to be a number from 0 to ${PORT_MAX}`, 'dev');
  if (options.has('help')) return { kind: 'help', topic: 'dev' };
  if (command === 'none') return mistake('expected a command after --', 'dev');
  return { kind: 'dev', port, command };
}

function parseAudit(argv: readonly string[]): Invocation {
  const { options, command } = wordsOf(argv, { json: 'boolean', output: 'string', help: 'boolean' });
  if (typeof options === 'string') return mistake(options, 'audit');
  if (options.has('help')) return { kind: 'help', topic: 'audit' };
  const output = options.get('output');
  if (options.has('output') && !output) return mistake('expected a file after --output', 'audit');
  if (command === undefined || command === 'none') return mistake('expected -- and a command', 'audit');
  return { kind: 'audit', isJson: options.has('json'), output, command };
}

function parseDoctor(argv: readonly string[]): Invocation {
  const { options, command } = wordsOf(
    argv,
    { json: 'boolean', help: 'boolean' },
    (word) => `expected no argument ${word}`,
  );
  if (typeof options === 'string') return mistake(options, 'doctor');
  if (options.has('help')) return { kind: 'help', topic: 'doctor' };
  if (command !== undefined) return mistake('expected no command', 'doctor');
  return { kind: 'doctor', isJson: options.has('json') };
}

interface Words {
  /** Those that were given, the last value of each; or what is wrong with them. */
  readonly options: ReadonlyMap<string, string | undefined> | string;
  /** What follows the first `--`; 'none' when nothing does. */
  readonly command: Command | 'none' | undefined;
}

function wordsOf(
  argv: readonly string[],
  known: Readonly<Record<string, 'string' | 'boolean'>>,
  stray = (word: string): string => `expected -- before the command ${word}`,
): Words {
  // Whatever follows the first `--` belongs to the command, flags and further `--` included.
  const end = argv.indexOf('--');
  const [program, ...args] = end === -1 ? [] : argv.slice(end + 1);
  const command = end === -1 ? undefined : program ? ([program, ...args] as const) : 'none';
  return { options: optionsOf(end === -1 ? argv : argv.slice(0, end), known, stray), command };
}

function optionsOf(
  args: readonly string[],
  known: Readonly<Record<string, 'string' | 'boolean'>>,
  stray: (word: string) => string,
): Map<string, string | undefined> | string {
  const types = Object.entries(known).map(([name, type]) => [name, name === 'help' ? { type, short: 'h' } : { type }]);
  // Not strict: that would answer with errors of several lines, in words of its own.
  const { tokens } = parseArgs({ args: [...args], options: Object.fromEntries(types), strict: false, tokens: true });
  const options = new Map<string, string | undefined>();
  for (const token of tokens) {
    if (token.kind === 'positional') return stray(quoted(token.value));
    if (token.kind !== 'option') continue;
    if (!Object.hasOwn(known, token.name)) return `unknown option ${quoted(token.rawName)}`;
    options.set(token.name, token.value);
  }
  return options;
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,5}$/.test(text)) return undefined;
  const port = Number(text);
  return port <= PORT_MAX ? port : undefined;
}

function mistake(message: string, topic: Topic = 'runspan'): Invocation {
  return { kind: 'mistake', message, topic };
}
