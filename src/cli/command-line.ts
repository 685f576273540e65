import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text as readStream } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { RunspanError } from '../base/errors.ts';
import { messageOf, visible } from '../base/text.ts';
import { isObject } from '../config/checker.ts';

export const PACKAGE_FOLDER: string = fileURLToPath(new URL('../../', import.meta.url));

/** Returns the URL of a documentation page, because the npm package does not contain the documentation. */
export function documentationUrl(page: string): string {
  const { repository } = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'package.json'), 'utf8'));
  return `${repository.url.replace(/^git\+|\.git$/g, '')}/blob/main/${page}`;
}

export type Output = Pick<NodeJS.WriteStream, 'write'> &
  Partial<Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'hasColors'>>;

/** How the CLI process ends: with an exit code, or by sending itself a signal. */
export type Ending = number | NodeJS.Signals;

export interface CommandContext {
  readonly stdout: Output;
  readonly stderr: Output;
  /** All command-line arguments after the program name. */
  readonly argv: readonly string[];
  /** Sets how the process ends. Default: exit code 0. */
  endAs(ending: Ending): void;
}

/** Implements a command. Loaded only when the user runs the command. */
export interface CommandModule {
  define(command: Command, context: CommandContext): void;
}

/** An error that the CLI prints as one line, without a stack trace. */
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

/** Replaces library option names in an error message with CLI option names. */
export function withCommandNames(error: unknown, names: Readonly<Record<string, string>>): unknown {
  if (!(error instanceof RunspanError)) return error;
  const message = visible(error.message.replace(/`(\w+)`/g, (all, name: string) => names[name] ?? all));
  return isInvalidArgument(error) ? new UsageError(message) : new CommandFailure(message);
}

/** Returns whether the library rejected a value that the user passed to the command. */
export function isInvalidArgument(error: unknown): boolean {
  return error instanceof RunspanError && /^RUNSPAN_INVALID_(OPTION|REQUEST)$/.test(error.code);
}

export type OptionsOf<Define extends (command: Command) => { opts(): unknown }> = ReturnType<
  ReturnType<Define>['opts']
>;

export function collect(value: string, previous: string[] = []): string[] {
  return [...previous, value];
}

/** Returns a parser for a repeatable option that accepts only the given values. */
export function collectFrom<Value extends string>(
  values: readonly Value[],
): (text: string, previous: Value[] | undefined) => Value[] {
  return (text, previous = []) => {
    const value = values.find((one) => one === text);
    if (value === undefined) throw new InvalidArgumentError(`Allowed choices are ${values.join(', ')}.`);
    return [...previous, value];
  };
}

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : -1;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`Expected a number from ${least} to ${most}.`);
  };
}

export function webAddress(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new InvalidArgumentError('Expected an http or https URL.');
}

const DURATIONS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SIZES_BYTES: Readonly<Record<string, number>> = { mb: 1024 ** 2, gb: 1024 ** 3 };

export function durationArgument(text: string): number {
  const ms = durationMs(text);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError('Expected a time, for example 90s, 15m, 12h or 30d.');
}

/** Parses a duration to milliseconds. Returns undefined if the duration is 0 or invalid. */
export function durationMs(text: string): number | undefined {
  return amount(text, DURATIONS_MS);
}

export function size(text: string): number {
  const bytes = sizeBytes(text);
  if (bytes !== undefined) return bytes;
  throw new InvalidArgumentError('Expected a size, for example 500mb or 4gb.');
}

/** Parses a size to bytes. Returns undefined if the size is 0 or invalid. */
export function sizeBytes(text: string): number | undefined {
  return amount(text, SIZES_BYTES);
}

function amount(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const [, count = '', unit = ''] = /^(\d{1,6})([a-z]+)$/.exec(text.toLowerCase()) ?? [];
  return Number(count) > 0 && Object.hasOwn(units, unit) ? Number(count) * (units[unit] ?? 0) : undefined;
}

/** Splits `name=value`. If there is no `=`, the value is undefined. */
export function pairOf(text: string): readonly [name: string, value: string | undefined] {
  const [name = '', value] = text.split(/=(.*)/s);
  return [name, value];
}

/**
 * Reads a JSON object from a file, or from standard input if `path` is `-`. Error messages never quote the JSON, because
 * it may contain a secret.
 */
export async function readJsonObject(path: string, option: string): Promise<Record<string, unknown>> {
  const json = (await readText(path, option)).replace(/^\ufeff/, '');
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (thrown) {
    const [, position] = /position (\d+)/.exec(messageOf(thrown)) ?? [];
    throw new UsageError(`${option} is not valid JSON${position === undefined ? '' : ` (at character ${position})`}`);
  }
  if (isObject(value)) return value;
  throw new UsageError(`expected ${option} to be a JSON object`);
}

async function readText(path: string, option: string): Promise<string> {
  if (path === '-') return readStream(process.stdin);
  try {
    return readFileSync(path, 'utf8');
  } catch (thrown) {
    throw new CommandFailure(`${option}: ${messageOf(thrown)}`);
  }
}

export const STOP_SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Resolves with exit code 0 when the process receives a signal to stop. A second signal ends the process immediately. */
export function untilStopped(): Promise<Ending> {
  return new Promise((resolve) => {
    const stop = (): void => {
      // Without these listeners, a second signal ends the process immediately.
      for (const signal of STOP_SIGNALS) process.off(signal, stop);
      resolve(0);
    };
    for (const signal of STOP_SIGNALS) process.on(signal, stop);
  });
}
