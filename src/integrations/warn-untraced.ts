import { diagnostics } from '../base/diagnostics.ts';
import { kindOf } from '../base/text.ts';

/** Logs a warning that `call` received a value that it cannot trace. Each kind of value is logged once. */
export function warnUntraced(call: string, expected: string, given: unknown): void {
  const kind = kindOf(given);
  const got = kind === 'object' ? 'another object' : kind;
  diagnostics.warnOnce(`${call} ${kind}`, `${call}: expected ${expected}, got ${got}; the value is not traced.`);
}
