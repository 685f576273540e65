import type { Command } from './child.ts';
import { lastOf, readWords, splitCommand } from './words.ts';

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
  /** Whether the printing of traces is turned off. */
  readonly isQuiet: boolean;
  /** The command to run, or undefined if only the receiver runs. */
  readonly command: Command | undefined;
}

type Parsed =
  | DevInvocation
  | { readonly kind: 'help'; readonly topic: 'dev' }
  | { readonly kind: 'mistake'; readonly message: string; readonly topic: 'dev' };

export const DEFAULT_PORT = 4777;

const PORT_MAX = 65_535;
const PORT_EXPECTED = `expected --port to be a number from 0 to ${PORT_MAX}`;

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
  --strict             reject requests that deviate from the documented interface, with the reason
  --json               print each trace as JSON on a line instead of a drawing,
                       and what the command prints on standard error
  --quiet              print no traces
  --host <address>     listen beyond this machine; needs RUNSPAN_RECEIVER_KEY, 16 characters or more
  --allow-host <name>  a name under which a proxy reaches the receiver; more than once
  -h, --help           print this

With RUNSPAN_RECEIVER_KEY whoever sends or reads has to give that key. RUNSPAN_RECEIVER_WRITE_KEY
adds a key that sends runs and reads nothing.

The command gets RUNSPAN_ENDPOINT and RUNSPAN_TRACING, and for programs that use the langsmith
package LANGSMITH_ENDPOINT, LANGSMITH_TRACING and, when it is unset, LANGSMITH_API_KEY. A key of the
receiver is RUNSPAN_API_KEY there: the write key if it is set, and then no other.

Exit code:
  that of the command, or its signal; 0 after Ctrl-C without a command; 1 when the receiver cannot
  listen, or the file cannot be used; 2 for a mistake in the arguments; 126 and 127 when the command
  cannot be started
`;

/** Reads the arguments after `runspan dev`. Never throws. */
export function parseDev(argv: readonly string[]): Parsed {
  const { words: given, command } = splitCommand(argv);
  const words = readWords(given, {
    texts: ['port', 'host', 'allow-host', 'store', 'max-age', 'max-size', 'prices'],
    flags: ['memory', 'strict', 'json', 'quiet'],
    missing: { port: PORT_EXPECTED },
    stray: (word) => `expected -- before the command ${word}`,
  });
  if ('wrong' in words) return mistake(words.wrong);
  const { flags, values } = words;
  const port = portOf(lastOf(words, 'port') ?? String(DEFAULT_PORT));
  if (port === undefined) return mistake(PORT_EXPECTED);
  if (flags.has('help')) return { kind: 'help', topic: 'dev' };
  if (command === 'none') return mistake('expected a command after --');
  if (flags.has('memory') && values.has('store')) return mistake('--memory and --store contradict each other');
  if (flags.has('json') && flags.has('quiet')) return mistake('--json and --quiet contradict each other');
  const maxAgeMs = amountOf(lastOf(words, 'max-age'), AGES_MS);
  const maxBytes = amountOf(lastOf(words, 'max-size'), SIZES_BYTES);
  if (maxAgeMs === 'none') return mistake('expected --max-age to be like 12h or 30d');
  if (maxBytes === 'none') return mistake('expected --max-size to be like 500mb or 4gb');
  return {
    kind: 'dev',
    port,
    host: lastOf(words, 'host'),
    allowedHosts: values.get('allow-host') ?? [],
    store: lastOf(words, 'store'),
    isInMemory: flags.has('memory'),
    maxAgeMs,
    maxBytes,
    prices: lastOf(words, 'prices'),
    isStrict: flags.has('strict'),
    isJson: flags.has('json'),
    isQuiet: flags.has('quiet'),
    command,
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
