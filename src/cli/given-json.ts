import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { messageOf } from '../base/text.ts';

/**
 * An object of JSON that words give: the text itself, `@` and the name of a file, or `-` for standard input. It throws in words for
 * the user, which hold nothing of what was read.
 */
export async function readGiven(given: string, option: string): Promise<Record<string, unknown>> {
  const json = await textOf(given, option);
  const value = parsed(json, option);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`expected ${option} to be an object of JSON`);
  }
  return value as Record<string, unknown>;
}

async function textOf(given: string, option: string): Promise<string> {
  if (given === '-') return text(process.stdin);
  if (!given.startsWith('@')) return given;
  try {
    return readFileSync(given.slice(1), 'utf8');
  } catch (thrown) {
    throw new Error(`${option}: ${messageOf(thrown)}`);
  }
}

/** The error of `JSON.parse` repeats a part of the text, which may be a secret. */
function parsed(json: string, option: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new Error(`expected ${option} to be JSON`);
  }
}
