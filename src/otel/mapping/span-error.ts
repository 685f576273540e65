import { firstLine } from '../../base/text.ts';
import { CAUSED_BY, isAbortError, isTimeout, stackFrames } from '../../payload/errors.ts';
import { langfuseError } from '../conventions/langfuse.ts';
import { type Attributes, number, text } from '../conventions/values.ts';
import type { SpanEventLike, SpanLike } from '../span-like.ts';

const ERROR = 2;

/** The lowest HTTP status code that indicates a failure. */
const FAILED = 400;

/** An attribute that LangSmith's SDK sets on all its spans. */
const LANGSMITH = 'langsmith.traceable';

const EXCEPTION_KEYS: readonly string[] = ['exception.type', 'exception.message', 'exception.stacktrace'];

/** Returns the attributes of a log record that describe an exception. */
export function exceptionFields(attributes: Attributes): Attributes {
  return Object.fromEntries(EXCEPTION_KEYS.map((key) => [key, text(attributes[key])]));
}

/**
 * Returns the error of a failed span: `Type: message`, followed by the stack. Type, message and stack come from the
 * last exception in the span's events, or from `logged`. An exception alone is not a failure, because the application
 * may have handled it.
 */
export function spanError(span: SpanLike, logged?: Attributes): string | undefined {
  const event = span.events.findLast(({ name }) => name === 'exception');
  const exception = event ?? (logged && { attributes: logged });
  // LangSmith's SDK records an exception only for failed runs, and sets the status OK while a run is still open, after
  // which OpenTelemetry ignores ERROR. The stack is the SDK's own.
  if (exception !== undefined && span.attributes[LANGSMITH] === 'true')
    return text(exception.attributes?.['exception.message']) ?? exceptionText(exception, undefined);
  if (span.status.code !== ERROR) return langfuseError(span.attributes);
  const status = text(span.status.message);
  const type = typeOf(span.attributes);
  if (exception === undefined) return headline(type, status);
  const thrown = exceptionText(exception, type);
  const message = text(exception.attributes?.['exception.message']);
  const isRepeated = status === undefined || thrown.includes(status) || status === message;
  return isRepeated ? thrown : `${headline(type, status)}\n${CAUSED_BY}${thrown}`;
}

/** Returns whether a failed span reports that the caller aborted the call. */
export function isAbortedSpan({ attributes, events, status }: SpanLike, logged?: Attributes): boolean {
  const exception = events.findLast(({ name }) => name === 'exception')?.attributes ?? logged ?? {};
  // OpenTelemetry records the code of a `DOMException` as its type. The stack begins with its name.
  const thrown = text(exception['exception.stacktrace'])?.split(':', 1)[0];
  const names = [attributes['error.type'], exception['exception.type'], thrown];
  // If the message of the status does not contain that of the exception, another error may be the failure.
  const message = text(exception['exception.message']);
  if (message !== undefined && text(status.message)?.includes(message) === false) names.splice(1);
  return names.some((name) => isAbortError({ name })) && !names.some((name) => isTimeout({ name }));
}

/** Returns the error type. If only an HTTP status is known, returns for example `HTTP 503`. */
function typeOf(attributes: Attributes): string | undefined {
  const type = text(attributes['error.type']);
  const status = number(attributes['http.response.status_code'] ?? attributes['http.status_code']) ?? 0;
  const isStatus = status >= FAILED && (type === undefined || type === String(status));
  return isStatus ? `HTTP ${status}` : type;
}

function exceptionText({ attributes = {} }: Pick<SpanEventLike, 'attributes'>, errorType: string | undefined): string {
  const type = text(attributes['exception.type']) ?? errorType;
  const stack = text(attributes['exception.stacktrace']);
  const message = text(attributes['exception.message']) ?? (stack && firstLine(stack));
  // Stacks from other languages are added unchanged.
  return headline(type, message) + (stack === undefined ? '' : stackFrames(stack) || `\n${stack}`);
}

function headline(type: string | undefined, message: string | undefined): string {
  if (type === undefined || message === undefined) return type ?? message ?? 'Error';
  return message.startsWith(type) ? message : `${type}: ${message}`;
}
