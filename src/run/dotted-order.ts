import { compactTimestamp, parseIsoTimestamp } from './timestamp.ts';

/**
 * The place of a run in its trace, sortable as text (interface, "POST /runs/multipart", rule 6):
 *
 *     20261120T072240123456Z<root id> . 20261120T072240123460Z<child id> . …
 *     └ start, UTC, microseconds ┘
 */
export function dottedOrder(parent: string | undefined, startUs: number, id: string): string {
  const segment = compactTimestamp(startUs) + id;
  return parent === undefined ? segment : `${parent}.${segment}`;
}

/** One level of a dotted order. */
export interface OrderSegment {
  /** Start of the run, microseconds since 1970. */
  readonly startUs: number;
  /** Its id, lower case with hyphens. */
  readonly id: string;
}

const SEGMENT =
  /^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})(\d{6})Z([0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})$/i;

/** The segments from the root down, or undefined when the text is no dotted order. */
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

/** A UUID in lower case with its hyphens, from either spelling that the wire allows. */
export function canonicalId(id: string): string {
  const hex = id.replaceAll('-', '').toLowerCase();
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
