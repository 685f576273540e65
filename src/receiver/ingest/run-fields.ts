import { isObject } from '../../base/options.ts';
import { shown } from '../../base/text.ts';
import type { RunRecord } from '../../run/record.ts';
import { canonicalId, isoTimestamp, parseDottedOrder, parseIsoTimestamp } from '../../run/time.ts';
import type { Findings, Location } from '../refusal.ts';

/** A field of the run record (interface, "Run record"), or one of ours beside it: `error`, `tags`, `extra`. */
export type RunField = keyof RunRecord;

/** Which spellings are taken where the interface and the field differ. */
export interface Spellings {
  /** Ids of 32 hex digits without hyphens. */
  readonly hexIds: boolean;
  /** Times as milliseconds since 1970, and null for a field that is not there. */
  readonly loose: boolean;
}

/** A `dotted_order` that has been read. */
export interface DottedOrder {
  /** In the one spelling of records. */
  readonly text: string;
  /** The run of each segment, from the root down. */
  readonly ids: readonly string[];
}

/**
 * Reads one field into the form of records, a `dotted_order` into a DottedOrder, and adds to the findings when it is
 * wrong. Undefined when there is nothing to keep.
 */
export function readField(
  field: RunField,
  value: unknown,
  spellings: Spellings,
  loc: Location,
  findings: Findings,
): unknown {
  if (value === undefined || (value === null && spellings.loose)) return undefined;
  const read = READERS[field](value, spellings);
  if (!(read instanceof Invalid)) return read;
  findings.add([...loc], read.type, `Expected \`${field}\` to be ${read.expected}, got ${shown(value)}`);
  return undefined;
}

/** Whether the text names a field of a run record. */
export function isRunField(name: string): name is RunField {
  return Object.hasOwn(READERS, name);
}

const UUID = /^[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}$/i;

/** The id in the one spelling of records, or undefined when the text is no UUID. */
export function parseUuid(text: string, hexIds: boolean): string | undefined {
  const match = UUID.exec(text);
  return match === null || (match[1] === '' && !hexIds) ? undefined : canonicalId(text);
}

class Invalid {
  readonly type: string;
  readonly expected: string;

  constructor(type: string, expected: string) {
    this.type = type;
    this.expected = expected;
  }
}

type Reader = (value: unknown, spellings: Spellings) => unknown;

const uuid: Reader = (value, { hexIds }) =>
  (typeof value === 'string' ? parseUuid(value, hexIds) : undefined) ??
  new Invalid('uuid', hexIds ? 'a UUID' : 'a UUID with hyphens');

const text: Reader = (value) => (typeof value === 'string' ? value : new Invalid('string', 'text'));

const name: Reader = (value) =>
  typeof value === 'string' && value !== '' ? value : new Invalid('string', 'text that is not empty');

const object: Reader = (value) => (isObject(value) ? value : new Invalid('object', 'an object'));

const objects: Reader = (value) =>
  Array.isArray(value) && value.every(isObject) ? value : new Invalid('array', 'an array of objects');

const texts: Reader = (value) =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')
    ? value
    : new Invalid('array', 'an array of text');

/** Beyond it numbers no longer hold whole microseconds. */
const TIME_MAX_US = Date.UTC(2255, 0) * 1_000;

const time: Reader = (value, { loose }) => {
  let us: number | undefined;
  if (typeof value === 'string') us = parseIsoTimestamp(value);
  else if (typeof value === 'number' && loose) us = Math.round(value * 1_000);
  if (us !== undefined && us >= 0 && us < TIME_MAX_US) return isoTimestamp(us);
  return new Invalid('timestamp', `an ISO 8601 time${loose ? ' or milliseconds' : ''} between 1970 and 2255`);
};

/**
 * Levels of a dotted order. Each run repeats all above it, so a trace of n levels one below the other takes n² / 2
 * segments.
 */
export const ORDER_LEVELS_MAX = 1_000;
/** Characters of a segment before its id. */
const STAMP_LENGTH = 22;
/** Stamp, id with hyphens and dot. */
const SEGMENT_LENGTH_MAX = STAMP_LENGTH + 36 + 1;

const order: Reader = (value, { hexIds }) =>
  (typeof value === 'string' ? parseOrder(value, hexIds) : undefined) ??
  new Invalid(
    'dotted_order',
    `up to ${ORDER_LEVELS_MAX} segments of the form 20261120T072240123456Z<uuid> joined by dots`,
  );

function parseOrder(text: string, hexIds: boolean): DottedOrder | undefined {
  // The length comes first: a text of dots alone would be split into a segment for each byte.
  if (text.length >= ORDER_LEVELS_MAX * SEGMENT_LENGTH_MAX) return undefined;
  const segments = text.split('.');
  if (segments.length > ORDER_LEVELS_MAX || parseDottedOrder(text) === undefined) return undefined;
  const ids: string[] = [];
  const spelled: string[] = [];
  for (const segment of segments) {
    const id = parseUuid(segment.slice(STAMP_LENGTH), hexIds);
    if (id === undefined) return undefined;
    ids.push(id);
    spelled.push(segment.slice(0, STAMP_LENGTH).toUpperCase() + id);
  }
  return { text: spelled.join('.'), ids };
}

const extra: Reader = (value, { loose }) => {
  if (!isObject(value)) return new Invalid('object', 'an object');
  const read = { ...value };
  for (const key of ['metadata', 'runtime']) {
    if (!Object.hasOwn(read, key) || isObject(read[key])) continue;
    if (read[key] !== null || !loose) return new Invalid('object', `an object whose \`${key}\` is an object`);
    delete read[key];
  }
  return read;
};

const READERS: Readonly<Record<RunField, Reader>> = {
  id: uuid,
  trace_id: uuid,
  dotted_order: order,
  parent_run_id: uuid,
  name,
  run_type: name,
  start_time: time,
  end_time: time,
  inputs: object,
  outputs: object,
  events: objects,
  error: text,
  tags: texts,
  extra,
  session_name: name,
  session_id: name,
};
