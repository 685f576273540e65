import { ignoreErrors } from '../base/guard.ts';
import { safeText } from '../base/text.ts';
import { nodeModule } from '../platform/node.ts';
import { isError } from './describe.ts';
import { fieldsOf, parsedJson } from './fields.ts';
import { matcherAt } from './redaction/paths.ts';
import { failureText, MASK, type Redaction } from './redaction/redact.ts';
import { serialize } from './serialize.ts';
import { redactAndTruncate, truncate } from './truncate.ts';

/** Maximum number of recorded causes. The limit also ends circular chains of causes. */
const CAUSES_MAX = 8;

const CHARACTERS_MAX = 65_536;

const PATH = ['error'] as const;

const UNREADABLE = '[an error that cannot be read]';

/** Limits for thrown objects that are not Errors and are recorded as JSON. */
const OBJECT_LIMITS = { depth: 4, width: 20, nodes: 100, bytes: 2_000 };

export const CAUSED_BY = 'Caused by: ';

/**
 * Returns the text to record for an error: `Name: message`, then the stack, then each cause in the same form. The
 * errors in an AggregateError are recorded as causes. Other thrown values are converted to a string, or to JSON if the
 * string is `[object …]`. Never throws, even if a getter on the error throws. If `reason`, that of an aborted signal, is a
 * timeout, it is the last cause.
 */
export function errorText(thrown: unknown, redaction?: Redaction, reason?: unknown): string {
  if (redaction?.hidesAll === true) return MASK;
  let text = textOf(thrown, redaction);
  const causes = causesOf(thrown);
  if (isTimeout(reason) && !isTimeout(thrown)) causes.push(reason);
  for (let count = 0; causes.length > 0 && count < CAUSES_MAX; count++) {
    const cause = causes.shift();
    text += `\n${CAUSED_BY}${textOf(cause, redaction)}`;
    if (text.length > CHARACTERS_MAX) return truncate(text, CHARACTERS_MAX);
    causes.unshift(...causesOf(cause));
  }
  return text;
}

export function shownError(text: string, redaction: Redaction | undefined): string {
  if (redaction === undefined) return text.length <= CHARACTERS_MAX ? text : truncate(text, CHARACTERS_MAX);
  if (redaction.hidesAll) return MASK;
  try {
    if (matcherAt(redaction.root, PATH)?.isMatch === true) return redaction.mask(text, PATH);
    return redactAndTruncate(redaction.maskNamed(text, PATH), CHARACTERS_MAX, redaction, PATH);
  } catch (problem) {
    return failureText(problem) ?? MASK;
  }
}

/**
 * Returns the frames of a stack without those of this package. Skips the name and message, because they may have changed
 * since the error was created.
 */
export function stackFrames(stack: string): string {
  const start = stack.search(/\n[ \t]+at /);
  if (start < 0) return '';
  own ??= ignoreErrors(ownPlaces) ?? [];
  const isOther = (line: string): boolean => !own?.some((place) => line.includes(place));
  return stack.slice(start).split('\n').filter(isOther).join('\n');
}

/** How places in the files of this package begin in stacks. */
let own: readonly string[] | undefined;

/** Finds the folder above that of this file. If the file is bundled with an application, its package is another one. */
function ownPlaces(): string[] {
  const [, frame = ''] = `${new Error().stack}`.split('\n');
  const file = frame.slice(frame.indexOf('(') + 1);
  const folder = file.slice(0, -file.split(/[/\\]/).slice(-2).join('/').length);
  const path = `${folder}../package.json`;
  const manifest = nodeModule('node:fs').readFileSync(path.startsWith('file:') ? new URL(path) : path, 'utf8');
  return fieldsOf(parsedJson(manifest)).name === 'runspan' ? [` ${folder}`, `(${folder}`] : [];
}

/** Names of errors that report an abort, in JavaScript, the OpenAI, Anthropic and Mistral clients, LangChain and Next.js. */
const ABORTS = /^(?:AbortError|APIUserAbortError|RequestAbortedError|ModelAbortError|ResponseAborted)$/;

/** For each error of a failed run: the run's trace, and whether the run was cancelled. */
const verdicts = new WeakMap<object, { readonly traceId: string; readonly isAbort: boolean }>();

/**
 * Returns whether a run failed because its caller aborted it. A run that rethrows an error of another run of its trace,
 * or throws an abort with that error as its cause, ends like that run: only the innermost call knows its signal. `reason`
 * is that of the aborted signal. A timeout is not an abort. `otherwise` is the result for an error that reports neither.
 */
