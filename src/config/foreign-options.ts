/** Hides a run's inputs or outputs, even if the exporter records them. */
export interface Hiding {
  hideInputs?: true;
  hideOutputs?: true;
}

/** Matches options that hide payloads in other libraries. The capture group is `input` or `output`. */
const HIDING = /^(?:mask|anonymizer|redact|(?:tracing)?enabled|(?:process|hide|capture|record)(input|output))$/;

/** Matches options that hide payloads if they are false. Other options hide payloads if they are truthy. */
const SWITCH = /^(?:capture|record|tracing|enabled)/;

/** The value of an option that cannot be read, which may have been meant to hide payloads. */
export const UNREADABLE: unique symbol = Symbol('unreadable');

/**
 * Returns what an unknown option hides in other libraries, or undefined if it hides nothing. `tracingEnabled: false`
 * turns a traced function or an exporter off, and hides the payloads elsewhere. So does `enabled: false`.
 */
export function hiddenBy(
  name: string,
  value: unknown,
  isKnown: (name: string) => boolean,
): (Hiding & { enabled?: false; tracing?: false }) | undefined {
  const spelling = spellingOf(name);
  const found = HIDING.exec(spelling);
  if (found === null) return undefined;
  const hides = SWITCH.test(spelling) ? value === false || value === UNREADABLE : Boolean(value);
  if (!hides) return undefined;
  const isSwitch = spelling.endsWith('enabled');
  if (isSwitch && isKnown('enabled')) return { enabled: false };
  if (isSwitch && isKnown('tracing')) return { tracing: false };
  const hiding: Hiding = {};
  if (found[1] !== 'output') hiding.hideInputs = true;
  if (found[1] !== 'input') hiding.hideOutputs = true;
  return hiding;
}

/** Spells an option in lower case, without `_` and without a final `s`. */
export function spellingOf(name: string): string {
  return name.replaceAll('_', '').toLowerCase().replace(/s$/, '');
}
