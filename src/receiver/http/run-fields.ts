import * as v from 'valibot';
import { isFields, numberOf } from '../../payload/fields.ts';
import type { RunRecord } from '../../run/record.ts';
import { canonicalId, compactTimestamp, isoTimestamp, parseDottedOrder, parseIsoTimestamp } from '../../run/time.ts';
import { filledText, object, parsed, type Schema, text } from './validation.ts';

/** Accepted formats of ids and times. LangSmith clients use formats that the documented interface does not allow. */
interface Spellings {
  /** Whether to accept ids of 32 hex digits without hyphens. */
  readonly hexIds: boolean;
  /** Whether to accept times in milliseconds since 1970, and null values for absent fields. */
  readonly loose: boolean;
}

/** Ids from a validated `dotted_order`, root run first. Ids are in lower case with hyphens. */
export interface DottedOrder {
  readonly text: string;
  readonly ids: readonly string[];
}

export function runFields({ hexIds, loose }: Spellings): Readonly<Record<keyof RunRecord, Schema<unknown>>> {
  const id = uuidSchema(hexIds);
  const time = timestamp(loose);
  return {
    id,
    trace_id: id,
    dotted_order: parsed(
      `at most ${ORDER_LEVELS_MAX} segments of the form 20261120T072240123456Z<uuid>, joined by dots`,
      (value) => (typeof value === 'string' ? parseOrder(value, hexIds) : undefined),
    ),
    parent_run_id: id,
    name: filledText,
    run_type: filledText,
    start_time: time,
    end_time: time,
    inputs: object,
    outputs: object,
    events: v.custom((value) => Array.isArray(value) && value.every(isFields), 'an array of objects'),
    error: text,
    tags: v.array(text, 'an array of strings'),
    reference_example_id: id,
    extra: parsed('an object whose `metadata` and `runtime` are objects', (value) => parseExtra(value, loose)),
    session_name: filledText,
    session_id: filledText,
  };
}

export function uuidSchema(hexIds: boolean): Schema<string> {
  return parsed(hexIds ? 'a UUID' : 'a UUID with hyphens', (value) =>
    typeof value === 'string' ? parseUuid(value, hexIds) : undefined,
  );
}

const UUID = /^[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}$/i;

/** Returns a UUID in lower case with hyphens. Returns undefined if the text is not a UUID. */
export function parseUuid(text: string, hexIds: boolean): string | undefined {
  const [match, hyphen] = UUID.exec(text) ?? [];
  if (match === undefined || (hyphen === '' && !hexIds)) return undefined;
  return hyphen === '' ? canonicalId(text) : text.toLowerCase();
}

/** Times in the format of `isoTimestamp` are stored unchanged, because formatting them again would be slower. */
const CANONICAL_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/;
/** Latest accepted time, in microseconds since 1970. Later times would exceed `Number.MAX_SAFE_INTEGER`. */
const TIME_MAX_US = Date.UTC(2255, 0) * 1_000;

function timestamp(loose: boolean): Schema<string> {
  return parsed(`an ISO 8601 time${loose ? ' or milliseconds' : ''} between 1970 and 2255`, (value) => {
    const ms = loose ? numberOf(value) : undefined;
    const us = typeof value === 'string' ? parseIsoTimestamp(value) : ms && Math.round(ms * 1_000);
    if (us === undefined || us < 0 || us >= TIME_MAX_US) return undefined;
    return typeof value === 'string' && CANONICAL_TIME.test(value) ? value : isoTimestamp(us);
  });
}

/** Each run repeats its ancestors' segments, so a chain of n nested runs sends n² / 2 segments. */
const ORDER_LEVELS_MAX = 1_000;
/** Length of a segment in a `dotted_order`: a timestamp, an id with hyphens, and a dot. */
const SEGMENT_LENGTH = 22 + 36 + 1;

function parseOrder(text: string, hexIds: boolean): DottedOrder | undefined {
  // Check the length before splitting, because a text of dots would produce one segment per byte.
  if (text.length >= ORDER_LEVELS_MAX * SEGMENT_LENGTH) return undefined;
  const segments = parseDottedOrder(text);
  if (segments === undefined || segments.length > ORDER_LEVELS_MAX) return undefined;
  const hasHyphens = text.length === segments.length * SEGMENT_LENGTH - 1;
  if (!hexIds && !hasHyphens) return undefined;
  const ids = segments.map(({ id }) => id);
  if (hasHyphens && /^[\da-fTZ.-]*$/.test(text)) return { text, ids };
  return { text: segments.map(({ startUs, id }) => compactTimestamp(startUs) + id).join('.'), ids };
}

function parseExtra(value: unknown, loose: boolean): Record<string, unknown> | undefined {
  if (!isFields(value)) return undefined;
  const extra = { ...value };
  for (const key of ['metadata', 'runtime']) {
    if (!Object.hasOwn(extra, key) || isFields(extra[key])) continue;
    if (extra[key] !== null || !loose) return undefined;
    delete extra[key];
  }
  return extra;
}
