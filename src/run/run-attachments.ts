import { setMaxListeners } from 'node:events';
import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import { clearTimer, setTimer } from '../base/timers.ts';
import {
  ATTACHMENTS_MAX,
  type HeldAttachment,
  isAttachmentName,
  isBinary,
  isBlob,
  isMimeType,
  nameOnWire,
  sizeOf,
  typeOf,
  UNKNOWN_TYPE,
  viewOf,
} from './attachment.ts';
import { closeStream, isByteStream, readStream } from './byte-stream.ts';
import type { EncodedRun } from './encoded-run.ts';
import { shownText } from './payload.ts';
import type { AttachingField, AttachmentRoom } from './payload-attachments.ts';
import type { PayloadRules } from './payload-rules.ts';
import type { CapturePolicy } from './sink.ts';

/** What holds attachments beside the application: payloads, and the chunks of a stream, which make up outputs at its end. */
export type AttachingPayload = AttachingField | 'chunks';

/** How long a run that has ended waits for its streams. */
export const STREAMS_WAIT_MS = 30_000;

type AttachmentPolicy = Pick<CapturePolicy, 'attachmentBytes' | 'payload'>;

/** Where a name belongs, for the paths of a redaction. */
const ATTACHMENT = ['attachments', undefined] as const;

/** The attachments of one run: names used once, bytes and number within limits, streams read to their end. */
export class RunAttachments implements AttachmentRoom {
  readonly #record: EncodedRun;
  readonly #bytesMax: number;
  readonly #rules: PayloadRules;
  readonly #streamsWaitMs: number;
  readonly #names = new Set<string>();
  /** Those that were given, where they are shown in another way. */
  readonly #hiddenNames = new Set<string>();
  /** By their names: the bytes are held by the record alone, which lets go of them when they are delivered. */
  readonly #ofPayloads = new Map<AttachingPayload, string[]>();
  readonly #reading = new Set<Promise<void>>();
  readonly #abort = new AbortController();
  #bytes = 0;

