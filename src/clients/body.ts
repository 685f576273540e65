import type { Readable } from 'node:stream';
import { isObject } from '../base/options.ts';
import { clearTimer, setTimer } from '../base/timers.ts';
import { DeadlineError, NoAnswerError } from '../http/errors.ts';
import { type FailedAnswer, parseJson } from './errors.ts';

/** Kind of a response body. Only the kind is checked. `none` ignores the body. */
export type ResponseKind = 'object' | 'list' | 'number' | 'any' | 'none' | 'text';

/** A schema of valibot. The build bundles valibot, so declarations that users read must not refer to its types. */
export interface BodySchema {
  readonly kind: 'schema';
}

/** Maximum bytes of a response. A longer response is an InvalidAnswerError. */
export const ANSWER_BYTES_MAX: number = 64 * 1024 * 1024;

export interface ReadOptions {
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
export function readText(body: Readable, options: ReadOptions): Promise<string | undefined> {
  const { bytesMax, timeoutMs, idleTimeoutMs = 0, truncate = false } = options;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const problem = timeoutMs === undefined ? `nothing came for ${idleTimeoutMs} ms` : 'the response took too long';
    const startTimer = (): NodeJS.Timeout =>
      setTimer(() => body.destroy(new DeadlineError(problem)), Math.max(1, timeoutMs ?? idleTimeoutMs));
    let timer = startTimer();
    const text = (): string => Buffer.concat(chunks).subarray(0, bytesMax).toString('utf8');
    body.on('data', (chunk: Buffer) => {
      if (timeoutMs === undefined) {
        clearTimer(timer);
        timer = startTimer();
      }
      // A server sends an empty line per second while a run is not finished.
      if (bytes === 0 && chunk.every((byte) => byte === 0x0a || byte === 0x0d || byte === 0x20)) return;
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes <= bytesMax) return;
      resolve(truncate ? text() : undefined);
      // Destroying the body closes the connection, which would otherwise transfer the rest.
      body.destroy();
    });
    body.once('end', () => resolve(text()));
    body.on('error', reject);
    body.once('close', () => {
      clearTimer(timer);
      reject(new NoAnswerError('the response broke off'));
    });
  });
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
  const isValid = { any: true, object: isObject(data), list: Array.isArray(data), number: typeof data === 'number' };
  return isValid[kind] ? { data } : { problem: `is not ${kind === 'object' ? 'an' : 'a'} ${kind}` };
}
