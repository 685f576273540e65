import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import { sizeOf, type WaitingAttachment } from '../payload/attachment.ts';
import type { EncodedRun, EndOverride } from '../run/encoded-run.ts';
import type { FlushGroup, RunCounter } from './ledger.ts';
import type { Segment } from './spool/spool.ts';

/**
 * The stages of a run's delivery. At most one update of a run is in delivery at a time:
 *
 *     start ─► started ──(still open when due)──► posting ──accepted──► posted
 *                 │ end                             │ end                │ end
 *                 ▼                                 ▼                    ▼
 *               whole                            ended ──accepted──►   patch
 *                 └────────────► finishing ◄─────────────────────────────┘
 *                                    │ accepted, spilled or dropped
 *                                    ▼
 *                                 settled
 *
 * - Runs in `started`, `incomplete`, `whole` and `patch` wait in the queue. Runs in `posting` and `finishing` are in a
 *   batch that is being sent or waits for a retry.
 * - A `whole` run that `SlabWriter` has written is `settled`, and its slab is in delivery instead.
 * - `posted`: the run is still open, and no part of it waits. With OTLP, runs begin in this stage, without a post.
 * - `incomplete`: the run is still open, but is sent with an end, because `openRuns` or `openRunAgeMs` was
 *   reached, or the exporter or the process ends.
 * - `ended`: the run has ended, but a batch still contains its start. The run's end is sent after the service accepts
 *   the start.
 * - `leftOnDisk`: the exporter closed while the run was open, and left the run's start on disk.
 * - A run can be dropped at any stage.
 */
export type Stage =
  | 'started'
  | 'incomplete'
  | 'whole'
  | 'patch'
  | 'posting'
  | 'posted'
  | 'ended'
  | 'finishing'
  | 'settled'
  | 'leftOnDisk';

/** Tracks the runs from one file on disk. The file is deleted when all of them are delivered or dropped. */
export interface Ticket {
  readonly segment: Segment;
  /** Whether the file stays on disk for the next process, because it contains undelivered runs. */
  staysOnDisk: boolean;
  /** Called when a run from the file is delivered. Returns true if a later file may contain the run's end. */
  awaitsEnd(run: EncodedRun): boolean;
  dropped(run: EncodedRun): void;
  settled(run: EncodedRun): void;
}

/**
 * The delivery state of one run. `Delivery`, `Item` and `Batch` are classes, because V8 may allocate object literals in
 * the old generation. Payloads would stay in memory longer there.
 */
export class Delivery {
  readonly run: EncodedRun;
  readonly startedAtMs: number;
  /** Monotonic time at which the run was queued, in milliseconds. */
  queuedAtMs: number;
  /** When the run was queued, by the clock that stops during pauses. Gives the age of an undelivered run. */
  activeAtMs: number;
  stage: Stage = 'started';
  /** Whether the service has accepted the run's start. If true, the exporter sends the rest of the run as a patch. */
  isPosted = false;
  detail: string | undefined;
  /** The end with which the run is sent while it is open. Its own end replaces this one. */
  endOverride: EndOverride | undefined;
  /** The run's size for the queue limits, in bytes. */
  bytes = 0;
  /** The flush group that waits until nothing of the run is in memory. */
  group: FlushGroup | undefined;
  /** The segment files that contain the run's start and end if `durability` is `write-ahead`. */
  startSegment: Segment | undefined;
  endSegment: Segment | undefined;
  /** The segment file in which the run's start was written. The start may no longer be needed. */
  startedIn: Segment | undefined;
  /** Tracks the segment file that the run was read from. Undefined if the run was not read from disk. */
  readonly ticket: Ticket | undefined;
  /** The `DeliveryStates` that the run belongs to. Undefined if the run was not started in this process. */
  owner: object | undefined;
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

/** The part of a run in one batch. A `post` creates the run, a `patch` completes it. Later changes do not affect it. */
export class Item {
  readonly delivery: Delivery;
  /** Changes from `post` to `patch` after the post was sent in a request of its own. */
  op: 'post' | 'patch';
  readonly isEnded: boolean;
  readonly endOverride: EndOverride | undefined;
  readonly inputs: string | undefined;
  readonly outputs: string | undefined;
  readonly events: string | undefined;
  /** The run's attachments. Unreadable attachments are removed. */
  attachments: readonly WaitingAttachment[];
  /** Whether the inputs were already sent in a request of their own. */
  hasSentInputs = false;
  /** The data that was removed because the run is too large for the service. */
  stripped: 'nothing' | 'attachments' | 'payloads' = 'nothing';

  constructor(delivery: Delivery) {
    const { run, isPosted, stage, endOverride } = delivery;
    const isLast = stage === 'whole' || stage === 'patch';
    this.delivery = delivery;
    this.op = isPosted ? 'patch' : 'post';
    // If an earlier process left the run on disk, the run may have no end.
    this.isEnded = isLast ? run.endTime !== undefined : endOverride !== undefined;
    this.endOverride = isLast ? undefined : endOverride;
    this.inputs = run.inputs;
    this.outputs = this.isEnded ? run.outputs : undefined;
    this.events = this.isEnded ? run.events : undefined;
    this.attachments = run.attachments?.slice() ?? NO_ATTACHMENTS;
  }
}

const LEFT_OUT = '{"runspan":"left out: the queue was full"}';
const NO_ATTACHMENTS: readonly WaitingAttachment[] = [];

/** Estimated size of a run in a multipart body, without the payloads, in bytes. */
const RECORD_BYTES = 960;

const ATTACHMENT_BYTES = 256;

export function counterOf(stage: Stage): RunCounter {
  if (stage === 'whole' || stage === 'patch' || stage === 'ended') return 'queued';
  if (stage === 'leftOnDisk') return 'spooled';
  return stage === 'finishing' ? 'inFlight' : 'open';
}

export function isOpen({ stage }: Delivery): boolean {
  return (
    stage === 'started' || stage === 'posted' || stage === 'posting' || stage === 'incomplete' || stage === 'leftOnDisk'
  );
}

/** Returns a run's estimated size in bytes. Counts one byte per character, because counting UTF-8 bytes is too slow. */
export function sizeOfContent({ run }: Pick<Delivery, 'run'>): number {
  let bytes = RECORD_BYTES + run.dottedOrder.length + run.name.length;
  if (run.metadata !== undefined) for (const json of run.metadata.values()) bytes += json.length;
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

/** Removes the inputs and attachments that the service has accepted, so that the patch does not repeat them. */
export function releasePosted({ delivery: { run }, inputs, attachments }: Item): void {
  if (run.inputs === inputs) run.inputs = undefined;
  run.attachments = run.attachments?.filter((attachment) => !attachments.includes(attachment));
}

/** Removes an ended run's outputs and events, and its attachments unless a batch with its start may need them. */
export function dropEndPayloads({ run, stage }: Delivery): void {
  if (run.outputs !== undefined) run.outputs = LEFT_OUT;
  run.events = undefined;
  if (stage !== 'posting') dropAttachments(run, run.attachments ?? NO_ATTACHMENTS);
}

export function dropAttachments(run: EncodedRun, dropped: readonly WaitingAttachment[]): void {
  if (dropped.length === 0) return;
  const before = Number(run.metadata?.get('dropped_attachments') ?? 0);
  run.metadata = new Map(run.metadata).set('dropped_attachments', String(before + dropped.length));
  run.attachments = run.attachments?.filter((attachment) => !dropped.includes(attachment));
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

export function reportBug(task: 'delivery' | 'flush' | 'shutdown', thrown: unknown): void {
  diagnostics.error(`${task} failed: ${messageOf(thrown)}`);
}
