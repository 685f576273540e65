import { readFileSync } from 'node:fs';
import { text as readStream } from 'node:stream/consumers';
import type { Command } from '@commander-js/extra-typings';
import { RunspanError } from '../base/errors.ts';
import { isObject } from '../base/options.ts';
import { messageOf, visible } from '../base/text.ts';

/** A stream that the command writes to. */
export type Output = Pick<NodeJS.WriteStream, 'write'> &
  Partial<Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'hasColors'>>;

/** How the command ends. */
export type Ending =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'not started'; readonly code: 126 | 127; readonly message: string };

export interface CommandContext {
  readonly stdout: Output;
  readonly stderr: Output;
  /** All arguments after the name of the program. */
  readonly argv: readonly string[];
  /** Sets how the process ends. Without a call, the exit code is 0. */
  endAs(ending: Ending): void;
}

/** The module of a command, which is loaded only if the command is called. */
export interface CommandModule {
  /** Adds the options, the arguments, the help and the action. */
  define(command: Command, context: CommandContext): void;
}

/** A failure that is reported on one line. */
export class CommandFailure extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Invalid arguments. The exit code is 2. */
export class UsageError extends CommandFailure {
  constructor(message: string) {
    super(message, 2);
  }
}

/** Replaces the option names in a message of the library by the names that the user of the command knows. */
export function withCommandNames(error: unknown, names: Readonly<Record<string, string>>): unknown {
  if (!(error instanceof RunspanError)) return error;
  return new CommandFailure(visible(error.message.replace(/`(\w+)`/g, (all, name: string) => names[name] ?? all)));
}

/** Parses an option that may be repeated. */
export function collect(value: string, previous: string[] = []): string[] {
  return [...previous, value];
}

/** Parses an option that may be repeated and accepts only the given values. */
export function collectFrom<Value extends string>(
  option: string,
  values: readonly Value[],
): (value: string, previous: Value[] | undefined) => Value[] {
  return (text, previous = []) => {
    const value = values.find((one) => one === text);
    if (value === undefined) throw new UsageError(`expected ${option} to be one of ${values.join(', ')}`);
    return [...previous, value];
  };
}

export function wholeNumber(option: string, least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : -1;
    if (value < least || value > most)
      throw new UsageError(`expected ${option} to be a number from ${least} to ${most}`);
    return value;
  };
}

export function webAddress(option: string): (text: string) => URL {
  return (text) => {
    const url = parseWebAddress(text);
    if (url === undefined) throw new UsageError(`expected ${option} to be an http or https address`);
    return url;
  };
}

export function parseWebAddress(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined;
}

const DURATIONS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SIZES_BYTES: Readonly<Record<string, number>> = { mb: 1024 ** 2, gb: 1024 ** 3 };

/** Parses for example `90s`, `15m`, `12h` and `30d`. Returns undefined for other text and for 0. */
export function durationMs(text: string): number | undefined {
  return amount(text, DURATIONS_MS);
}

export function duration(option: string): (text: string) => number {
  return (text) => {
    const ms = durationMs(text);
    if (ms === undefined) throw new UsageError(`expected ${option} to be a time, for example 90s, 15m, 12h or 30d`);
    return ms;
  };
}

export function size(option: string): (text: string) => number {
  return (text) => {
    const bytes = amount(text, SIZES_BYTES);
    if (bytes === undefined) throw new UsageError(`expected ${option} to be a size, for example 500mb or 4gb`);
    return bytes;
  };
}

function amount(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const [, count = '', unit = ''] = /^(\d{1,6})([a-z]+)$/.exec(text.toLowerCase()) ?? [];
  return Number(count) > 0 && Object.hasOwn(units, unit) ? Number(count) * (units[unit] ?? 0) : undefined;
}

/** Splits `<ours>=<theirs>`. The second part is undefined if the text contains no `=`. */
export function pairOf(text: string): readonly [name: string, value: string | undefined] {
  const at = text.indexOf('=');
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

/**
 * Parses the JSON value of an option: JSON text, `@` and a file name, or `-` for standard input. Error messages contain
 * no part of the text, because it may contain a secret.
 */
export async function readJson(given: string, option: string): Promise<unknown> {
  const json = (await readText(given, option)).replace(/^\ufeff/, '');
  try {
    return JSON.parse(json);
  } catch (thrown) {
    const [, position] = /position (\d+)/.exec(messageOf(thrown)) ?? [];
    throw new UsageError(`${option} is not valid JSON${position === undefined ? '' : ` (at character ${position})`}`);
  }
}

export async function readJsonObject(given: string, option: string): Promise<Record<string, unknown>> {
  const value = await readJson(given, option);
  if (isObject(value)) return value;
  throw new UsageError(`expected ${option} to be a JSON object`);
}

async function readText(given: string, option: string): Promise<string> {
  if (given === '-' || given === '@-') return readStream(process.stdin);
  if (!given.startsWith('@')) return given;
  try {
    return readFileSync(given.slice(1), 'utf8');
  } catch (thrown) {
    throw new CommandFailure(`${option}: ${messageOf(thrown)}`);
  }
}
