// Keeps the original `Date`, because an application's tests may replace the global `Date`.
const DateOfPlatform = Date;

/** Formats a timestamp, for example `2026-11-20T07:22:40.123456Z`. */
export function isoTimestamp(us: number): string {
  format(us);
  return isoPrefix + fraction;
}

/**
 * Returns a run's dotted order, the sort key of runs (interface document, "POST /runs/multipart", rule 6):
 *
 *     20261120T072240123456Z<root id> . 20261120T072240123460Z<child id> . …
 *     └ start, UTC, microseconds ┘
 */
export function dottedOrder(parent: string | undefined, startUs: number, id: string): string {
  const segment = compactTimestamp(startUs) + id;
  return parent === undefined ? segment : `${parent}.${segment}`;
}

/** Formats a timestamp for a dotted order, for example `20261120T072240123456Z`. */
export function compactTimestamp(us: number): string {
  format(us);
  return compactPrefix + fraction;
}

const THREE_DIGITS: readonly string[] = Array.from({ length: 1_000 }, (_, number) => String(number).padStart(3, '0'));

// Caches parts of the latest timestamp, because a busy process formats thousands of timestamps per second.
let formattedUs = Number.NaN;
let second = Number.NaN;
let isoPrefix = '';
let compactPrefix = '';
let fraction = '';

function format(us: number): void {
  if (us === formattedUs) return;
  const inSecond = Math.floor(us / 1_000_000);
  if (inSecond !== second) {
    const iso = new DateOfPlatform(inSecond * 1_000).toISOString();
    isoPrefix = iso.slice(0, 20);
    compactPrefix = iso.slice(0, 19).replaceAll(/[-:]/g, '');
    second = inSecond;
  }
  const micros = us - inSecond * 1_000_000;
  const millis = Math.floor(micros / 1_000);
  fraction = `${THREE_DIGITS[millis]}${THREE_DIGITS[micros - millis * 1_000]}Z`;
  formattedUs = us;
}

/**
 * A time: a `Date`, a number of milliseconds since 1970, or an ISO 8601 string. Fractions of a millisecond are kept.
 */
export type Timestamp = Date | number | string;

/** The year 2255 in microseconds. Later times would exceed `Number.MAX_SAFE_INTEGER`. */
const TIME_END_US = DateOfPlatform.UTC(2255, 0) * 1_000;

/** Converts a time to microseconds since 1970. Returns undefined if the value is not a time between 1970 and 2255. */
export function timestampUs(value: unknown): number | undefined {
  const us = typeof value === 'string' ? parseIsoTimestamp(value) : Math.round(millisecondsOf(value) * 1_000);
  return us !== undefined && us >= 0 && us < TIME_END_US ? us : undefined;
}

function millisecondsOf(value: unknown): number {
  if (typeof value === 'number') return value;
  try {
    return DateOfPlatform.prototype.getTime.call(value);
  } catch {
    return Number.NaN;
  }
}

const ISO = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:[.,](\d{1,9}))?(Z|[+-]\d{2}:?\d{2})?$/;

// Caches the latest second, because a batch has thousands of timestamps in few seconds.
let parsedPrefix = 'none';
let parsedUs = 0;

/** The length and the end of a timestamp that `isoTimestamp` formats. */
const CANONICAL_LENGTH = '2026-11-20T07:22:40.123456Z'.length;
const CANONICAL_END = /\.\d{6}Z$/;

/**
 * Converts an ISO 8601 timestamp to microseconds since 1970. A time without a zone is read as UTC. Fractional digits
 * after the sixth are ignored.
 */
export function parseIsoTimestamp(text: string): number | undefined {
  if (text.length === CANONICAL_LENGTH && text.startsWith(parsedPrefix) && CANONICAL_END.test(text)) {
    return parsedUs + Number(text.slice(-7, -1));
  }
  const match = ISO.exec(text);
  if (match === null) return undefined;
  const [, date, time, fraction = '', zone = 'Z'] = match;
  const ms = DateOfPlatform.parse(`${date}T${time}${zone}`);
  if (Number.isNaN(ms) || !isInCalendar(date as string)) return undefined;
  if (zone === 'Z') {
    parsedPrefix = `${date}T${time}.`;
    parsedUs = ms * 1_000;
  }
  return ms * 1_000 + Number(fraction.slice(0, 6).padEnd(6, '0'));
}

/** Whether a date exists. V8 parses 30 February as 2 March. */
function isInCalendar(date: string): boolean {
  return Number(date.slice(8)) <= 28 || new DateOfPlatform(`${date}T00:00:00Z`).toISOString().startsWith(date);
}

/** The part of a dotted order that identifies one run. */
export interface OrderSegment {
  readonly startUs: number;
  /** The run id in lower case with hyphens. */
  readonly id: string;
}

const SEGMENT =
  /^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})(\d{6})Z([0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})$/i;

/** Parses a dotted order into segments, starting with the root run. Returns undefined if the text is invalid. */
export function parseDottedOrder(text: string): OrderSegment[] | undefined {
  const segments: OrderSegment[] = [];
  for (const part of text.split('.')) {
    const match = SEGMENT.exec(part);
    if (match === null) return undefined;
    const [, year, month, day, hour, minute, second, micros, id = ''] = match;
    const startUs = parseIsoTimestamp(`${year}-${month}-${day}T${hour}:${minute}:${second}.${micros}Z`);
    if (startUs === undefined) return undefined;
    segments.push({ startUs, id: canonicalId(id) });
  }
  return segments;
}

export function isTimestamp(value: unknown): value is string {
  return typeof value === 'string' && parseIsoTimestamp(value) !== undefined;
}

/** Converts a UUID to lower case with hyphens. The wire format also allows UUIDs without hyphens. */
export function canonicalId(id: string): string {
  const hex = id.replaceAll('-', '').toLowerCase();
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
