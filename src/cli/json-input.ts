import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { isObject } from '../base/options.ts';
import { messageOf } from '../base/text.ts';
import { CommandFailure, UsageError } from './command-line.ts';

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
  if (given === '-' || given === '@-') return text(process.stdin);
  if (!given.startsWith('@')) return given;
  try {
    return readFileSync(given.slice(1), 'utf8');
  } catch (thrown) {
    throw new CommandFailure(`${option}: ${messageOf(thrown)}`);
  }
}
