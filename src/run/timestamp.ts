/**
 * Writing and reading times of microsecond precision. Both forms are cut from one text per second, which is kept: a
 * busy process formats thousands of stamps within the same second.
 */

// Taken once, so that a stand-in for it that an application installs makes no times.
const DateOfPlatform = Date;

let second = Number.NaN;
let isoPrefix = '';
let stampPrefix = '';

/** `2026-11-20T07:22:40.123456Z` */
export function isoTimestamp(us: number): string {
  return `${isoPrefixOf(us)}${sixDigits(us % 1_000_000)}Z`;
}

/** The same moment as in a dotted order: `20261120T072240123456Z` (interface: `%Y%m%dT%H%M%S%fZ`, UTC). */
export function compactTimestamp(us: number): string {
  isoPrefixOf(us);
  return `${stampPrefix}${sixDigits(us % 1_000_000)}Z`;
}

const ISO = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:[.,](\d{1,9}))?(Z|[+-]\d{2}:?\d{2})?$/;

/**
 * Microseconds since 1970 of an ISO 8601 timestamp, or undefined when it is none. A time without a zone is UTC, as
 * services in the field take it; digits beyond the sixth are cut.
 */
export function parseIsoTimestamp(text: string): number | undefined {
  const match = ISO.exec(text);
  if (match === null) return undefined;
  const [, date, time, fraction = '', zone = 'Z'] = match;
  const ms = DateOfPlatform.parse(`${date}T${time}${zone}`);
  if (Number.isNaN(ms) || !isInCalendar(date as string)) return undefined;
  return ms * 1_000 + Number(fraction.slice(0, 6).padEnd(6, '0'));
}

/** V8 takes 30 February for 2 March. */
function isInCalendar(date: string): boolean {
  return new DateOfPlatform(`${date}T00:00:00Z`).toISOString().startsWith(date);
}

function isoPrefixOf(us: number): string {
  const inSecond = Math.floor(us / 1_000_000);
  if (inSecond !== second) {
    const iso = new DateOfPlatform(inSecond * 1_000).toISOString();
    isoPrefix = iso.slice(0, 20);
    stampPrefix = iso.slice(0, 19).replaceAll(/[-:]/g, '');
    second = inSecond;
  }
  return isoPrefix;
}

function sixDigits(number: number): string {
  return (number + 1_000_000).toString().slice(1);
}
