import { diagnostics } from '../base/diagnostics.ts';
import { type HeldAttachment, sizeOf } from '../payload/attachment.ts';
import type { EncodedRun, EndOverride } from '../run/encoded-run.ts';
import type { FlushGroup, Place } from './ledger.ts';
import type { Segment } from './spool/spool.ts';

/**
 * The stages of a run in delivery. A run has at most one record in delivery at a time:
 *
 *     start ─► started ──(still open when due)──► posting ──accepted──► posted
 *                 │ end                             │ end                │ end
 *                 ▼                                 ▼                    ▼
 *               whole                             held ──accepted──►   patch
 *                 └────────────► finishing ◄─────────────────────────────┘
 *                                    │ accepted, spilled or dropped
 *                                    ▼
 *                                 settled
 *
 * - `started`, `incomplete`, `whole` and `patch` wait in the queue. `posting` and `finishing` are in a batch, in flight
 *   or waiting for a retry.
 * - `incomplete`: the run is sent as incomplete, because it is open for too long or too many runs are open.
 * - `held`: the run has ended while its post is in a batch. The patch waits until the post is settled.
 * - `kept`: the start of an open run was left on disk when the exporter closed.
 * - A run can be dropped in every stage.
 */
export type Stage =
  | 'started'
  | 'incomplete'
  | 'whole'
  | 'patch'
  | 'posting'
  | 'posted'
  | 'held'
  | 'finishing'
  | 'settled'
  | 'kept';

/** The segment that a run was read from. It stays on disk until all its runs are settled. */
export interface Ticket {
  readonly segment: Segment;
  /** Whether some runs were not delivered and stay on disk for the next process. */
  isKept: boolean;
  /** Whether a delivered record is the start of a run whose end may follow from a later segment. */
  awaitsEnd(run: EncodedRun): boolean;
  gaveUp(run: EncodedRun): void;
  settled(run: EncodedRun): void;
}

/**
 * A run from its start until it is settled. `Delivery`, `Item` and `Batch` are classes, because V8 may allocate the objects
 * of a literal in the old generation if many of them survive. There they keep payloads until the next full collection.
 */
export class Delivery {
  readonly run: EncodedRun;
  /** Monotonic time of the start. */
  readonly startedAtMs: number;
  /** Monotonic time at which the record that is waiting or in a batch was recorded. */
  queuedAtMs: number;
  /** The same moment in active time (`SendGate.activeAt`), which the age limit refers to. */
  activeAtMs: number;
  stage: Stage = 'started';
  /** Whether the service has accepted the post, so that only a patch remains. */
  isPosted = false;
  /** End time of a run that was sent as incomplete. */
  incompleteAt: string | undefined;
  /** Size that counts against the limits of the queue. */
  bytes = 0;
  /** The metadata that was counted last, and its size. */
  countedMetadata: EncodedRun['metadata'];
  metadataBytes = 0;
  /** Groups of the flushes that wait for the post and for the patch. */
  postGroup: FlushGroup | undefined;
  patchGroup: FlushGroup | undefined;
  /** Segments that hold the start and the end in write-ahead. */
  startSegment: Segment | undefined;
  endSegment: Segment | undefined;
  /** Set if the run was read from disk. Its record stays there until the run is settled. */
  readonly ticket: Ticket | undefined;
  /** Neighbours in the list of open runs. */
  older: Delivery | undefined;
  newer: Delivery | undefined;

  constructor(run: EncodedRun, nowMs: number, activeAtMs: number, ticket?: Ticket) {
    this.run = run;
    this.startedAtMs = nowMs;
    this.queuedAtMs = nowMs;
    this.activeAtMs = activeAtMs;
    this.ticket = ticket;
  }
}

/** Part of a request: the post or the patch of a run, as it was when its batch was formed. */
export class Item {
  readonly delivery: Delivery;
  /** Simple ingestion turns a post into a patch once the post is accepted and the end remains. */
  op: 'post' | 'patch';
  /** Whether the record includes the end of the run. */
  readonly isEnded: boolean;
  readonly endOverride: EndOverride | undefined;
  readonly inputs: string | undefined;
  readonly outputs: string | undefined;
  readonly events: string | undefined;
  /** Attachments that could not be read are removed. */
  attachments: readonly HeldAttachment[];
  /** Whether simple ingestion has posted the run. If so, only its patch remains to be sent. */
  isPosted = false;
  /** Content that is left out because the service found the run too large. */
  stripped: 'nothing' | 'attachments' | 'payloads' = 'nothing';

  /** Makes the record of a waiting delivery. */
  constructor(delivery: Delivery) {
    const { run, isPosted, stage, incompleteAt } = delivery;
    const isLast = stage === 'whole' || stage === 'patch';
    this.delivery = delivery;
    this.op = isPosted ? 'patch' : 'post';
    // A run that an earlier process left on disk may have no end.
    this.isEnded = isLast ? run.endTime !== undefined : incompleteAt !== undefined;
    this.endOverride = incompleteAt === undefined ? undefined : endOverrideOf(incompleteAt, isLast);
    this.inputs = run.inputs;
    this.outputs = this.isEnded ? run.outputs : undefined;
    this.events = this.isEnded ? run.events : undefined;
    this.attachments = run.attachments?.slice() ?? NO_ATTACHMENTS;
  }
}

/** The body of a request to `/runs/multipart`. */
export interface RequestBody {
  readonly boundary: string;
  readonly chunks: readonly Uint8Array[];
  /** Size in bytes before compression. */
  readonly sizeBytes: number;
  /** Bytes of memory that `chunks` hold. */
  readonly heldBytes: number;
  readonly isGzipped: boolean;
}

