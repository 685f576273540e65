import { types } from 'node:util';
import { safeText } from '../base/text.ts';
import { setSoon } from '../base/timers.ts';
import { failureText, MASK, type Redaction } from './redaction.ts';
import { placeOf, serialize } from './serialize.ts';
import { redactAndTruncate, truncate } from './truncate.ts';

/** Causes told of an error, so that a chain that leads back to itself ends. */
const CAUSES_MAX = 8;

/** Characters that are kept of a longer text, of its head and its tail; a marker stands for the rest. */
const CHARACTERS_MAX = 65_536;

/** The field, for the paths of a redaction. */
const WAY = ['error'] as const;

const UNREADABLE = '[an error that cannot be read]';

/** How much is told of an object that was thrown and is no Error. */
const OBJECT_LIMITS = { depth: 4, width: 20, nodes: 100, bytes: 2_000 };

/** Characters that the frames of one stack are counted with until they have been read. */
const FRAMES_CHARACTERS = 1_000;

/** Texts that may hold on to their errors at once; beyond it the stacks are read. */
const UNREAD_MAX = 100;

/** An error or one of its causes: what is said of it, and where its stack is read from; without one, that is all. */
interface Told {
  readonly headline: string;
  readonly error: Error | undefined;
}

/**
 * The `error` field of a run: `Name: message` on the first line, then the stack, then each cause in the same form.
 * The errors in an AggregateError are its causes. A thrown value that is no Error is told by its text, an object as JSON.
 * Never throws, whatever getters the value has.
 *
 * Names and messages are those of the moment. Stacks are read when the text is asked for, else in the next turn of the
 * event loop: once a stack has been read, Node no longer knows the place in the source that it shows above an uncaught error.
 */
export class ErrorText {
  readonly #redaction: Redaction | undefined;
  #told: readonly Told[] | undefined;
  #text = '';
  #length = 0;

  constructor(thrown: unknown, redaction?: Redaction) {
    this.#redaction = redaction;
    const told = [toldOf(thrown, redaction)];
    const causes = causesOf(thrown);
    while (causes.length > 0 && told.length <= CAUSES_MAX) {
      const cause = causes.shift();
      told.push(toldOf(cause, redaction));
      causes.unshift(...causesOf(cause));
    }
    for (const { headline } of told) this.#length += headline.length + FRAMES_CHARACTERS;
    this.#told = told;
    const waiting = unread.push(this);
    if (waiting === 1) setSoon(readAll).unref();
    else if (waiting > UNREAD_MAX) readAll();
  }

  /** Its characters, before the stacks are read an estimate. */
  get length(): number {
    return this.#length;
  }

  /** Whether its stacks have been read, or need no reading. */
  get isRead(): boolean {
    return this.#told === undefined || this.#redaction?.hidesAll === true;
  }

  /** The text without stacks, for who must not have them read yet. */
  get headlines(): string {
    const told = this.#told?.map(({ headline }) => ({
      headline: shownError(headline, this.#redaction),
      error: undefined,
    }));
    return told === undefined || this.isRead ? this.toString() : textOf(told, this.#redaction);
  }

  toJSON(): string {
    return this.toString();
  }

  toString(): string {
    if (this.#told === undefined) return this.#text;
    this.#text = this.#redaction?.hidesAll === true ? MASK : textOf(this.#told, this.#redaction);
    this.#told = undefined;
    this.#length = this.#text.length;
    return this.#text;
  }
}

/** A text of an error as it is recorded: without what is to be hidden, and cut where it is too long. */
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

/** Texts that still hold on to their errors. */
let unread: ErrorText[] = [];

function readAll(): void {
  const texts = unread;
  unread = [];
  for (const text of texts) text.toString();
}

function textOf(told: readonly Told[], redaction: Redaction | undefined): string {
  const [first, ...causes] = told.map(({ headline, error }) =>
    error === undefined ? headline : shownError(headline + framesOf(error), redaction),
  );
  let text = first ?? '';
  for (const cause of causes) {
    text += `\nCaused by: ${cause}`;
    if (text.length > CHARACTERS_MAX) return truncate(text, CHARACTERS_MAX);
  }
  return text;
}

function toldOf(thrown: unknown, redaction: Redaction | undefined): Told {
  try {
    if (!isError(thrown)) return { headline: plainText(thrown, redaction), error: undefined };
    const name = nameOf(thrown);
    const message = safeText(thrown.message);
    const headline = name === '' || message === '' ? name + message : `${name}: ${message}`;
    return { headline, error: thrown };
  } catch {
    return { headline: UNREADABLE, error: undefined };
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

function framesOf(error: Error): string {
  try {
    return stackFrames(safeText(error.stack ?? ''));
  } catch {
    return '';
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

/** Whether it says that somebody has called the work off, as what an AbortSignal rejects with does. */
export function isAbort(thrown: unknown): boolean {
  try {
    if (typeof thrown !== 'object' || thrown === null) return false;
    const { name, code } = thrown as { name?: unknown; code?: unknown };
    if (name === 'AbortError' || code === 'ABORT_ERR') return true;
    // The clients of OpenAI and Anthropic have a class of their own for it, whose `name` is that of any error.
    return thrown.constructor?.name === 'APIUserAbortError';
  } catch {
    return false;
  }
}

/** Also one of another realm, as tests run their programs in. */
function isError(thrown: unknown): thrown is Error {
  return thrown instanceof Error || types.isNativeError(thrown);
}

/** An object that says nothing of itself is told by what it holds. */
function plainText(thrown: unknown, redaction: Redaction | undefined): string {
  const text = safeText(thrown);
  const isMute = typeof thrown === 'object' && thrown !== null && /^\[(object|unprintable) /.test(text);
  return isMute ? serialize(thrown, { ...OBJECT_LIMITS, redaction }, WAY) : shownError(text, redaction);
}
