import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { DELAY_MAX_MS } from '../base/limits.ts';
import { shown } from '../base/text.ts';

const OPTION_NAME = /^[a-z]{1,40}$/i;

/**
 * The milliseconds of a `FlushLimit` that a caller gives, no more than a timer takes; the default where none are given. What
 * is none is told in one line, as is an option that there is not. `caller` is how that line names who was called.
 */
export function flushLimitMs(caller: string, limit: unknown, defaultMs: number): number {
  if (limit === undefined) return defaultMs;
  const isObject = typeof limit === 'object' && limit !== null;
  const given = guard('flush', () => (isObject ? fieldsOf(limit) : { timeoutMs: limit, unknown: undefined }));
  if (given === undefined) return defaultMs;
  const { timeoutMs, unknown } = given;
  if (unknown !== undefined) {
    diagnostics.warnOnce(`${caller} option`, `${caller}: expected { timeoutMs }, got ${unknown}; left out.`);
  }
  if (isObject && timeoutMs === undefined) return defaultMs;
  if (isObject && typeof timeoutMs === 'number' && timeoutMs >= 0) return Math.min(timeoutMs, DELAY_MAX_MS);
  diagnostics.warnOnce(
    `${caller} limit`,
    `${caller}: expected { timeoutMs } with a number from 0, got ${isObject ? '`timeoutMs` ' : ''}${shown(timeoutMs)}; the limit is ${defaultMs / 1_000} seconds.`,
  );
  return defaultMs;
}

function fieldsOf(limit: object): { readonly timeoutMs: unknown; readonly unknown: string | undefined } {
  const { timeoutMs } = limit as { timeoutMs?: unknown };
  const other = Object.keys(limit).find((key) => key !== 'timeoutMs');
  if (other === undefined) return { timeoutMs, unknown: undefined };
  // What is no name of an option may be data of the application, which no line tells.
  return { timeoutMs, unknown: OPTION_NAME.test(other) ? `\`${other}\`` : 'something else' };
}
