import { storable } from './run-view.ts';
import { derivedUuid } from './uuid.ts';

/** Maximum length of a text that is compared, grouped and listed. */
export const COMPARED_LENGTH_MAX = 1_000;

/**
 * Returns a text as it is compared, grouped and listed. A longer text than `COMPARED_LENGTH_MAX` is cut, and ends with an
 * id that is derived from the whole text. Otherwise, a deletion of one user could delete the runs of another.
 */
export function comparable(text: string): string {
  const whole = storable(text);
  if (whole.length <= COMPARED_LENGTH_MAX) return whole;
  const end = `…${derivedUuid(whole)}`;
  // The last character may be the first half of a surrogate pair.
  return whole.slice(0, COMPARED_LENGTH_MAX - end.length).replace(/[\ud800-\udbff]$/, '') + end;
}

export function mayBeCut(text: string): boolean {
  return /…[0-9a-f-]{36}$/.test(text);
}
