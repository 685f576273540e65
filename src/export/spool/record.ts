import { ATTACHMENTS_MAX, type HeldAttachment, isAttachmentName, isBlob, isMimeType } from '../../run/attachment.ts';
import type { EncodedRun } from '../../run/encoded-run.ts';
import { readWhole, type SpoolFs } from './fs.ts';
import { type Frame, readFrames, SEGMENT_BYTES_MAX } from './segment.ts';

/** The content of a post or a patch of a run, after redaction. */
export interface SpooledRecord {
  readonly op: 'post' | 'patch';
  /** Whether it carries the end of the run. */
  readonly isEnded: boolean;
  readonly run: EncodedRun;
}

/** Identifies a run in reports. A field that cannot be read is empty. */
export type RunName = Readonly<Pick<EncodedRun, 'id' | 'traceId' | 'name'>>;

/** The records of a segment. */
export interface SegmentRecords {
  readonly records: readonly SpooledRecord[];
  /** Runs of the records that cannot be read. */
  readonly damagedRuns: readonly RunName[];
  readonly isLaterVersion: boolean;
  /** Size of the file. */
  readonly bytes: number;
  readonly modifiedAtMs: number;
}

/**
 * Reads the records of a segment. Returns `undefined` if the path is not a file, or if the file is too large. Throws file-system
 * errors.
 */
export function readSegment(fs: SpoolFs, path: string): SegmentRecords | undefined {
  const content = readWhole(fs, path, SEGMENT_BYTES_MAX);
  if (content === undefined) return undefined;
  const { frames, lostIds, isLaterVersion } = readFrames(content.bytes);
  const records: SpooledRecord[] = [];
  const damagedRuns = lostIds.map(unnamed);
  for (const frame of frames) {
    const record = decodeRecord(frame);
    if (record !== undefined) records.push(record);
    else damagedRuns.push(unnamed(frame.id));
  }
  const { bytes, modifiedAtMs } = content;
  return { records, damagedRuns, isLaterVersion, bytes: bytes.length, modifiedAtMs };
}

/**
 * Encodes a record as the sections of a frame:
 *
 *     {"op":"post","isEnded":true,"run":{…}} | inputs | outputs | events | (name | type | bytes) of each attachment
 *
 * The section of a missing payload is empty. Blobs cannot be read synchronously: they are left out, and
 * `dropped_attachments` in the metadata counts them. The run itself is not changed.
 */
export function encodeRecord({ op, isEnded, run }: SpooledRecord): (string | Uint8Array)[] {
  const stored = withoutBlobs(run);
  const sections: (string | Uint8Array)[] = [
    JSON.stringify({ op, isEnded, run: storedFields(stored, isEnded) }),
    stored.inputs ?? '',
    (isEnded ? stored.outputs : undefined) ?? '',
    (isEnded ? stored.events : undefined) ?? '',
  ];
  for (const { name, mimeType, bytes } of stored.attachments ?? []) sections.push(name, mimeType, bytes as Uint8Array);
  return sections;
}

