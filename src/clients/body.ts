import { isObject } from '../config/checker.ts';
import { DeadlineError } from '../http/errors.ts';
import type { ResponseBody } from '../http/transport.ts';
import { clearTimer, setTimer } from '../platform/timers.ts';
import { type FailedResponse, parseJson } from './errors.ts';

/** Expected type of a response body. The fields of the body are not validated. With `none`, the body is ignored. */
type BodyKind = 'object' | 'list' | 'number' | 'any' | 'none' | 'text';

/**
 * Expected type of a response. `pages` is a page of a list, `events` is an event stream, `result` is a run's final
 * state, and `reply` is a response of JSON-RPC.
 */
export type ResponseKind = BodyKind | 'pages' | 'events' | 'result' | 'reply';

/**
 * A valibot schema. Public declarations use this type because valibot is bundled, so users do not have valibot's types.
 */
export interface BodySchema {
  readonly kind: 'schema';
}

/** Maximum response size in bytes. A longer response is rejected with an InvalidResponseError. */
export const RESPONSE_BYTES_MAX: number = 64 * 1024 * 1024;

interface ReadOptions {
  readonly bytesMax: number;
  /** Maximum time to read the whole body, in milliseconds. */
  readonly timeoutMs?: number;
  /** Maximum time to wait for the next chunk, in milliseconds. */
  readonly idleTimeoutMs?: number;
  /** Whether to truncate a body that is too long. */
  readonly truncate?: boolean;
}

/**
 * Reads a body as text. Rejects with a DeadlineError after a timeout. If the body is longer than `bytesMax`, the result
 * is undefined. If `truncate` is set, the result is the truncated text instead.
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
      // Skip leading blank lines. A server may send one blank line per second until the run has finished.
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

/** Returns a successful response's data, or the reason why the response is invalid. */
export function parseBody(
  kind: ResponseKind,
  text: string | undefined,
  headers: FailedResponse['headers'],
): { readonly data?: unknown; readonly problem?: string } {
  if (text === undefined) return { problem: `is longer than ${RESPONSE_BYTES_MAX} bytes` };
  if (kind === 'text') return { data: text };
  const isEmpty = text.trim() === '';
  if (kind === 'none') {
    // A proxy may respond with an HTML page, for example a login page.
    const isPage = /^text\/html\b/i.test(String(headers['content-type'] ?? '')) && !isEmpty;
    return isPage ? { problem: 'is a web page' } : {};
  }
  const data = isEmpty ? undefined : parseJson(text.replace(/^\uFEFF/, ''));
  if (!isEmpty && data === undefined) return { problem: 'is not JSON' };
  const kinds = { object: isObject(data), list: Array.isArray(data), number: typeof data === 'number' };
  const isValid = (kinds as Partial<Record<ResponseKind, boolean>>)[kind] ?? true;
  return isValid ? { data } : { problem: `is not ${kind === 'object' ? 'an' : 'a'} ${kind}` };
}
