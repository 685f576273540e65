import { stackFrames } from '../payload/errors.ts';
import { langfuseError } from './conventions/langfuse.ts';
import { type Attributes, number, text } from './conventions/values.ts';
import type { SpanEventLike, SpanLike } from './span-like.ts';

/** Of the status codes, the one that says that a span has failed. */
const ERROR = 2;

/** Of the status codes of HTTP, the first one of a failure. */
const FAILED = 400;

/** Says of a span that LangSmith's SDK has made it. */
const LANGSMITH = 'langsmith.traceable';

const EXCEPTION_KEYS: readonly string[] = ['exception.type', 'exception.message', 'exception.stacktrace'];

/** Picks the attributes of a log record that describe an exception. */
export function exceptionFields(attributes: Attributes): Attributes {
  return Object.fromEntries(EXCEPTION_KEYS.map((key) => [key, text(attributes[key])]));
}

/**
 * Returns the `error` field of a run if its span failed: `Type: message`, followed by the stack. The type, message and
 * stack are taken from the last exception among the span's events, or else from `logged`. An exception alone is not a
 * failure, because the application may have handled it.
 */
export function spanError(span: SpanLike, logged?: Attributes): string | undefined {
  const event = span.events.findLast(({ name }) => name === 'exception');
  const exception = event ?? (logged && { attributes: logged });
  if (exception !== undefined && span.attributes[LANGSMITH] === 'true') return langSmithError(exception);
  if (span.status.code !== ERROR) return langfuseError(span.attributes);
  const said = text(span.status.message);
  const type = typeOf(span.attributes);
  if (exception === undefined) return headline(type, said);
  const thrown = exceptionText(exception, type);
  const message = text(exception.attributes?.['exception.message']);
  const isRepeated = said === undefined || thrown.includes(said) || said === message;
  return isRepeated ? thrown : `${headline(type, said)}\nCaused by: ${thrown}`;
}

/**
 * The SDK of LangSmith gives each span the status OK while its run is still at work, which is final, so that ERROR comes too
 * late. It records an exception for a run that has failed alone, made of the error's text and with a stack of its own.
 */
function langSmithError(exception: Pick<SpanEventLike, 'attributes'>): string {
  return text(exception.attributes?.['exception.message']) ?? exceptionText(exception, undefined);
}

/** Of requests the status may be all there is, and a bare number says little. */
function typeOf(attributes: Attributes): string | undefined {
  const type = text(attributes['error.type']);
  const status = number(attributes['http.response.status_code'] ?? attributes['http.status_code']) ?? 0;
  const isStatus = status >= FAILED && (type === undefined || type === String(status));
  return isStatus ? `HTTP ${status}` : type;
}

function exceptionText({ attributes = {} }: Pick<SpanEventLike, 'attributes'>, errorType: string | undefined): string {
  const type = text(attributes['exception.type']) ?? errorType;
  const stack = text(attributes['exception.stacktrace']);
  const message = text(attributes['exception.message']) ?? stack?.split('\n', 1)[0];
  return headline(type, message) + frames(stack);
}

function headline(type: string | undefined, message: string | undefined): string {
  if (type === undefined || message === undefined) return type ?? message ?? 'Error';
  return message.startsWith(type) ? message : `${type}: ${message}`;
}

/** Stacks of other languages are not told apart from their headline, and kept whole. */
function frames(stack: string | undefined): string {
  if (stack === undefined) return '';
  return stackFrames(stack) || `\n${stack}`;
}
