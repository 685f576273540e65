import { guard, ignoreErrors } from '../../base/guard.ts';
import { delay, setSoon } from '../../platform/timers.ts';
import { type EncodedRun, mainJson, type PayloadTexts, parseMainJson } from '../../run/encoded-run.ts';
import type { EndedTexts } from '../../run/sink.ts';
import { Delivery, dropEndPayloads, reportBug } from '../delivery.ts';
import type { ExporterParts } from '../exporter-parts.ts';
import type { DeliveryStates } from '../states.ts';
import { COMPRESSED_BYTES_MIN, compress, firstSupported } from '../wire/compress.ts';
import { newBoundary, PartBuffer } from '../wire/part-buffer.ts';
import { BufferPool, Slab, type WrittenRuns } from './slab.ts';

/**
 * Maximum number of ended runs that wait to be written, and of the characters in their outputs and events. The queue
 * limits do not count these characters yet.
 */
const ENDED_MAX = 64;
const ENDED_CHARACTERS_MAX = 256 * 1024;

const NEVER = Number.POSITIVE_INFINITY;

interface OpenBody extends WrittenRuns {
  readonly parts: PartBuffer;
  readonly activeAtMs: number[];
}

/**
 * Writes each run into a request body when it ends, unless a part of the run was sent before:
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
  readonly #sealed: (slab: Slab) => void;
  /** Called when a run has ended, and may have to wait for others. */
  readonly #added: () => void;
  #ended: (Delivery | EndedTexts)[] = [];
  #endedAtMs = NEVER;
  #endedCharacters = 0;
  #open: OpenBody | undefined;
  #isCompressing = false;
  #isEnding = false;

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
    this.add(delivery);
    return true;
  }

  /** The application does not wait for what happens in the next turn of the event loop, if there is one. */
  add(ended: Delivery | EndedTexts): void {
    const runs = this.#ended.push(ended);
    const { outputs, events } = ended instanceof Delivery ? ended.run : ended;
    this.#endedCharacters += (outputs?.length ?? 0) + (events?.length ?? 0);
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
      if (!(one instanceof Delivery)) guard('delivery', () => this.#writeLight(one));
      else if (this.#appendRun(one)) this.#states.written(one);
      else this.#states.queueWhole(one);
    }
  }

  seal(): void {
    this.write();
    this.#seal();
  }

  /** Called before a flush at the end of the process. A compression would keep it alive until another body is full. */
  ending(): void {
    this.seal();
    this.#isEnding = true;
  }

  /** Keeps slabs compressed, one after another. `next` returns the next one that waits. Never rejects. */
  async compressWaiting(next: () => Slab | undefined, changed: () => void): Promise<void> {
    if (this.#isCompressing) return;
    this.#isCompressing = true;
    try {
      for (let slab = next(); slab !== undefined && !this.#isEnding; slab = next()) {
        const { bytes } = slab.kept;
        const encoding = bytes.length < COMPRESSED_BYTES_MIN ? undefined : firstSupported(['zstd', 'gzip']);
        const compressed = encoding && (await compress([bytes], encoding).catch(() => undefined));
        if (next() !== slab) continue;
        slab.isTried = true;
        if (encoding === undefined || compressed === undefined || compressed.length >= bytes.length) continue;
        this.#states.hold(compressed.length - bytes.length);
        slab.keepCompressed(compressed, encoding);
        changed();
        // A compression keeps the process alive, but this timer does not.
        await delay(0, undefined);
      }
    } catch (thrown) {
      reportBug('delivery', thrown);
    }
    this.#isCompressing = false;
  }

  accepted(slab: Slab): void {
    this.#states.delivered(slab);
    if (slab.buffer !== undefined) this.#pool.give(slab.buffer);
  }

  /** A run that cannot be written goes through the queue. */
  #writeLight(ended: EndedTexts): void {
    const states = this.#states;
    const { id, startedAtMs, main, inputs, outputs, events } = ended;
    if (!states.isOverfull && this.#append(id, main, ended)) {
      states.endLight();
      return;
    }
    const run = Object.assign(parseMainJson(main) as EncodedRun, { inputs, outputs, events });
    const delivery = states.beginLight(run, startedAtMs);
    if (states.isOverfull) dropEndPayloads(delivery);
    states.end(delivery);
  }

  #appendRun({ run }: Delivery): boolean {
    try {
      return this.#append(run.id, mainJson(run, true), run);
    } catch {
      // For example, the text of the run exceeds the maximum string length.
      return false;
    }
  }

  /** Writes a run into the open body. Returns false, and writes nothing, if there is no memory for it. */
  #append(id: string, main: string, texts: PayloadTexts & { readonly isIdGiven?: boolean }): boolean {
    const { info, endpoint, monotonicMs } = this.#parts;
    const nowMs = monotonicMs();
    const open = this.#open ?? ignoreErrors(() => this.#begin(nowMs));
    if (open === undefined) return false;
    const { parts, activeAtMs } = open;
    const { length } = parts;
    try {
      parts.addRun('post', id, main, texts);
    } catch {
      parts.length = length;
      return false;
    }
    if (activeAtMs.length > 0 && parts.closedLength > info.batch.bytes) {
      parts.length = length;
      this.#seal();
      return this.#append(id, main, texts);
    }
    activeAtMs.push(endpoint.activeAt(nowMs));
    if (texts.isIdGiven === true) open.givenIds.add(id);
    this.#states.hold(parts.length - length);
    if (activeAtMs.length >= info.batch.runs || parts.closedLength >= info.batch.bytes) this.#seal();
    return true;
  }

  #begin(firstAtMs: number): OpenBody {
    const boundary = newBoundary();
    const parts = new PartBuffer(boundary, this.#pool.take());
    this.#states.hold(parts.closedLength);
    const group = this.#states.flushes.enter();
    this.#open = { parts, boundary, activeAtMs: [], firstAtMs, group, givenIds: new Set() };
    return this.#open;
  }

  #seal(): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    const { parts, ...written } = open;
    if (written.activeAtMs.length === 0) {
      this.#states.hold(-parts.closedLength);
      this.#states.flushes.leave(written.group);
      return;
    }
    const bytes = parts.close();
    const isSmall = bytes.length * 2 < parts.buffer.length;
    const copy = isSmall ? ignoreErrors(() => Buffer.from(bytes)) : undefined;
    if (copy !== undefined) this.#pool.give(parts.buffer);
    this.#isEnding = false;
    this.#sealed(copy === undefined ? new Slab(written, bytes, parts.buffer) : new Slab(written, copy));
  }
}
