import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { isObject } from '../base/options.ts';
import { messageOf } from '../base/text.ts';

/** Words of the command that do not hold, which only shows when they are used. */
export class WordsMistake extends Error {}

/**
 * JSON that words give: the text itself, `@` and the name of a file, or `-` for standard input. It throws in words for the user,
 * which hold nothing of what was read.
 */
export async function readGiven(given: string, option: string): Promise<unknown> {
  const json = (await textOf(given, option)).replace(/^\ufeff/, '');
  try {
    return JSON.parse(json);
  } catch (thrown) {
    // Its message repeats a part of the text, which may be a secret.
    const [, at] = /position (\d+)/.exec(messageOf(thrown)) ?? [];
    throw new WordsMistake(`expected ${option} to be JSON${at === undefined ? '' : `; it is none at character ${at}`}`);
  }
}

/** The same, where it has to be an object. */
export async function readGivenObject(given: string, option: string): Promise<Record<string, unknown>> {
  const value = await readGiven(given, option);
  if (isObject(value)) return value;
  throw new WordsMistake(`expected ${option} to be an object of JSON`);
}

async function textOf(given: string, option: string): Promise<string> {
  if (given === '-' || given === '@-') return text(process.stdin);
  if (!given.startsWith('@')) return given;
  try {
    return readFileSync(given.slice(1), 'utf8');
  } catch (thrown) {
    throw new Error(`${option}: ${messageOf(thrown)}`);
  }
}
