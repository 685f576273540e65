import { diagnostics } from '../base/diagnostics.ts';
import { kindOf } from '../base/text.ts';

/** Logs a warning if `call` received a value that cannot be traced, once for each kind of value. */
export function warnUntraced(call: string, expected: string, given: unknown): void {
  const kind = kindOf(given);
  const got = kind === 'object' ? 'another object' : kind;
  diagnostics.warnOnce(`${call} ${kind}`, `${call}: expected ${expected}, got ${got}; it is not traced.`);
}