/** Decodes a frame. Returns `undefined` if it is not a valid record. Never throws. */
export function decodeRecord({ version, sections }: Frame): SpooledRecord | undefined {
  try {
    const texts = sections.slice(0, version === 1 ? 5 : 4).map((section) => utf8.decode(section));
    const { op, isEnded, run } = version === 1 ? upgraded(texts) : objectOf(JSON.parse(texts[0] as string));
    if ((op !== 'post' && op !== 'patch') || typeof isEnded !== 'boolean') return undefined;
    const [inputs, outputs, events] = texts.slice(-3);
    const attachments = attachmentsOf(sections.slice(texts.length));
    const decoded: EncodedRun = {
      ...readFields(objectOf(run)),
      refused: false,
      inputs: payloadOf(inputs, '{'),
      outputs: payloadOf(outputs, '{'),
      events: payloadOf(events, '['),
      attachments: attachments.length === 0 ? undefined : attachments,
      sinkState: undefined,
    };
    return { op, isEnded, run: decoded };
  } catch {
    return undefined;
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** Payloads have their own sections. Refused runs are never stored, and the state of the delivery is not part of the run. */
type StoredField = Exclude<keyof EncodedRun, 'inputs' | 'outputs' | 'events' | 'attachments' | 'refused' | 'sinkState'>;

/**
 * Fields of a run that are written as JSON, each with the function that reads it back. A field of `EncodedRun` that is not
 * listed here does not compile. Readers check values that requests contain unescaped, and throw if one is not valid.
 */
const READERS: { readonly [Field in StoredField]: (value: unknown) => EncodedRun[Field] } = {
  id: token,
  traceId: token,
  dottedOrder: token,
  parentRunId: optional(token),
  startTime: token,
  project: (value) => (typeof value === 'string' ? value : { id: text(objectOf(value).id) }),
  name: text,
  runType: text,
  tags: optional((value) => listOf(value).map(text)),
  metadata: optional((value) => new Map(listOf(value).map(metadataEntry))),
  runtime: optional(json),
  error: optional(text),
  endTime: optional(token),
};

const STORED_FIELDS = Object.keys(READERS) as StoredField[];

const END_FIELDS: ReadonlySet<StoredField> = new Set(['endTime', 'error']);

function storedFields(run: EncodedRun, isEnded: boolean): Fields {
  const stored: Record<string, unknown> = {};
  for (const field of STORED_FIELDS) stored[field] = isEnded || !END_FIELDS.has(field) ? run[field] : undefined;
  // JSON has no maps.
  if (run.metadata !== undefined) stored.metadata = [...run.metadata];
  return stored;
}

function readFields(stored: Fields): Pick<EncodedRun, StoredField> {
  const run: Record<string, unknown> = {};
  for (const field of STORED_FIELDS) run[field] = READERS[field](stored[field]);
  return run as Pick<EncodedRun, StoredField>;
}

/** Converts a record of version 1. Its first section has no run, and its second section is the main part of a request. */
function upgraded([header = '', main = '']: readonly string[]): Fields {
  const { op, isEnded } = objectOf(JSON.parse(header));
  const run = objectOf(JSON.parse(main));
  const { metadata, runtime } = objectOf(run.extra ?? {});
  return {
    op,
    isEnded,
    run: {
      id: run.id,
      traceId: run.trace_id,
      dottedOrder: run.dotted_order,
      parentRunId: run.parent_run_id,
      startTime: run.start_time,
      project: run.session_id === undefined ? run.session_name : { id: run.session_id },
      name: run.name,
      runType: run.run_type,
      tags: run.tags,
      metadata: metadata && Object.entries(objectOf(metadata)).map(([key, value]) => [key, JSON.stringify(value)]),
      runtime: runtime && JSON.stringify(runtime),
      error: run.error,
      endTime: run.end_time,
    },
  };
}

function withoutBlobs(run: EncodedRun): EncodedRun {
  const attachments = run.attachments?.filter(({ bytes }) => !isBlob(bytes)) ?? [];
  const dropped = (run.attachments?.length ?? 0) - attachments.length;
  if (dropped === 0) return run;
  const total = dropped + Number(run.metadata?.get('dropped_attachments') ?? 0);
  return { ...run, attachments, metadata: new Map(run.metadata).set('dropped_attachments', String(total)) };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function attachmentsOf(sections: readonly Uint8Array[]): HeldAttachment[] {
  if (sections.length > 3 * ATTACHMENTS_MAX) throw new TypeError('too many attachments');
  const attachments: HeldAttachment[] = [];
  for (let at = 0; at < sections.length; at += 3) {
    const [name, mimeType] = [utf8.decode(sections[at]), utf8.decode(sections[at + 1])];
    // A view would keep the whole file in memory, so the bytes are copied.
    const bytes = Uint8Array.from(sections[at + 2] as Uint8Array);
    attachments.push({ name: checked(name, isAttachmentName), mimeType: checked(mimeType, isMimeType), bytes });
  }
  return attachments;
}

/** The checksum has shown that the text is as it was written, so its JSON is not parsed. */
function payloadOf(payload: string | undefined, opening: '{' | '['): string | undefined {
  if (payload === undefined || payload === '') return undefined;
  return checked(payload, (text) => text.startsWith(opening));
}

function metadataEntry(entry: unknown): [string, string] {
  const [key, value] = listOf(entry);
  return [text(key), json(value)];
}

function optional<T>(read: (value: unknown) => T): (value: unknown) => T | undefined {
  return (value) => (value === undefined ? undefined : read(value));
}

function checked(value: unknown, isValid: (text: string) => boolean): string {
  if (!isValid(text(value))) throw new TypeError('invalid value');
  return value as string;
}

/** Ids, times and orders. */
function token(value: unknown): string {
  return checked(value, (text) => /^[\w.:-]+$/.test(text));
}

function json(value: unknown): string {
  return checked(value, (text) => JSON.parse(text) !== undefined);
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError('expected text');
  return value;
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new TypeError('expected a list');
  return value;
}

function objectOf(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('expected an object');
  return value as Fields;
}

function unnamed(id: string): RunName {
  return { id, traceId: '', name: '' };
}
