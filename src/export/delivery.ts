import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import { type HeldAttachment, sizeOf } from '../payload/attachment.ts';
import type { EncodedRun, EndOverride } from '../run/encoded-run.ts';
import type { FlushGroup, RunCounter } from './ledger.ts';
import type { Segment } from './spool/spool.ts';

/**
 * The stages that a run passes through during delivery. A run has at most one record in delivery at a time:
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
 * - Runs in `started`, `incomplete`, `whole` and `patch` wait in the queue. Runs in `posting` and `finishing` are in a
 *   batch, which is in flight or waits for a retry.
 * - `incomplete`: an open run that is sent before its end, because `limits.openRuns` or `limits.openRunAgeMs` was
 *   reached.
 * - `held`: the run has ended, but its post is still in a batch. The run's end is sent as a patch after the post is
 *   accepted.
 * - `kept`: the start of an open run was left on disk when the exporter closed.
 * - A run can be dropped at any stage.
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

/** The segment that a run was read from. The segment stays on disk until all of its runs are settled. */
export interface Ticket {
  readonly segment: Segment;
  /** Whether the segment contains undelivered runs, so that it stays on disk for the next process. */
  isKept: boolean;
  /** Called when a run from the segment is delivered. Returns true if a later segment may contain the run's end. */
  awaitsEnd(run: EncodedRun): boolean;
  dropped(run: EncodedRun): void;
  settled(run: EncodedRun): void;
}

/**
 * A run's delivery state, from its start until it is delivered or dropped. `Delivery`, `Item` and `Batch` are classes,
 * because V8 may allocate object literals in the old generation, where payloads stay in memory until the next full
 * garbage collection.
 */
export class Delivery {
  readonly run: EncodedRun;
  readonly startedAtMs: number;
  /** Monotonic time at which the run's undelivered record was queued. */
  queuedAtMs: number;
  /**
   * `queuedAtMs` in active time, which does not advance during pauses (`SendGate.activeAt`). The age of an undelivered
   * run is measured from `activeAtMs`.
   */
  activeAtMs: number;
  stage: Stage = 'started';
  /** Whether the service has accepted the run's post. The run's next record is then a patch. */
  isPosted = false;
  /** End time that was sent for an incomplete run. */
  incompleteAt: string | undefined;
  /** Bytes that count towards the queue limits. */
  bytes = 0;
  /** The metadata that `metadataBytes` was measured from, so that unchanged metadata is not measured again. */
  countedMetadata: EncodedRun['metadata'];
  metadataBytes = 0;
  /** Flush groups that wait for the run's post and patch to be settled. */
  postGroup: FlushGroup | undefined;
  patchGroup: FlushGroup | undefined;
  /** With `write-ahead`, the segments on disk that contain the run's start and end. */
  startSegment: Segment | undefined;
  endSegment: Segment | undefined;
  /** The ticket for the segment that the run was read from. Undefined if the run was not read from disk. */
  readonly ticket: Ticket | undefined;
  /** The run's neighbours in the linked list of open runs. */
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

/** A run's post or patch in a batch. Keeps the payloads that the run had when the batch was formed. */
export class Item {
  readonly delivery: Delivery;
  /** Changes from `post` to `patch` if simple ingestion has sent the post but not the end. */
  op: 'post' | 'patch';
  /** Whether the record includes the run's end. */
  readonly isEnded: boolean;
  readonly endOverride: EndOverride | undefined;
  readonly inputs: string | undefined;
  readonly outputs: string | undefined;
  readonly events: string | undefined;
  /** Attachments that cannot be read are removed. */
  attachments: readonly HeldAttachment[];
  /** Whether simple ingestion has sent the post, which contains the inputs. */
  isPosted = false;
  /** What was removed from a run that is too large for the service. */
  stripped: 'nothing' | 'attachments' | 'payloads' = 'nothing';

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

export interface RequestBody {
  readonly boundary: string;
  readonly chunks: readonly Uint8Array[];
  /** Size before compression, in bytes. */
  readonly sizeBytes: number;
  /** Size of `chunks` in memory, in bytes. */
  readonly heldBytes: number;
  readonly isGzipped: boolean;
}

/** State shared by all batches that were split from one batch. */
export interface SharedState {
  isPartlyAccepted: boolean;
  /** Whether the original batch was already counted as a batch without an accepted run. */
  isCounted: boolean;
}

/** Records that are sent in one request. */
export class Batch {
  readonly items: readonly Item[];
  /** The request body. Encoded at the first attempt and reused for retries. */
  body: RequestBody | undefined;
  brokenUploads = 0;
  attempts = 0;
  notBeforeMs: number;
  /** Number of failed attempts that one of the batch's runs may have caused. */
  suspectFailures: number;
  readonly shared: SharedState;

