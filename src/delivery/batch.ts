import type { Delivery, Item } from './delivery.ts';
import type { Failure } from './retry-policy.ts';
import { Slab } from './slab/slab.ts';
import type { Encoding } from './wire/compress.ts';

const NEVER = Number.POSITIVE_INFINITY;

export interface RequestBody {
  readonly contentType: string;
  readonly chunks: readonly Uint8Array[];
  /** Size of the body without compression, in bytes. */
  readonly plainBytes: number;
  /** Memory used by `chunks`, in bytes. 0 if the batch has the same bytes as a slab. */
  readonly waitingBytes: number;
  /** The `Content-Encoding` of `chunks`. Undefined if they are not compressed. */
  readonly encoding: Encoding | undefined;
}

/** Returns the runs of a slab one by one. `isSent` is whether the slab was ever sent. */
type Thaw = (slab: Slab, isSent: boolean) => readonly Item[];

/** Runs that are sent in one request, with the evidence that decides about them. A moment of 0 means never. */
export class Batch {
  /** The runs as bytes. Undefined once a run must be treated by itself. */
  slab: Slab | undefined;
  #items: readonly Item[] = [];
  readonly thaw: Thaw | undefined;
  /** The request body. Retries reuse the body of the first attempt. */
  body: RequestBody | undefined;
  brokenUploads = 0;
  /** The moments at which the batch was sent and failed, see `Endpoint`. */
  sentAt: number;
  firstFailedAt: number;
  lastFailedAt: number;
  /** Whether the batch is half of a failed batch or was put back unsent, and has not failed itself since. */
  isNew = false;
  /** Whether the batch was sent to find out whether the endpoint accepts requests again. */
  isProbe: boolean;
  failure: Failure | undefined;
  failedAtMs = 0;
  /** What earlier requests may have stored: nothing, some of several runs (status 409), or all. */
  stored: 'nothing' | 'some' | 'all';
  /** Time after which the request counts as lost. Used on edge runtimes. */
  endMs = 0;
  /** Number of failures of a lone run. The failures of a batch do not count. */
  strikes = 0;

  /** `origin` is the batch from which the runs were taken. A slab needs `thaw`. */
  constructor(content: readonly Item[] | Slab, origin?: Batch, thaw: Thaw | undefined = origin?.thaw) {
    if (content instanceof Slab) this.slab = content;
    else this.#items = content;
    this.thaw = thaw;
    this.sentAt = origin?.sentAt ?? 0;
    this.firstFailedAt = origin?.firstFailedAt ?? 0;
    this.lastFailedAt = origin?.lastFailedAt ?? 0;
    this.isProbe = origin?.isProbe ?? false;
    this.stored = origin?.stored ?? 'nothing';
  }

  get runs(): number {
    return this.slab?.runs ?? this.#items.length;
  }

  /** The runs one by one. Those of a slab are parsed, so this is not called for a batch that is accepted as a whole. */
  get items(): readonly Item[] {
    const { slab } = this;
    if (slab !== undefined) {
      this.slab = undefined;
      this.#items = (this.thaw as Thaw)(slab, this.sentAt > 0);
    }
    return this.#items;
  }

  set detail(detail: string) {
    if (this.slab !== undefined) this.slab.detail = detail;
    for (const { delivery } of this.#items) delivery.detail = detail;
  }

  /** Monotonic time at which the first run was queued, in milliseconds. */
  get queuedAtMs(): number {
    return this.slab?.written.firstAtMs ?? (this.#items[0] as Item).delivery.queuedAtMs;
  }

  /** Monotonic time at which the oldest run was queued, in milliseconds. */
  get oldestAtMs(): number {
    const { slab } = this;
    if (slab !== undefined) return slab.written.firstAtMs;
    return this.#items.reduce((oldestMs, { delivery }) => Math.min(oldestMs, delivery.queuedAtMs), NEVER);
  }

  /** Whether a 409 is an echo: an earlier request, or the process that wrote the run to disk, may have stored it. */
  isEcho({ ticket, run }: Delivery, { isRepeated }: { readonly isRepeated: boolean }): boolean {
    if (isRepeated || this.stored === 'all' || ticket?.segment.isForeign === true) return true;
    // The service may have refused the batch because of another run in it.
    return this.stored === 'some' && !run.isIdGiven;
  }

  isWith(delivery: Delivery): boolean {
    return this.#items.some((item) => item.delivery === delivery);
  }
}
