import { cut } from '../../../base/text.ts';

const LENGTH_MAX = 200;
const CAUSE_LENGTH_MAX = 100;
/** Number of characters of an error that are searched for causes. An error may be megabytes long. */
const SEARCHED_MAX = 32_768;

/** The line of a cause, as runspan and Java write it, and as Node prints it. */
const CAUSE = /^[ \t]*(?:Caused by|\[cause\]): (.+)$/gm;

/**
 * Returns the first line of an error and that of its deepest cause, for example `TypeError: fetch failed ← Error: connect
 * ECONNREFUSED 127.0.0.1:80`. The cause is omitted if the first line contains its message.
 */
export function headlineOf(error: string): string {
  const text = error.trimStart().slice(0, SEARCHED_MAX) || 'error without a message';
  const [first = ''] = text.split(/\r?\n|\r/, 1);
  // Node prints an error without a stack in brackets.
  const line = first.replace(/^\[(.+)\] \{$/, '$1');
  const cause = [...text.matchAll(CAUSE)].at(-1)?.[1]?.trimEnd();
  if (cause === undefined || line.includes(cause.replace(/^[\w.$]+: /, ''))) return cut(line, LENGTH_MAX);
  const shown = cut(cause, CAUSE_LENGTH_MAX);
  return `${cut(line, LENGTH_MAX - shown.length - ' ← …'.length)} ← ${shown}`;
}
