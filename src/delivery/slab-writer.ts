import { guard, ignoreErrors } from '../base/guard.ts';
import { setSoon } from '../platform/timers.ts';
import { mainJson } from '../run/encoded-run.ts';
import type { LightRun } from '../run/sink.ts';
import { Delivery, type Item } from './delivery.ts';
import type { FlushGroup } from './ledger.ts';
import { BufferPool, Slab } from './slab.ts';
import type { DeliveryStates, ExporterParts } from './states.ts';
import { COMPRESSED_BYTES_MIN, compress, firstSupported } from './wire/compress.ts';
import { newBoundary, PartBuffer, type RunTexts } from './wire/part-buffer.ts';

/**
 * Maximum number of ended runs that wait to be written, and of the characters in their outputs and events. The queue
 * limits do not count these characters yet.
 */
const ENDED_MAX = 64;
const ENDED_CHARACTERS_MAX = 256 * 1024;

const NEVER = Number.POSITIVE_INFINITY;

const NEVER_ABORTED = new AbortController().signal;

interface OpenBody {
  readonly parts: PartBuffer;
  readonly activeAtMs: number[];
  readonly firstAtMs: number;
  readonly group: FlushGroup;
}

/**
 * Writes ended runs of which nothing was sent into request bodies:
 *
 *     end ─► ended ──(next turn)──► open body ──(full, due or flushed)──► slab ──2xx──► delivered
 *                                                                          │ a run must be treated by itself
 *                                                                          ▼
 *                                                                     Delivery, Item
 *
 * Such a run needs no state of its own. All other runs take the way through the queue.
 */
export class SlabWriter {
  readonly #parts: ExporterParts;
  readonly #states: DeliveryStates;
  readonly #pool: BufferPool;
  /** Called when a body is full or flushed. */
  readonly #sealed: (slab: Slab) => void;
  /** Called when a run has ended, and may have to wait for others. */
  readonly #added: () => void;
  #ended: (Delivery | LightRun)[] = [];
  #endedAtMs = NEVER;
  #endedCharacters = 0;
  #open: OpenBody | undefined;

  constructor(parts: ExporterParts, states: DeliveryStates, sealed: (slab: Slab) => void, added: () => void) {
    this.#parts = parts;
    this.#states = states;
    this.#pool = new BufferPool(parts.isWriting);
    this.#sealed = sealed;
    this.#added = added;
  }

  /** Monotonic time at which the first run ended that is in no slab. Infinity if there is none. */
  get firstAtMs(): number {
    return this.#open?.firstAtMs ?? this.#endedAtMs;
  }

