import { type HeldAttachment, sizeOf } from '../payload/attachment.ts';
import { type EncodedRun, type EndOverride, releaseRun } from '../run/encoded-run.ts';
import type { FlushGroup } from './barrier.ts';
import type { Place } from './ledger.ts';
import type { Ticket } from './replay.ts';
import type { Segment } from './spool.ts';

/**
 * Where a run stands on its way. A run has at most one record on its way at a time:
 *
 *     start ─► started ──────(sent alone)──────► posting ──accepted──► posted
 *                 │ end                             │ end                │ end
 *                 ▼                                 ▼                    ▼
 *               whole                             held ──accepted──►   patch
 *                 └────────────► finishing ◄─────────────────────────────┘
 *                                    │ accepted or given up
 *                                    ▼
 *                                 settled
 *
 * - `started`, `whole`, `patch` wait in the queue; `posting` and `finishing` are in flight;
 * - `ending`: the post is accepted and the run has ended, and what is attached to it is still read;
 * - `held`: the post is in flight and the end is recorded, so the patch waits for the post to settle;
 * - a given-up record settles the run from wherever it stands.
 */
export type Stage = 'started' | 'whole' | 'patch' | 'posting' | 'posted' | 'ending' | 'held' | 'finishing' | 'settled';

/** One run between its start and the moment when it is delivered or given up. */
export interface Delivery {
  readonly run: EncodedRun;
  /** Monotonic milliseconds. */
  readonly startedAtMs: number;
  /** When the part of it that waits or is under way was recorded, in the time of `Pace.activeMs`. */
  recordedAtMs: number;
  /** The same in monotonic milliseconds. */
  queuedAtMs: number;
  stage: Stage;
  /** The service has its start, so that what is left to send is a patch. */
  isPosted: boolean;
  /**
   * Time at which the exporter stopped waiting for the run to end. The run is sent as incomplete, and again when it
   * ends.
   */
  incompleteAt: string | undefined;
  /** Number of payload bytes that are queued or in flight. */
  bytes: number;
  /** The payloads that were counted last, and their bytes in UTF-8. */
  readonly inputs: CountedText;
  readonly outputs: CountedText;
  /** What was attached when it started, which its post carries. What comes later is counted at the end, and goes with it. */
  attachedAtStart: readonly HeldAttachment[];
  /** The flushes that wait for its post, and for its patch. */
  postGroup: FlushGroup | undefined;
  patchGroup: FlushGroup | undefined;
  /** In write-ahead, where on disk its start stands, and later what it was at its end. */
  startSegment: Segment | undefined;
  endSegment: Segment | undefined;
  /** It comes from the disk, where it stands until it has settled. */
  readonly ticket: Ticket | undefined;
}

const INCOMPLETE = 'Incomplete: the run had not ended when its exporter gave up waiting for it';

const NO_ATTACHMENTS: readonly HeldAttachment[] = [];

/** The delivery of a run that has just started; `startedAtMs` is monotonic, `recordedAtMs` of `Pace.activeMs`. */
export function newDelivery(
  run: EncodedRun,
  startedAtMs: number,
  recordedAtMs: number,
  postGroup: FlushGroup | undefined,
  ticket?: Ticket,
): Delivery {
  return {
    run,
    startedAtMs,
    recordedAtMs,
    queuedAtMs: startedAtMs,
    stage: 'started',
    isPosted: false,
    incompleteAt: undefined,
    bytes: 0,
    inputs: new CountedText(),
    outputs: new CountedText(),
    attachedAtStart: run.attachments?.slice() ?? NO_ATTACHMENTS,
    postGroup,
    patchGroup: undefined,
    startSegment: undefined,
    endSegment: undefined,
    ticket,
  };
}

/** Where the ledger has a run that stands at this stage. */
export function placeOf(stage: Stage): Place {
  if (stage === 'whole' || stage === 'patch' || stage === 'held') return 'queued';
  return stage === 'finishing' ? 'inFlight' : 'open';
}

/** When the part of it that waits or is under way was recorded; undefined when there is none. */
export function waitingSinceMs({ stage, queuedAtMs }: Delivery): number | undefined {
  return stage === 'posted' || stage === 'ending' || stage === 'settled' ? undefined : queuedAtMs;
}

/** One record under way: the post or the patch of a run, as it was when its batch was taken. */
export interface Item {
  readonly delivery: Delivery;
  /** Simple ingestion turns a post into a patch once the post is accepted and the end remains. */
  op: 'post' | 'patch';
  /** Whether the record carries the end of the run. */
  readonly isEnded: boolean;
  readonly endOverride: EndOverride | undefined;
  readonly inputs: string | undefined;
  /** Bytes in UTF-8, as of the other payloads; 0 where there is none. */
  readonly inputsBytes: number;
  readonly outputs: string | undefined;
  readonly outputsBytes: number;
  readonly events: string | undefined;
  /** Whether the outcome is known. Later outcomes are ignored. */
  isSettled: boolean;
  /** Without those that turned out to be unreadable. */
  attachments: readonly HeldAttachment[];
  /** Whether simple ingestion has already posted the run. If so, only its patch remains to be sent. */
  isPosted: boolean;
  /** What is left out because the service found the run too large: first its attachments, then its payloads as well. */
  stripped: 'nothing' | 'attachments' | 'payloads';
}

