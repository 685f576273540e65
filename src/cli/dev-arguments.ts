import { parseArgs } from 'node:util';
import type { Command } from './child.ts';
import { quoted } from './terminal-text.ts';

/** `runspan dev …` */
export interface DevInvocation {
  readonly kind: 'dev';
  readonly port: number;
  readonly host: string | undefined;
  /** Other names under which it is reached. */
  readonly allowedHosts: readonly string[];
  /** The file that keeps the runs; the default's when it is not given. */
  readonly store: string | undefined;
  /** Runs are kept in memory alone. */
  readonly isInMemory: boolean;
  readonly maxAgeMs: number | undefined;
  readonly maxBytes: number | undefined;
  /** The file that has the prices of models. */
  readonly prices: string | undefined;
  readonly isStrict: boolean;
  /** Traces are printed as JSON, one on a line. */
  readonly isJson: boolean;
  /** None when the receiver runs by itself. */
  readonly command: Command | undefined;
}

type Parsed =
  | DevInvocation
  | { readonly kind: 'help'; readonly topic: 'dev' }
  | { readonly kind: 'mistake'; readonly message: string; readonly topic: 'dev' };

export const DEFAULT_PORT = 4777;

const PORT_MAX = 65_535;

export const devUsage: string = `Usage: runspan dev [options] [-- command args]

Starts a receiver on this machine, serves a page where its runs can be read, and draws each trace in
the terminal when it has finished. With a command, runs it with an environment that sends its runs
to the receiver, and ends as the command ends; without one, runs until Ctrl-C.

Options:
  --port <n>           where to listen; 0 takes any free port (default ${DEFAULT_PORT})
  --store <file>       keep the runs in this file (default RUNSPAN_STORE, else ~/.runspan/runs.db)
  --memory             keep them in memory, until the receiver ends
  --max-age <time>     forget traces of which nothing came for so long, as 12h or 30d (default 30d)
  --max-size <size>    forget the oldest beyond it, as 500mb or 4gb (default 4gb)
  --prices <file>      what models cost for a million tokens, where runs do not tell their cost:
                       { "a-model": { "input": 2.5, "output": 10 }, … }
  --strict             take the documented interface alone
  --json               print each trace as JSON on a line instead of a drawing,
                       and what the command prints on standard error
  --host <address>     listen beyond this machine; needs RUNSPAN_RECEIVER_KEY
  --allow-host <name>  a name under which a proxy reaches the receiver; more than once
  -h, --help           print this

With RUNSPAN_RECEIVER_KEY whoever sends or reads has to give that key.

The command gets RUNSPAN_ENDPOINT and RUNSPAN_TRACING, and for programs that use the langsmith
package LANGSMITH_ENDPOINT, LANGSMITH_TRACING and, when it is unset, LANGSMITH_API_KEY.

Exit code:
  that of the command, or its signal; 0 after Ctrl-C without a command; 1 when the receiver cannot
  listen, or the file cannot be used; 2 for a mistake in the arguments; 126 and 127 when the command
  cannot be started
`;

const OPTIONS = {
  port: { type: 'string' },
  host: { type: 'string' },
  'allow-host': { type: 'string' },
  store: { type: 'string' },
  memory: { type: 'boolean' },
  'max-age': { type: 'string' },
  'max-size': { type: 'string' },
  prices: { type: 'string' },
  strict: { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Reads the arguments after `runspan dev`. Never throws. */
export function parseDev(argv: readonly string[]): Parsed {
  // Whatever follows the first `--` belongs to the command, flags and further `--` included.
  const end = argv.indexOf('--');
  const [program, ...args] = end === -1 ? [] : argv.slice(end + 1);
  const { tokens } = parseArgs({
    args: end === -1 ? [...argv] : argv.slice(0, end),
    options: OPTIONS,
    strict: false,
    tokens: true,
  });
  const values = new Map<string, string>();
  const flags = new Set<string>();
  const allowedHosts: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') return mistake(`expected -- before the command ${quoted(token.value)}`);
    if (token.kind !== 'option') continue;
    if (!Object.hasOwn(OPTIONS, token.name)) return mistake(`unknown option ${quoted(token.rawName)}`);
    if (OPTIONS[token.name as keyof typeof OPTIONS].type === 'boolean') {
      if (token.value !== undefined) return mistake(`expected no value for --${token.name}`);
      flags.add(token.name);
    } else if (!token.value && token.name !== 'port') return mistake(`expected a value for --${token.name}`);
    else if (token.name === 'allow-host') allowedHosts.push(token.value ?? '');
    else values.set(token.name, token.value ?? '');
  }
  const port = values.has('port') ? portOf(values.get('port') ?? '') : DEFAULT_PORT;
  if (port === undefined) return mistake(`expected --port to be a number from 0 to ${PORT_MAX}`);
  if (flags.has('help')) return { kind: 'help', topic: 'dev' };
  if (end !== -1 && !program) return mistake('expected a command after --');
  if (flags.has('memory') && values.has('store')) return mistake('--memory and --store contradict each other');
  const [maxAgeMs, maxBytes] = [
    amountOf(values.get('max-age'), AGES_MS),
    amountOf(values.get('max-size'), SIZES_BYTES),
  ];
  if (maxAgeMs === 'none') return mistake('expected --max-age to be like 12h or 30d');
  if (maxBytes === 'none') return mistake('expected --max-size to be like 500mb or 4gb');
  return {
    kind: 'dev',
    port,
    host: values.get('host'),
    allowedHosts,
    store: values.get('store'),
    isInMemory: flags.has('memory'),
    maxAgeMs,
    maxBytes,
    prices: values.get('prices'),
    isStrict: flags.has('strict'),
    isJson: flags.has('json'),
    command: program ? [program, ...args] : undefined,
  };
}

const AGES_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };
const SIZES_BYTES: Readonly<Record<string, number>> = { mb: 1024 ** 2, gb: 1024 ** 3 };

/** A whole number and its unit; 'none' for what is no amount, and for nothing at all of something. */
function amountOf(text: string | undefined, units: Readonly<Record<string, number>>): number | 'none' | undefined {
  if (text === undefined) return undefined;
  const [, count = '', unit = ''] = /^(\d{1,6})([a-z]+)$/.exec(text.toLowerCase()) ?? [];
  return Number(count) > 0 && Object.hasOwn(units, unit) ? Number(count) * (units[unit] ?? 0) : 'none';
}

function portOf(text: string): number | undefined {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
  return port <= PORT_MAX ? port : undefined;
}

function mistake(message: string): Parsed {
  return { kind: 'mistake', message, topic: 'dev' };
}
