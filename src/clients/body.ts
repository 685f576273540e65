import { isObject } from '../base/options.ts';
import { clearTimer, setTimer } from '../base/timers.ts';
import type { ResponseBody } from '../http/client.ts';
import { DeadlineError } from '../http/errors.ts';
import { type FailedAnswer, parseJson } from './errors.ts';

/** Kind of a response body. Only the kind is checked. `none` ignores the body. */
type BodyKind = 'object' | 'list' | 'number' | 'any' | 'none' | 'text';

/** `pages` is a part of a list, `events` a stream of events, and `result` the final state of a run. */
export type ResponseKind = BodyKind | 'pages' | 'events' | 'result';

/** A schema of valibot. The build bundles valibot, so declarations that users read must not refer to its types. */
export interface BodySchema {
  readonly kind: 'schema';
}

/** Maximum bytes of a response. A longer response is an InvalidAnswerError. */
export const ANSWER_BYTES_MAX: number = 64 * 1024 * 1024;

interface ReadOptions {
  readonly bytesMax: number;
  /** Time for the whole body. */
  readonly timeoutMs?: number;
  /** Maximum time between two chunks. */
  readonly idleTimeoutMs?: number;
  /** Whether the text of a longer body is truncated. */
  readonly truncate?: boolean;
}

/**
 * Reads a body as text. Returns undefined if the body is longer than `bytesMax`, or the truncated text if `truncate` is
 * set. Rejects with a DeadlineError after a timeout.
 */
export async function readText(body: ResponseBody, options: ReadOptions): Promise<string | undefined> {
  const { bytesMax, timeoutMs, idleTimeoutMs = 0, truncate = false } = options;
  const problem = timeoutMs === undefined ? `no data arrived for ${idleTimeoutMs} ms` : 'the response took too long';
  const startTimer = (): NodeJS.Timeout =>
    setTimer(() => body.destroy(new DeadlineError(problem)), Math.max(1, timeoutMs ?? idleTimeoutMs));
  let timer = startTimer();
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let text = '';
  let bytes = 0;
  try {
    for await (const chunk of body) {
      if (timeoutMs === undefined) {
        clearTimer(timer);
        timer = startTimer();
      }
      // A server sends an empty line per second while a run is not finished.
      if (bytes === 0 && chunk.every((byte) => byte === 0x0a || byte === 0x0d || byte === 0x20)) continue;
      const excess = bytes + chunk.length - bytesMax;
      if (excess > 0 && !truncate) return undefined;
      text += decoder.decode(chunk.subarray(0, excess > 0 ? -excess : undefined), { stream: true });
      if (excess > 0) break;
      bytes += chunk.length;
    }
    return text + decoder.decode();
  } finally {
    clearTimer(timer);
  }
}

/** Returns the data of a successful response, or why the response is invalid. */
export function parseBody(
  kind: ResponseKind,
  text: string | undefined,
  headers: FailedAnswer['headers'],
): { readonly data?: unknown; readonly problem?: string } {
  if (text === undefined) return { problem: `is longer than ${ANSWER_BYTES_MAX} bytes` };
  if (kind === 'text') return { data: text };
  const isEmpty = text.trim() === '';
  if (kind === 'none') {
    // A proxy may respond with a page that asks to log in.
    const isPage = /^text\/html\b/i.test(String(headers['content-type'] ?? '')) && !isEmpty;
    return isPage ? { problem: 'is a web page' } : {};
  }
  const data = isEmpty ? undefined : parseJson(text.replace(/^\uFEFF/, ''));
  if (!isEmpty && data === undefined) return { problem: 'is not JSON' };
  const kinds = { object: isObject(data), list: Array.isArray(data), number: typeof data === 'number' };
  const isValid = (kinds as Partial<Record<ResponseKind, boolean>>)[kind] ?? true;
  return isValid ? { data } : { problem: `is not ${kind === 'object' ? 'an' : 'a'} ${kind}` };
}