/** Facts shared by all pieces of a batch that is split because the service refuses it. */
export interface Lineage {
  isPartlyAccepted: boolean;
  /** Whether it is counted among the batches of which nothing was accepted. */
  isCounted: boolean;
}

/** Records that are sent in one request. */
export class Batch {
  readonly items: readonly Item[];
  /** Built by the sender at the first attempt and kept for retries. */
  body: RequestBody | undefined;
  /** Number of large uploads during which the connection broke. */
  brokenUploads = 0;
  attempts = 0;
  notBeforeMs: number;
  /** Number of failures that the runs themselves may have caused. */
  suspicions: number;
  readonly lineage: Lineage;

  /** `origin` is the batch that these items were split from. */
  constructor(items: readonly Item[], nowMs: number, origin?: Batch) {
    this.items = items;
    this.notBeforeMs = nowMs;
    this.suspicions = origin?.suspicions ?? 0;
    this.lineage = origin?.lineage ?? { isPartlyAccepted: false, isCounted: false };
  }
}

const INCOMPLETE = 'Incomplete: the run had not ended when its exporter gave up waiting for it';
const LEFT_OUT = '{"runspan":"left out: the queue was full"}';
const NO_ATTACHMENTS: readonly HeldAttachment[] = [];

/** Size that every record counts with in addition to its content: the main part and the lines around parts. */
const RECORD_BYTES = 960;

/** The same for the lines around an attachment, which contain its name twice. */
const ATTACHMENT_BYTES = 256;

/** Returns the counter of the ledger that includes a run in this stage. */
export function placeOf(stage: Stage): Place {
  if (stage === 'whole' || stage === 'patch' || stage === 'held') return 'queued';
  return stage === 'finishing' ? 'inFlight' : 'open';
}

/** Whether the end of the run is still to be recorded. */
export function isOpen({ stage }: Delivery): boolean {
  return stage === 'started' || stage === 'posted' || stage === 'posting' || stage === 'incomplete';
}

/**
 * Returns the size of the content of a run. Text counts one byte per character, because counting bytes takes time in
 * proportion to the text, in the call of the application.
 */
export function sizeOfContent(delivery: Delivery): number {
  const { run } = delivery;
  if (run.metadata !== delivery.countedMetadata) {
    delivery.countedMetadata = run.metadata;
    delivery.metadataBytes = 0;
    if (run.metadata !== undefined) for (const json of run.metadata.values()) delivery.metadataBytes += json.length;
  }
  let bytes = RECORD_BYTES + run.dottedOrder.length + run.name.length + delivery.metadataBytes;
  bytes +=
    (run.inputs?.length ?? 0) + (run.outputs?.length ?? 0) + (run.events?.length ?? 0) + (run.error?.length ?? 0);
  if (run.tags !== undefined) for (const tag of run.tags) bytes += tag.length;
  if (run.attachments === undefined) return bytes;
  for (const { name, mimeType, bytes: content } of run.attachments) {
    bytes += ATTACHMENT_BYTES + 2 * name.length + mimeType.length + sizeOf(content);
  }
  return bytes;
}

/** Returns the bytes by which the payloads are longer in UTF-8 than their number of characters. */
export function bytesBeyondLength({ run: { inputs, outputs } }: Delivery): number {
  let bytes = 0;
  for (const text of [inputs, outputs]) if (text !== undefined) bytes += Buffer.byteLength(text) - text.length;
  return bytes;
}

/** Removes the content that an accepted post has delivered, so that the patch does not repeat it. */
export function releasePosted({ delivery: { run }, inputs, attachments }: Item): void {
  if (run.inputs === inputs) run.inputs = undefined;
  run.attachments = run.attachments?.filter((attachment) => !attachments.includes(attachment));
}

/**
 * Replaces the outputs of a run by a marker and removes its events and attachments. Attachments stay while the post is
 * in a batch, because the post may include them.
 */
export function dropEndPayloads({ run, stage }: Delivery): void {
  if (run.outputs !== undefined) run.outputs = LEFT_OUT;
  run.events = undefined;
  if (stage !== 'posting') dropAttachments(run, run.attachments ?? NO_ATTACHMENTS);
}

/** Removes attachments from a run and counts them in its metadata. */
export function dropAttachments(run: EncodedRun, dropped: readonly HeldAttachment[]): void {
  if (dropped.length === 0) return;
  const before = Number(run.metadata?.get('dropped_attachments') ?? 0);
  run.metadata = new Map(run.metadata).set('dropped_attachments', String(before + dropped.length));
  run.attachments = run.attachments?.filter((attachment) => !dropped.includes(attachment));
}

export function halves<Element>(items: readonly Element[]): (readonly Element[])[] {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}

/** Shuffles items, so that a batch with many bad runs is not mistaken for an entirely bad one at every attempt. */
export function shuffled(items: readonly Item[], random: () => number): Item[] {
  const keyed = items.map((item) => ({ item, at: random() }));
  return keyed.sort((a, b) => a.at - b.at).map(({ item }) => item);
}

/** Removes the attachments of a run that is too large for the service, then its payloads. */
export function strip(item: Item): void {
  const isWithAttachments = item.stripped === 'nothing' && item.attachments.length > 0;
  item.stripped = isWithAttachments ? 'attachments' : 'payloads';
  if (isWithAttachments) dropAttachments(item.delivery.run, item.attachments);
  diagnostics.warnOnce(
    `stripped ${item.stripped}`,
    `a run is too large for the service; its ${item.stripped} are left out, as are those of other runs that are too large`,
  );
}

function endOverrideOf(incompleteAt: string, isLast: boolean): EndOverride {
  return isLast ? { error: '' } : { endTime: incompleteAt, error: INCOMPLETE };
}
