import { parseArgs } from 'node:util';

/** Settings with which the chat was started. */
export interface Settings {
  readonly host: string;
  readonly port: number;
  /** Host names that requests may use, in addition to the address on which the chat listens. */
  readonly allowedHosts: readonly string[];
  readonly data: string | undefined;
  readonly postgres: string | undefined;
  readonly docs: string | undefined;
  readonly wordDelayMs: number;
  readonly tracePort: number;
}

/** A setting is invalid. The message describes the expected value. */
export class SettingsError extends Error {
  override readonly name: string = 'SettingsError';
}

export const USAGE: string = `usage: npm start -- [options], or npm run chat -- [options] in the checkout of runspan

  --port N           port of the chat (4888; 0 for any free port)
  --host ADDRESS     address of the chat (127.0.0.1; the chat has no sign-in, so put a proxy with sign-in in front of any other address)
  --allow-host NAME  another host name of the chat, such as chat.example; repeatable; or CHAT_ALLOWED_HOSTS, separated by commas
  --data DIR         folder for threads, notes and traces (default: memory)
  --postgres URL     PostgreSQL for threads, for several instances; or CHAT_POSTGRES_URL
  --docs DIR         folder of Markdown files to answer questions about (default: the documentation of runspan)
  --word-delay MS    delay between the words of the built-in rules (20)
  --trace-port N     port of the receiver for traces (4777), which is started unless RUNSPAN_ENDPOINT is set
  --help

Set OPENAI_API_KEY or OPENAI_BASE_URL, and OPENAI_MODEL, for answers from a model. Otherwise, answers come from built-in rules.
`;

/**
 * Reads the settings from the command line. Missing options are read from the environment. Returns undefined for
 * `--help`. Throws a SettingsError if a setting is invalid.
 */
export function readSettings(argv: readonly string[], env: NodeJS.ProcessEnv): Settings | undefined {
  const values = parse(argv);
  if (values.help === true) return undefined;
  // Empty values are rejected: an empty host would mean all addresses, and an empty folder the current folder.
  for (const name of ['host', 'data', 'postgres', 'docs'] as const) {
    if (values[name] === '') throw new SettingsError(`Expected a value for --${name}.`);
  }
  return {
    host: values.host ?? '127.0.0.1',
    port: wholeNumber('--port', values.port, 4_888, 65_535),
    allowedHosts: values['allow-host'] ?? listOf(env.CHAT_ALLOWED_HOSTS),
    data: values.data,
    postgres: values.postgres ?? (env.CHAT_POSTGRES_URL || undefined),
    docs: values.docs,
    wordDelayMs: wholeNumber('--word-delay', values['word-delay'], 20, 10_000),
    tracePort: wholeNumber('--trace-port', values['trace-port'], 4_777, 65_535),
  };
}

function parse(argv: readonly string[]) {
  const text = { type: 'string' } as const;
  const options = {
    host: text,
    'allow-host': { type: 'string', multiple: true } as const,
    port: text,
    data: text,
    postgres: text,
    docs: text,
    'word-delay': text,
    'trace-port': text,
    help: { type: 'boolean', short: 'h' } as const,
  };
  try {
    return parseArgs({ args: [...argv], options }).values;
  } catch (error) {
    const [problem] = (error as Error).message.split(/\. |\.?\n/);
    throw new SettingsError(`${problem}. See --help for the options.`);
  }
}

function listOf(text = ''): string[] {
  return text.split(',').flatMap((name) => name.trim() || []);
}

function wholeNumber(name: string, text: string | undefined, usual: number, max: number): number {
  if (text === undefined) return usual;
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= max) return value;
  throw new SettingsError(`Expected ${name} to be a whole number from 0 to ${max}, got ${JSON.stringify(text)}.`);
}