  constructor(
    record: EncodedRun,
    { attachmentBytes, payload }: AttachmentPolicy,
    streamsWaitMs: number = STREAMS_WAIT_MS,
  ) {
    this.#record = record;
    this.#bytesMax = attachmentBytes;
    this.#rules = payload;
    this.#streamsWaitMs = streamsWaitMs;
    // Each stream under way listens to it.
    setMaxListeners(0, this.#abort.signal);
  }

  get bytesLeft(): number {
    return this.#bytesMax - this.#bytes;
  }

  get countLeft(): number {
    return ATTACHMENTS_MAX - this.#names.size;
  }

  isTaken(name: string): boolean {
    return this.#names.has(nameOnWire(name));
  }

  /** Attaches what the application gives, or says in one line why not; a stream that is left out is closed. */
  attach(given: unknown, content: unknown, mimeType: unknown): void {
    const name = typeof given === 'string' ? this.#shown(given) : given;
    const size = sizeOfContent(content);
    const complaint = this.#complaint(name, size, mimeType);
    if (complaint !== undefined) {
      leaveOut(complaint);
      if (size === 'unknown') closeStream(content);
      return;
    }
    const type = mimeType ?? (isBlob(content) ? typeOf(content) : UNKNOWN_TYPE);
    const attachment = { name: name as string, mimeType: type as string };
    if (size === 'unknown') this.#read(content as object, attachment);
    else this.#hold([{ ...attachment, bytes: isBlob(content) ? content : viewOf(content as ArrayBufferView).slice() }]);
    this.#names.add(nameOnWire(attachment.name));
    if (given !== attachment.name) this.#hiddenNames.add(given as string);
  }

  /** Attaches what was taken out of a payload that now stands in the record. */
  keep(payload: AttachingPayload, attachments: readonly HeldAttachment[]): void {
    const names = attachments.map(({ name }) => name);
    for (const name of names) this.#names.add(nameOnWire(name));
    this.#hold(attachments);
    this.#ofPayloads.set(payload, [...(this.#ofPayloads.get(payload) ?? []), ...names]);
  }

  /** Lets go of what belongs to a payload that is about to be replaced, unless it has been sent. */
  forget(payload: AttachingPayload): void {
    const replaced = this.#ofPayloads.get(payload);
    if (replaced === undefined) return;
    this.#ofPayloads.delete(payload);
    const kept: HeldAttachment[] = [];
    for (const attachment of this.#record.attachments ?? []) {
      if (!replaced.includes(attachment.name)) {
        kept.push(attachment);
        continue;
      }
      this.#bytes -= sizeOf(attachment.bytes);
      this.#names.delete(nameOnWire(attachment.name));
    }
    this.#record.attachments = kept;
  }

  /** Resolves when every stream has been read or left out; undefined when none is under way. */
  streamsRead(): Promise<void> | undefined {
    if (this.#reading.size === 0) return undefined;
    const timer = setTimer(
      () => this.#abort.abort(new Error(`it was not at its end ${this.#streamsWaitMs} ms after its run`)),
      this.#streamsWaitMs,
    ).unref();
    return Promise.all(this.#reading).then(() => clearTimer(timer));
  }

  /** Names that were different stay so: one mask may stand for several. It may hold a dot, which a name may not. */
  #shown(name: string): string {
    const shown = shownText(name, this.#rules, ATTACHMENT);
    if (shown === name) return name;
    const mask = shown.replaceAll('.', '_');
    let free = mask;
    if (!this.#hiddenNames.has(name)) for (let number = 2; this.isTaken(free); number++) free = `${mask} ${number}`;
    return free;
  }

  #complaint(name: unknown, size: number | 'unknown' | undefined, mimeType: unknown): string | undefined {
    if (this.#rules.redaction?.hidesAll === true) return 'every payload is hidden';
    if (!isAttachmentName(name)) return 'expected `name` to be text of at most 256 characters, without a dot';
    if (size === undefined) return 'expected `content` to be bytes, a Blob or a stream';
    if (mimeType !== undefined && !isMimeType(mimeType)) return 'expected `mimeType` to be text such as "image/png"';
    if (this.isTaken(name)) return 'expected `name` to be new to the run';
    if (this.countLeft <= 0) return `a run had more than ${ATTACHMENTS_MAX} attachments`;
    return size !== 'unknown' && size > this.bytesLeft
      ? 'a run had attachments over limits.attachmentBytes'
      : undefined;
  }

  #hold(attachments: readonly HeldAttachment[]): void {
    for (const { bytes } of attachments) this.#bytes += sizeOf(bytes);
    this.#record.attachments = [...(this.#record.attachments ?? []), ...attachments];
  }

  #read(stream: object, attachment: { readonly name: string; readonly mimeType: string }): void {
    let reserved = 0;
    const reserve = (bytes: number): boolean => {
      if (bytes > this.bytesLeft) return false;
      this.#bytes += bytes;
      reserved += bytes;
      return true;
    };
    const reading = readStream(stream, reserve, this.#abort.signal)
      .finally(() => {
        this.#bytes -= reserved;
      })
      .then(
        (bytes) => this.#hold([{ ...attachment, bytes }]),
        (thrown) => leaveOut(`a stream could not be read: ${messageOf(thrown)}`),
      )
      .finally(() => this.#reading.delete(reading));
    this.#reading.add(reading);
  }
}

/** Bytes of what can be attached; undefined when it cannot. Those of a stream are not known. */
function sizeOfContent(content: unknown): number | 'unknown' | undefined {
  if (isBinary(content)) return content.byteLength;
  if (isBlob(content)) return sizeOf(content);
  return isByteStream(content) ? 'unknown' : undefined;
}

function leaveOut(complaint: string): void {
  const [place] = complaint.split(':');
  diagnostics.warnOnce(
    `Run.attach ${place}`,
    `Run.attach(name, content, mimeType): ${complaint}; the attachment was left out.`,
  );
}
