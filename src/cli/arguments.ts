import { parseArgs } from 'node:util';
import { parseSpool, type SpoolInvocation, spoolUsage } from './spool-arguments.ts';
import { quoted } from './terminal-text.ts';

/** What `--help` can be asked of. */
export type Topic = 'runspan' | 'dev' | 'spool';

/** What the command line asks for. */
export type Invocation =
  | { readonly kind: 'help'; readonly topic: Topic }
  | { readonly kind: 'version' }
  | {
      readonly kind: 'dev';
      readonly port: number;
      /** The program to start and its arguments; none when the receiver runs by itself. */
      readonly command: readonly [string, ...string[]] | undefined;
    }
  | SpoolInvocation
  | { readonly kind: 'mistake'; readonly message: string; readonly topic: Topic };

export const DEFAULT_PORT = 4777;

const PORT_MAX = 65_535;

/** What `--help` prints. */
export const usage: Readonly<Record<Topic, string>> = {
  runspan: `Usage: runspan <command> [options]

Commands:
  dev [--port ${DEFAULT_PORT}] [-- command args]
                 start a receiver on this machine and draw the traces that arrive
  spool list | purge
                 show or delete the runs that wait on disk

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
    case 'spool':
      return parseSpool(rest);
    default:
      return mistake(`unknown ${first.startsWith('-') ? 'option' : 'command'} ${quoted(first)}`);
  }
}

function parseDev(argv: readonly string[]): Invocation {
  // Whatever follows the first `--` belongs to the command, flags and further `--` included.
  const end = argv.indexOf('--');
  const own = end === -1 ? argv : argv.slice(0, end);
  const [program, ...args] = end === -1 ? [] : argv.slice(end + 1);
  // Not strict: that would answer with errors of several lines, in words of its own.
  const { tokens } = parseArgs({
    args: [...own],
    options: { port: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
    strict: false,
    tokens: true,
  });
  let port = DEFAULT_PORT;
  let isHelp = false;
  for (const token of tokens) {
    if (token.kind === 'positional') {
      return mistake(`expected -- before the command ${quoted(token.value)}`, 'dev');
    }
    if (token.kind !== 'option') continue;
    if (token.name === 'help') isHelp = true;
    else if (token.name === 'port') {
      const value = portOf(token.value);
      if (value === undefined) return mistake(`expected --port to be a number from 0 to ${PORT_MAX}`, 'dev');
      port = value;
    } else return mistake(`unknown option ${quoted(token.rawName)}`, 'dev');
  }
  if (isHelp) return { kind: 'help', topic: 'dev' };
  if (end !== -1 && (program === undefined || program === '')) return mistake('expected a command after --', 'dev');
  return { kind: 'dev', port, command: program === undefined ? undefined : [program, ...args] };
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,5}$/.test(text)) return undefined;
  const port = Number(text);
  return port <= PORT_MAX ? port : undefined;
}

function mistake(message: string, topic: Topic = 'runspan'): Invocation {
  return { kind: 'mistake', message, topic };
}
