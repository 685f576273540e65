import type { Readable } from 'node:stream';
import { clearTimer, setTimer } from '../base/timers.ts';
import { DeadlineError, NoAnswerError } from '../http/errors.ts';

/**
 * The text of a body, read to its end. Undefined where it is longer than so many bytes, or the text up to there if it may be
 * cut. Rejects with a DeadlineError when it has not come within so many milliseconds, and with what broke it off.
 */
export function bodyText(
  body: Readable,
  bytesMax: number,
  timeoutMs: number,
  mayCut = false,
): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const timer = setTimer(() => body.destroy(new DeadlineError('the answer took too long')), Math.max(1, timeoutMs));
    const text = (): string => Buffer.concat(chunks).subarray(0, bytesMax).toString('utf8');
    body.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes <= bytesMax) return;
      resolve(mayCut ? text() : undefined);
      // And with it the connection, which a huge answer would keep busy.
      body.destroy();
    });
    body.once('end', () => resolve(text()));
    body.on('error', reject);
    body.once('close', () => {
      clearTimer(timer);
      reject(new NoAnswerError('the answer broke off'));
    });
  });
}
