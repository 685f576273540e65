import { diagnostics } from '../base/diagnostics.ts';
import { kindOf } from '../base/text.ts';

/** Says, once for each kind of value, that what `call` was given is not what it takes, and stays as it is. */
export function tellUntraced(call: string, expected: string, given: unknown): void {
  const kind = kindOf(given);
  const got = kind === 'object' ? 'another object' : kind;
  diagnostics.warnOnce(`${call} ${kind}`, `${call}: expected ${expected}, got ${got}; it is not traced.`);
}
