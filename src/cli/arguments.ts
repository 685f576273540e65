import { parseArgs } from 'node:util';
import { visible } from './visible.ts';

/** What the command line asks for. */
export type Invocation =
  | { readonly kind: 'help'; readonly topic: 'runspan' | 'dev' }
  | { readonly kind: 'version' }
  | {
      readonly kind: 'dev';
      readonly port: number;
      /** The program to start and its arguments; none when the receiver runs by itself. */
      readonly command: readonly [string, ...string[]] | undefined;
    }
  | { readonly kind: 'mistake'; readonly message: string; readonly topic: 'runspan' | 'dev' };

export const DEFAULT_PORT = 4777;

const PORT_MAX = 65_535;

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

function mistake(message: string, topic: 'runspan' | 'dev' = 'runspan'): Invocation {
  return { kind: 'mistake', message, topic };
}

/** As messages show it. */
export function quoted(text: string): string {
  return `"${visible(text.length > 80 ? `${text.slice(0, 80)}…` : text)}"`;
}
