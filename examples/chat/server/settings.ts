import { parseArgs } from 'node:util';

/** How the chat was started. */
export interface Settings {
  readonly host: string;
  readonly port: number;
  /** Host names that requests may use in addition to the address that the chat listens on. */
  readonly allowedHosts: readonly string[];
  readonly data: string | undefined;
  readonly postgres: string | undefined;
  readonly redis: string | undefined;
  /** A folder of Markdown files that is asked about. */
  readonly docs: string | undefined;
  /** Of the local model. */
  readonly wordDelayMs: number;
  /** Of the receiver that is started beside the chat; not where traces go elsewhere. */
  readonly tracePort: number;
}

/** What was given cannot be used; the message says what can. */
export class SettingsError extends Error {
  override readonly name: string = 'SettingsError';
}

export const USAGE: string = `usage: npm start -- [options], or npm run chat -- [options] in the checkout of runspan

  --port N           where the chat listens (4888; 0 is any free port)
  --host ADDRESS     on which address (127.0.0.1; there is no sign-in, so put one before any other)
  --allow-host NAME  a host name under which others reach it, such as chat.example; repeatable; or CHAT_ALLOWED_HOSTS, with commas
  --data DIR         keep threads, notes and traces in a folder (else in memory)
  --postgres URL     keep threads in PostgreSQL, for several instances; or CHAT_POSTGRES_URL
  --redis URL        beside it, the events of live runs in Redis; or CHAT_REDIS_URL
  --docs DIR         the Markdown files to be asked about (the documentation of runspan)
  --word-delay MS    between the words of the local model (20)
  --trace-port N     where the receiver of the traces listens (4777); it is started unless RUNSPAN_ENDPOINT is set
  --help

A model answers where OPENAI_API_KEY or OPENAI_BASE_URL is set, with OPENAI_MODEL; else a few rules do, and say so.
`;

/** Reads the command line, and the environment for what it leaves out. Throws a SettingsError. Undefined where help is asked for. */
export function readSettings(argv: readonly string[], env: NodeJS.ProcessEnv): Settings | undefined {
  const values = parse(argv);
  if (values.help === true) return undefined;
  checkService(env.OPENAI_BASE_URL);
  return {
    host: values.host ?? '127.0.0.1',
    port: whole('--port', values.port, 4_888, 65_535),
    allowedHosts: values['allow-host'] ?? listOf(env.CHAT_ALLOWED_HOSTS),
    data: values.data,
    postgres: values.postgres ?? (env.CHAT_POSTGRES_URL || undefined),
    redis: values.redis ?? (env.CHAT_REDIS_URL || undefined),
    docs: values.docs,
    wordDelayMs: whole('--word-delay', values['word-delay'], 20, 10_000),
    tracePort: whole('--trace-port', values['trace-port'], 4_777, 65_535),
  };
}

interface Values {
  readonly [option: string]: string | boolean | string[] | undefined;
  readonly host?: string;
  readonly 'allow-host'?: string[];
  readonly port?: string;
  readonly data?: string;
  readonly postgres?: string;
  readonly redis?: string;
  readonly docs?: string;
  readonly 'word-delay'?: string;
  readonly 'trace-port'?: string;
  readonly help?: boolean;
}

function parse(argv: readonly string[]): Values {
  const text = { type: 'string' } as const;
  const options = {
    host: text,
    'allow-host': { type: 'string', multiple: true } as const,
    port: text,
    data: text,
    postgres: text,
    redis: text,
    docs: text,
    'word-delay': text,
    'trace-port': text,
  };
  let values: Values;
  try {
    const args = joinedNumbers(argv);
    values = parseArgs({ args, options: { ...options, help: { type: 'boolean', short: 'h' } } }).values;
  } catch (error) {
    // What follows is how it would be said to a program that takes more.
    const [what = ''] = (error as Error).message.split(/\. |\.?\n/);
    const lacking = /^Option '(--[\w-]+)[^']*' argument/.exec(what)?.[1];
    throw new SettingsError(`${lacking === undefined ? what : `${lacking} needs a value`}; --help lists the options`);
  }
  // No host would be every address, and no folder the one that the chat is started in.
  for (const name of ['host', 'data', 'postgres', 'redis', 'docs']) {
    if (values[name] === '') throw new SettingsError(`--${name} needs a value`);
  }
  return values;
}

function listOf(text = ''): string[] {
  return text.split(',').flatMap((name) => name.trim() || []);
}

/** A number below zero that follows an option is its value, and refused as such: the parser takes it for another option. */
function joinedNumbers(argv: readonly string[]): string[] {
  const args: string[] = [];
  for (const arg of argv) {
    const option = args.at(-1) ?? '';
    if (/^-\d/.test(arg) && /^--[\w-]+$/.test(option)) args.splice(-1, 1, `${option}=${arg}`);
    else args.push(arg);
  }
  return args;
}

/** The client of the service says nothing of either until somebody asks something. */
function checkService(address: string | undefined): void {
  if (!address) return;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new SettingsError('OPENAI_BASE_URL has to be an address that begins with http:// or https://');
  if (url.username !== '' || url.password !== '')
    throw new SettingsError(
      'OPENAI_BASE_URL has a user or a password, which it must not; a key goes into OPENAI_API_KEY',
    );
}

function whole(name: string, text: string | undefined, usual: number, max: number): number {
  if (text === undefined) return usual;
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= max) return value;
  throw new SettingsError(`${name} has to be a whole number from 0 to ${max}; it is ${JSON.stringify(text)}`);
}
