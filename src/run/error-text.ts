import { types } from 'node:util';
import { safeText } from '../base/text.ts';
import { serialize } from './serialize.ts';

/** Causes told of an error, so that a chain that leads back to itself ends. */
const CAUSES_MAX = 8;

/** Characters that are kept of a longer text, of its head and its tail; a marker stands for the rest. */
const HEAD_MAX = 49_152;
const TAIL_MAX = 16_384;

/** How much is told of an object that was thrown and is no Error. */
const OBJECT_LIMITS = { depth: 4, width: 20, nodes: 100, bytes: 2_000 };

/**
 * The `error` field of a run: `Name: message` on the first line, then the stack, then each cause in the same form.
 * The errors in an AggregateError are its causes. A thrown value that is no Error is told by its text, an object as JSON.
 * Never throws, whatever getters the value has.
 */
export function errorText(thrown: unknown): string {
  let text = described(thrown);
  const causes = causesOf(thrown);
  for (let told = 0; causes.length > 0 && told < CAUSES_MAX; told++) {
    const cause = causes.shift();
    text += `\nCaused by: ${described(cause)}`;
    causes.unshift(...causesOf(cause));
  }
  const cut = text.length - HEAD_MAX - TAIL_MAX;
  return cut <= 0 ? text : `${text.slice(0, HEAD_MAX)}[Truncated: ${cut} characters]${text.slice(-TAIL_MAX)}`;
}

function described(thrown: unknown): string {
  try {
    if (!isError(thrown)) return plainText(thrown);
    const name = safeText(thrown.name);
    const message = safeText(thrown.message);
    const headline = name === '' || message === '' ? name + message : `${name}: ${message}`;
    return headline + stackFrames(safeText(thrown.stack ?? ''));
  } catch {
    return '[an error that cannot be read]';
  }
}

/**
 * The lines of a stack below its head, with the line break before them; nothing when it has none. The head is taken when
 * the error is made; name and message may have been set since. The pattern crosses no line, else the many empty lines of
 * a long message would each be tried to the end.
 */
export function stackFrames(stack: string): string {
  const start = stack.search(/\n[ \t]+at /);
  return start < 0 ? '' : stack.slice(start);
}

function causesOf(thrown: unknown): unknown[] {
  try {
    if (!isError(thrown)) return [];
    const inner: unknown = thrown instanceof AggregateError ? thrown.errors : [];
    const errors = Array.isArray(inner) ? inner.slice(0, CAUSES_MAX) : [];
    return thrown.cause === undefined ? errors : [thrown.cause, ...errors];
  } catch {
    return [];
  }
}

/** Also one of another realm, as tests run their programs in. */
function isError(thrown: unknown): thrown is Error {
  return thrown instanceof Error || types.isNativeError(thrown);
}

/** An object that says nothing of itself is told by what it holds. */
function plainText(thrown: unknown): string {
  const text = safeText(thrown);
  const isMute = typeof thrown === 'object' && thrown !== null && /^\[(object|unprintable) /.test(text);
  return isMute ? serialize(thrown, OBJECT_LIMITS) : text;
}