  /** `origin` is the batch from which these items were split. */
  constructor(items: readonly Item[], nowMs: number, origin?: Batch) {
    this.items = items;
    this.notBeforeMs = nowMs;
    this.suspectFailures = origin?.suspectFailures ?? 0;
    this.shared = origin?.shared ?? { isPartlyAccepted: false, isCounted: false };
  }
}

const INCOMPLETE = 'Incomplete: the run had not ended when its exporter gave up waiting for it';
const LEFT_OUT = '{"runspan":"left out: the queue was full"}';
const NO_ATTACHMENTS: readonly HeldAttachment[] = [];

/** Estimated bytes of a record without its payloads, including the delimiters and headers of all parts. */
const RECORD_BYTES = 960;

const ATTACHMENT_BYTES = 256;

export function counterOf(stage: Stage): RunCounter {
  if (stage === 'whole' || stage === 'patch' || stage === 'held') return 'queued';
  return stage === 'finishing' ? 'inFlight' : 'open';
}

export function isOpen({ stage }: Delivery): boolean {
  return stage === 'started' || stage === 'posted' || stage === 'posting' || stage === 'incomplete';
}

/** Counts each character as one byte, because counting UTF-8 bytes would slow down the application. */
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

export function bytesBeyondLength({ run: { inputs, outputs } }: Delivery): number {
  let bytes = 0;
  for (const text of [inputs, outputs]) if (text !== undefined) bytes += Buffer.byteLength(text) - text.length;
  return bytes;
}

/** Removes the inputs and attachments of an accepted post, so that the patch does not repeat them. */
export function releasePosted({ delivery: { run }, inputs, attachments }: Item): void {
  if (run.inputs === inputs) run.inputs = undefined;
  run.attachments = run.attachments?.filter((attachment) => !attachments.includes(attachment));
}

/**
 * Removes an ended run's payloads. Keeps its attachments while the post is in a batch, because the post may contain
 * them.
 */
export function dropEndPayloads({ run, stage }: Delivery): void {
  if (run.outputs !== undefined) run.outputs = LEFT_OUT;
  run.events = undefined;
  if (stage !== 'posting') dropAttachments(run, run.attachments ?? NO_ATTACHMENTS);
}

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

/** Shuffles items. If a bad run always came first, the endpoint would seem to refuse every run. */
export function shuffled(items: readonly Item[], random: () => number): Item[] {
  const keyed = items.map((item) => ({ item, at: random() }));
  return keyed.sort((a, b) => a.at - b.at).map(({ item }) => item);
}

export function strip(item: Item): void {
  const isWithAttachments = item.stripped === 'nothing' && item.attachments.length > 0;
  item.stripped = isWithAttachments ? 'attachments' : 'payloads';
  if (isWithAttachments) dropAttachments(item.delivery.run, item.attachments);
  diagnostics.warnOnce(
    `stripped ${item.stripped}`,
    `a run is too large for the service and is sent without its ${item.stripped}; logged once`,
  );
}

function endOverrideOf(incompleteAt: string, isLast: boolean): EndOverride {
  return isLast ? { error: '' } : { endTime: incompleteAt, error: INCOMPLETE };
}

export function reportBug(task: 'delivery' | 'flush' | 'shutdown', thrown: unknown): void {
  diagnostics.error(`${task} failed: ${messageOf(thrown)}`);
}
