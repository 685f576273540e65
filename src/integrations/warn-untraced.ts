import { diagnostics } from '../base/diagnostics.ts';
import { kindOf } from '../base/text.ts';

/** Logs one line per kind of value when `call` receives a value that cannot be traced. */
export function warnUntraced(call: string, expected: string, given: unknown): void {
  const kind = kindOf(given);
  const got = kind === 'object' ? 'another object' : kind;
  diagnostics.warnOnce(`${call} ${kind}`, `${call}: expected ${expected}, got ${got}; it is not traced.`);
}