/**
 * Counts the bytes of a payload, which goes over the whole text: once for the queue, the batch and the frames, and again
 * only when it has become another text.
 */
export class CountedText {
  #text: string | undefined;
  #bytes = 0;

  bytesOf(text: string | undefined): number {
    if (text !== this.#text) {
      this.#text = text;
      this.#bytes = text === undefined ? 0 : Buffer.byteLength(text);
    }
    return this.#bytes;
  }
}

/** Takes the record of a queued delivery, and moves it into flight. */
export function takeItem(delivery: Delivery): Item {
  const { run, isPosted } = delivery;
  // What an earlier process has left behind may have no end; it is all that there is.
  const isLast = delivery.stage !== 'started';
  const isEnded = isLast ? run.endTime !== undefined : delivery.incompleteAt !== undefined;
  const item: Item = {
    delivery,
    op: isPosted ? 'patch' : 'post',
    isEnded,
    endOverride: endOverrideOf(delivery, isLast),
    inputs: run.inputs,
    inputsBytes: delivery.inputs.bytesOf(run.inputs),
    outputs: isEnded ? run.outputs : undefined,
    outputsBytes: isEnded ? delivery.outputs.bytesOf(run.outputs) : 0,
    events: isEnded ? run.events : undefined,
    attachments: (isLast ? run.attachments?.slice() : startAttachments(delivery)) ?? NO_ATTACHMENTS,
    isSettled: false,
    isPosted: false,
    stripped: 'nothing',
  };
  delivery.stage = isLast ? 'finishing' : 'posting';
  return item;
}

function endOverrideOf({ incompleteAt }: Delivery, isLast: boolean): EndOverride | undefined {
  if (incompleteAt === undefined) return undefined;
  return isLast ? { error: '' } : { endTime: incompleteAt, error: INCOMPLETE };
}

/** Those that the run has not let go of since. */
function startAttachments({ run, attachedAtStart }: Delivery): readonly HeldAttachment[] {
  return attachedAtStart.filter((attachment) => run.attachments?.includes(attachment));
}

/** Lets go of what an accepted post has carried, so that the patch does not carry it again. */
export function releasePosted({ delivery, inputs, attachments }: Item): void {
  const { run } = delivery;
  delivery.isPosted = true;
  if (run.inputs === inputs) run.inputs = undefined;
  // The count would hold on to the text.
  delivery.inputs.bytesOf(run.inputs);
  delivery.attachedAtStart = NO_ATTACHMENTS;
  run.attachments = run.attachments?.filter((attachment) => !attachments.includes(attachment));
}

/** Lets go of everything that a settled run carried: the application may hold on to the run itself for long. */
export function releaseAll(delivery: Delivery): void {
  releaseRun(delivery.run);
  delivery.inputs.bytesOf(undefined);
  delivery.outputs.bytesOf(undefined);
  delivery.attachedAtStart = NO_ATTACHMENTS;
}

/**
 * Replaces the outputs of a run by a marker, and drops its events. Its attachments are also dropped, unless they are in
 * flight with the post of the run.
 */
export function dropEndPayloads({ run, stage, attachedAtStart }: Delivery): void {
  if (run.outputs !== undefined) run.outputs = '{"runspan":"left out: the queue was full"}';
  run.events = undefined;
  const inFlight = stage === 'posting' ? attachedAtStart : NO_ATTACHMENTS;
  dropAttachments(run, run.attachments?.filter((attachment) => !inFlight.includes(attachment)) ?? []);
}

/** Leaves attachments of a run out, and says in its metadata how many. */
export function dropAttachments(run: EncodedRun, dropped: readonly HeldAttachment[]): void {
  if (dropped.length === 0) return;
  const before = Number(run.metadata?.get('dropped_attachments') ?? 0);
  run.metadata = new Map(run.metadata).set('dropped_attachments', String(before + dropped.length));
  run.attachments = run.attachments?.filter((attachment) => !dropped.includes(attachment));
}

/** Bytes that every record is counted with beside what is counted: the rest of its main part, the lines around parts. */
const RECORD_BYTES = 960;

/** The same for the lines around an attachment, which tell its name twice. */
const ATTACHMENT_BYTES = 256;

/** Bytes of what a run holds now, for the queue's and the batch's bounds. */
export function heldBytes({ run, inputs, outputs }: Delivery): number {
  let bytes = RECORD_BYTES + run.dottedOrder.length + run.name.length;
  bytes += inputs.bytesOf(run.inputs) + outputs.bytesOf(run.outputs);
  for (const tag of run.tags ?? []) bytes += tag.length;
  if (run.events !== undefined) bytes += Buffer.byteLength(run.events);
  if (run.error !== undefined) bytes += Buffer.byteLength(run.error);
  if (run.metadata !== undefined) for (const json of run.metadata.values()) bytes += json.length;
  for (const { name, mimeType, bytes: content } of run.attachments ?? []) {
    bytes += ATTACHMENT_BYTES + 2 * Buffer.byteLength(name) + mimeType.length + sizeOf(content);
  }
  return bytes;
}