  /** Takes a run that ends. Returns false if the run must go through the queue. */
  end(delivery: Delivery): boolean {
    const { run, stage, group } = delivery;
    // A flush that began while the run was open waits for its start.
    if (stage !== 'started' || run.attachments !== undefined || !this.#states.flushes.isNewest(group)) return false;
    this.#states.endWhole(delivery);
    this.#endedCharacters += (run.outputs?.length ?? 0) + (run.events?.length ?? 0);
    this.#add(delivery);
    return true;
  }

  /** Calls `finish` of a light run when the other ended runs are written. */
  finishSoon(run: LightRun): void {
    this.#add(run);
  }

  /** The application does not wait for what happens in the next turn of the event loop, if there is one. */
  #add(ended: Delivery | LightRun): void {
    const runs = this.#ended.push(ended);
    if (runs === 1) {
      this.#endedAtMs = this.#parts.monotonicMs();
      setSoon(() => this.write()).unref();
      this.#added();
    }
    if (runs >= ENDED_MAX || this.#endedCharacters >= ENDED_CHARACTERS_MAX) this.write();
  }

  write(): void {
    const ended = this.#ended;
    if (ended.length === 0) return;
    this.#ended = [];
    this.#endedAtMs = NEVER;
    this.#endedCharacters = 0;
    for (const one of ended) {
      if (!(one instanceof Delivery)) guard('delivery', () => one.finish());
      else if (this.#appendRun(one)) this.#states.written(one);
      else this.#states.queueWhole(one);
    }
  }

  /** Ends the open body. */
  seal(): void {
    this.write();
    this.#seal();
  }

  /** Called when a slab is sent. */
  begin(slab: Slab): void {
    this.#states.countAs(slab, 'inFlight');
  }

  /** Keeps a slab compressed, if it is still waiting afterwards. Never rejects. */
  async compress(slab: Slab, isWaiting: () => boolean): Promise<void> {
    slab.isTried = true;
    const { bytes } = slab.kept;
    const encoding = firstSupported(['zstd', 'gzip']);
    if (encoding === undefined || bytes.length < COMPRESSED_BYTES_MIN) return;
    const compressed = await compress([bytes], encoding, NEVER_ABORTED).catch(() => bytes);
    if (!isWaiting() || slab.kept.bytes !== bytes || compressed.length >= bytes.length) return;
    this.#states.hold(compressed.length - bytes.length);
    slab.keepCompressed(compressed, encoding);
  }

  accepted(slab: Slab): void {
    this.#states.delivered(slab);
    if (slab.buffer !== undefined) this.#pool.give(slab.buffer);
  }

  /** Returns the slabs with the runs for whose index `isFirst` returns true, and with the others. */
  split(slab: Slab, isFirst: (at: number) => boolean): [Slab, Slab] {
    const [one, other] = slab.split(isFirst);
    this.#states.hold(one.kept.bytes.length + other.kept.bytes.length - slab.kept.bytes.length);
    this.#states.flushes.join(slab.group);
    return [one, other];
  }

  /** Returns the runs of a slab as they would be if they had gone through the queue. */
  readonly thaw = (slab: Slab): Item[] => {
    const states = this.#states;
    this.begin(slab);
    states.hold(-slab.kept.bytes.length);
    const items: Item[] = [];
    for (const { run, activeAtMs } of slab.read()) {
      if (run === undefined) {
        states.unreadable();
        continue;
      }
      const delivery = new Delivery(run, slab.firstAtMs, activeAtMs);
      delivery.stage = 'whole';
      delivery.detail = slab.detail;
      delivery.group = states.flushes.join(slab.group);
      items.push(states.thawed(delivery));
    }
    states.flushes.leave(slab.group);
    return items;
  };

  #appendRun({ run }: Delivery): boolean {
    try {
      return this.append(run.id, mainJson(run, true), run);
    } catch {
      // For example, the text of the run exceeds the maximum string length.
      return false;
    }
  }

  /** Writes a run into the open body. Returns false, and writes nothing, if there is no memory for it. */
  append(id: string, main: string, texts: RunTexts): boolean {
    const { info, endpoint, monotonicMs } = this.#parts;
    const nowMs = monotonicMs();
    const open = this.#open ?? ignoreErrors(() => this.#begin(nowMs));
    if (open === undefined) return false;
    const { parts, activeAtMs } = open;
    const { length } = parts;
    try {
      parts.addRun('post', id, main, texts);
    } catch {
      parts.cut(length);
      return false;
    }
    if (activeAtMs.length > 0 && parts.closedLength > info.batch.bytes) {
      parts.cut(length);
      this.#seal();
      return this.append(id, main, texts);
    }
    activeAtMs.push(endpoint.activeAt(nowMs));
    this.#states.hold(parts.length - length);
    if (activeAtMs.length >= info.batch.runs || parts.closedLength >= info.batch.bytes) this.#seal();
    return true;
  }

  #begin(firstAtMs: number): OpenBody {
    const parts = new PartBuffer(newBoundary(), this.#pool.take());
    this.#states.hold(parts.closedLength);
    this.#open = { parts, activeAtMs: [], firstAtMs, group: this.#states.flushes.enter() };
    return this.#open;
  }

  #seal(): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    const { parts, ...body } = open;
    if (body.activeAtMs.length === 0) {
      this.#states.hold(-parts.closedLength);
      this.#states.flushes.leave(body.group);
      return;
    }
    const bytes = parts.close();
    const isSmall = bytes.length * 2 < parts.buffer.length;
    const copy = isSmall ? ignoreErrors(() => Buffer.from(bytes)) : undefined;
    if (copy !== undefined) this.#pool.give(parts.buffer);
    const content = copy === undefined ? { bytes, buffer: parts.buffer } : { bytes: copy };
    this.#sealed(new Slab({ ...body, ...content, boundary: parts.boundary }));
  }
}
