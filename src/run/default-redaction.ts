import { diagnostics } from '../base/diagnostics.ts';
import { hideAll, redact } from './redact.ts';
import { Redaction } from './redaction.ts';

/** What holds where nothing is said: values under the names of secrets are hidden. */
export const defaultRedaction: Redaction = redact();

/** The redaction that an option names. What is none hides everything: what it was meant to hide is not known. */
export function redactionOf(place: string, given: unknown): Redaction {
  if (given === undefined) return defaultRedaction;
  if (given instanceof Redaction) return given;
  diagnostics.error(`${place}: expected \`redact\` to be what redact() gives; every payload is hidden`);
  return hideAll;
}
