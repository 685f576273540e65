import { safeText } from '../base/text.ts';
import { isError } from './describe.ts';
import { redactAndTruncate, truncate } from './limits.ts';
import { failureText, MASK, placeOf, type Redaction } from './redact.ts';
import { serialize } from './serialize.ts';

/** Causes of one error, so that a circular chain ends. */
const CAUSES_MAX = 8;

/** A longer text is truncated. */
const CHARACTERS_MAX = 65_536;

const WAY = ['error'] as const;

const UNREADABLE = '[an error that cannot be read]';

/** Limits of a thrown object that is not an Error. */
const OBJECT_LIMITS = { depth: 4, width: 20, nodes: 100, bytes: 2_000 };

/**
 * Returns the `error` field of a run: `Name: message` on the first line, then the stack, then each cause in the same form.
 * The errors of an AggregateError count as its causes. A thrown value that is not an Error is recorded as text, an object as
 * JSON. Never throws, whatever getters the value has.
 */
export function errorText(thrown: unknown, redaction?: Redaction): string {
  if (redaction?.hidesAll === true) return MASK;
  let text = textOf(thrown, redaction);
  const causes = causesOf(thrown);
  for (let count = 0; causes.length > 0 && count < CAUSES_MAX; count++) {
    const cause = causes.shift();
    text += `\nCaused by: ${textOf(cause, redaction)}`;
    if (text.length > CHARACTERS_MAX) return truncate(text, CHARACTERS_MAX);
    causes.unshift(...causesOf(cause));
  }
  return text;
}

/** Returns the text of an error as recorded: masked and truncated. */
export function shownError(text: string, redaction: Redaction | undefined): string {
  if (redaction === undefined) return text.length <= CHARACTERS_MAX ? text : truncate(text, CHARACTERS_MAX);
  if (redaction.hidesAll) return MASK;
  try {
    if (placeOf(redaction.root, WAY)?.isEnd === true) return redaction.mask(text, WAY);
    return redactAndTruncate(redaction.maskNamed(text, WAY), CHARACTERS_MAX, redaction, WAY);
  } catch (problem) {
    return failureText(problem) ?? MASK;
  }
}

/**
 * Returns the frames of a stack, with the line break before them, or an empty text. The head of a stack is ignored: it has
 * the name and the message from the creation of the error. The pattern cannot match across lines, so its time is linear.
 */
export function stackFrames(stack: string): string {
  const start = stack.search(/\n[ \t]+at /);
  return start < 0 ? '' : stack.slice(start);
}

/** Whether a thrown value reports that the work was cancelled, as the reason of an AbortSignal does. */
export function isAbort(thrown: unknown): boolean {
  try {
    if (typeof thrown !== 'object' || thrown === null) return false;
    const { name, code } = thrown as { name?: unknown; code?: unknown };
    if (name === 'AbortError' || code === 'ABORT_ERR') return true;
    // The clients of OpenAI and Anthropic have a class for it that inherits the name `Error`.
    return thrown.constructor?.name === 'APIUserAbortError';
  } catch {
    return false;
  }
}

function textOf(thrown: unknown, redaction: Redaction | undefined): string {
  try {
    return isError(thrown) ? shownError(errorLines(thrown), redaction) : otherText(thrown, redaction);
  } catch {
    return UNREADABLE;
  }
}

function errorLines(error: Error): string {
  const name = nameOf(error);
  const message = safeText(error.message);
  const headline = name === '' || message === '' ? name + message : `${name}: ${message}`;
  try {
    return headline + stackFrames(safeText(error.stack ?? ''));
  } catch {
    return headline;
  }
}

/** Returns `name`, or the class name if `name` is inherited from `Error`, as in OpenAI's client and most programs. */
function nameOf(error: Error): string {
  const name = safeText(error.name);
  if (name !== 'Error' || Object.hasOwn(error, 'name')) return name;
  try {
    const { name: className } = error.constructor;
    return typeof className === 'string' && className !== '' ? className : name;
  } catch {
    return name;
  }
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

/** An object whose text is `[object …]` is recorded as JSON. */
function otherText(thrown: unknown, redaction: Redaction | undefined): string {
  const text = safeText(thrown);
  const isMute = typeof thrown === 'object' && thrown !== null && /^\[(object|unprintable) /.test(text);
  return isMute ? serialize(thrown, { ...OBJECT_LIMITS, redaction }, WAY) : shownError(text, redaction);
}