export function isAbort(thrown: unknown, traceId: string, reason?: unknown, otherwise?: boolean): boolean {
  const named = isAbortError(thrown, otherwise);
  const known = verdicts.get(thrown as object) ?? (named ? verdicts.get(causesOf(thrown)[0] as object) : undefined);
  const found = known?.traceId === traceId ? known.isAbort : named;
  const verdict = reason === undefined ? found : !isTimeout(thrown) && isAbortError(reason, true);
  if (typeof thrown === 'object' && thrown !== null) verdicts.set(thrown, { traceId, isAbort: verdict });
  return verdict;
}

/** `otherwise` is the result for an error that reports neither an abort nor a timeout. */
export function isAbortError(thrown: unknown, otherwise = false): boolean {
  try {
    const { name, code, cause, constructor: type } = fieldsOf(thrown);
    if (isTimeout(thrown)) return false;
    // In the OpenAI client, the `name` of an `APIUserAbortError` is `Error`.
    if (code === 'ABORT_ERR' || ABORTS.test(String(name)) || ABORTS.test(String(fieldsOf(type).name))) return true;
    return name === 'CohereError' ? isAbortError(cause) : otherwise;
  } catch {
    return otherwise;
  }
}

/** Returns whether an error or one of its causes reports a timeout, for example `HeadersTimeoutError` of undici. */
export function isTimeout(thrown: unknown, causesMax: number = CAUSES_MAX): boolean {
  const isNamed = (): boolean => {
    const { name, cause } = fieldsOf(thrown);
    return String(name).endsWith('TimeoutError') || (causesMax > 0 && isTimeout(cause, causesMax - 1));
  };
  return ignoreErrors(isNamed) === true;
}

/** Returns whether LangGraph threw a value to pause a graph or to go on in another graph, which is no failure. */
export function leavesGraph(thrown: unknown): boolean {
  return ignoreErrors(() => fieldsOf(thrown).is_bubble_up) === true;
}

/** Matches the stack of an abort by `AbortSignal.timeout` on Node. */
const TIMER = /\bTimeout\._onTimeout \(node:internal\/abort_controller:/;

/**
 * Returns the reason of an aborted signal. SDKs abort a signal of their own, without the reason of the caller's signal.
 * The reason is a timeout if the SDK's time `isOver`, if the stack names the timer, or if it is the one of Cohere's SDK.
 */
export function abortReason(signal: AbortSignal | undefined, isOver: boolean = false): unknown {
  if (signal?.aborted !== true) return undefined;
  const { reason } = signal;
  const isTimer = isOver || reason === 'timeout' || ignoreErrors(() => TIMER.test(String(fieldsOf(reason).stack)));
  if (isTimeout(reason) || isTimer !== true) return reason;
  return timeoutError();
}

/** The reason of a timeout that is known only from its effects. */
export function timeoutError(): Error {
  return Object.assign(new Error('The time limit of the call is over'), { name: 'TimeoutError', stack: '' });
}

function textOf(thrown: unknown, redaction: Redaction | undefined): string {
  const text = (): string =>
    isError(thrown) ? shownError(errorLines(thrown, redaction), redaction) : otherText(thrown, redaction);
  return ignoreErrors(text) ?? UNREADABLE;
}

function errorLines(error: Error, redaction: Redaction | undefined): string {
  const name = nameOf(error);
  const text = safeText(error.message);
  // The message is masked alone, because secret names are found only in text that is JSON from start to end.
  const message = redaction?.maskNamed(text, PATH) ?? text;
  const headline = name === '' || message === '' ? name + message : `${name}: ${message}`;
  return headline + (ignoreErrors(() => stackFrames(safeText(error.stack ?? ''))) ?? '');
}

/** Returns the `name` of an error, or the name of its class if the class does not set `name`. */
function nameOf(error: Error): string {
  const name = safeText(error.name);
  if (name !== 'Error' || Object.hasOwn(error, 'name')) return name;
  const className: unknown = ignoreErrors(() => error.constructor.name);
  return typeof className === 'string' && className !== '' ? className : name;
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

function otherText(thrown: unknown, redaction: Redaction | undefined): string {
  const text = safeText(thrown);
  const isMute = typeof thrown === 'object' && thrown !== null && /^\[(object|unprintable) /.test(text);
  return isMute ? serialize(thrown, { ...OBJECT_LIMITS, redaction }, PATH) : shownError(text, redaction);
}

/** Formats an error as one line. Returns undefined if neither value is a string. */
export function errorLine(kind: unknown, message: unknown): string | undefined {
  const parts = [kind, message].filter((part) => typeof part === 'string');
  return parts.length === 0 ? undefined : parts.join(': ');
}
