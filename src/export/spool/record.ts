import { ATTACHMENTS_MAX, type HeldAttachment, isAttachmentName, isMimeType } from '../../payload/attachment.ts';
import { isBlob } from '../../payload/describe.ts';
import { type EncodedRun, mainJson, parseMainJson } from '../../run/encoded-run.ts';
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
 * Encodes a record as the sections of a frame, in both versions of the format:
 *
 *     {"op":"post","isEnded":true} | main part | inputs | outputs | events | (name | type | bytes) of each attachment
 *
 * The main part is that of multipart ingestion. The section of a missing payload is empty. Blobs cannot be read synchronously:
 * they are left out, and `dropped_attachments` in the metadata counts them. The run itself is not changed.
 */
export function encodeRecord({ op, isEnded, run }: SpooledRecord): (string | Uint8Array)[] {
  const stored = withoutBlobs(run);
  const sections: (string | Uint8Array)[] = [
    JSON.stringify({ op, isEnded }),
    mainJson(stored, isEnded),
    stored.inputs ?? '',
    (isEnded ? stored.outputs : undefined) ?? '',
    (isEnded ? stored.events : undefined) ?? '',
  ];
  for (const { name, mimeType, bytes } of stored.attachments ?? []) {
    sections.push(name, mimeType, bytes as Uint8Array);
  }
  return sections;
}

/** Returns undefined if the sections are not those of a valid record. Never throws. */
export function decodeRecord({ sections }: Frame): SpooledRecord | undefined {
  try {
    const [header = '', main = '', ...payloads] = sections.slice(0, 5).map((section) => utf8.decode(section));
    const { op, isEnded } = JSON.parse(header) as Partial<SpooledRecord>;
    const run = parseMainJson(main);
    if ((op !== 'post' && op !== 'patch') || typeof isEnded !== 'boolean' || run === undefined) return undefined;
    const attachments = attachmentsOf(sections.slice(5));
    run.inputs = payloadOf(payloads[0], '{');
    run.outputs = payloadOf(payloads[1], '{');
    run.events = payloadOf(payloads[2], '[');
    run.attachments = attachments.length === 0 ? undefined : attachments;
    return { op, isEnded, run };
  } catch {
    return undefined;
  }
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

function checked(text: string, isValid: (text: string) => boolean): string {
  if (!isValid(text)) throw new TypeError('invalid value');
  return text;
}

function unnamed(id: string): RunName {
  return { id, traceId: '', name: '' };
}
