import { stackFrames } from '../run/error-text.ts';
import { langfuseError } from './langfuse.ts';
import type { SpanEventLike, SpanLike } from './span-like.ts';
import { type Attributes, number, text } from './values.ts';

/** Of the status codes, the one that says that a span has failed. */
const ERROR = 2;

/** Of the status codes of HTTP, the first one of a failure. */
const FAILED = 400;

/**
 * The `error` field of a run, when its span says that it has failed: `Type: message` on the first line, then the stack of
 * the exception recorded last. An exception alone is no failure, the application may have handled it.
 */
export function spanError(span: SpanLike): string | undefined {
  if (span.status.code !== ERROR) return langfuseError(span.attributes);
  const said = text(span.status.message);
  const exception = span.events.findLast(({ name }) => name === 'exception');
  const type = typeOf(span.attributes);
  if (exception === undefined) return headline(type, said);
  const thrown = exceptionText(exception, type);
  const message = text(exception.attributes?.['exception.message']);
  const isRepeated = said === undefined || thrown.includes(said) || said === message;
  return isRepeated ? thrown : `${headline(type, said)}\nCaused by: ${thrown}`;
}

/** Of requests the status may be all there is, and a bare number says little. */
function typeOf(attributes: Attributes): string | undefined {
  const type = text(attributes['error.type']);
  const status = number(attributes['http.response.status_code'] ?? attributes['http.status_code']) ?? 0;
  const isStatus = status >= FAILED && (type === undefined || type === String(status));
  return isStatus ? `HTTP ${status}` : type;
}

function exceptionText({ attributes = {} }: SpanEventLike, errorType: string | undefined): string {
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
