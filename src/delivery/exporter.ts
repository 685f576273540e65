import { clock } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { isPerRequest } from '../platform/node.ts';
import { clearTimer, DELAY_MAX_MS, setSoon, setTimer } from '../platform/timers.ts';
import { type DelayedEnd, delayedEndsSettled, releaseAll } from '../run/delayed-ends.ts';
import { type EncodedRun, type EndOverride, releaseRun } from '../run/encoded-run.ts';
import { type EndReason, PROGRAM_ENDED } from '../run/record.ts';
import { flushLimitMs } from '../run/run-options.ts';
import type { CapturePolicy, FlushLimit, FlushResult, RunPlace, RunSink } from '../run/sink.ts';
import type { Backlog } from '../run/stats.ts';
import { isoTimestamp } from '../run/time.ts';
import { Attempts } from './attempts.ts';
import { Delivery, dropEndPayloads, isOpen, reportBug } from './delivery.ts';
import type { ExporterParts } from './exporter-parts.ts';
import { HeldTraces } from './held-traces.ts';
import { type DropReason, type Stats, totalStats } from './ledger.ts';
import { DeliveryLoop } from './loop.ts';
import { LightRuns } from './slab/light-runs.ts';
import type { Slab } from './slab/slab.ts';
import { SlabWriter } from './slab/slab-writer.ts';
import { Spill } from './spool/spill.ts';
import { SpoolReader } from './spool/spool-reader.ts';
import { DeliveryStates } from './states.ts';

export const FLUSH_TIMEOUT_MS = 30_000;

const INCOMPLETE = 'Incomplete: the run did not end before the exporter stopped waiting';

/**
 * Queues runs and delivers them in the background. `DeliveryStates` stores each run's state. `DeliveryLoop` sends
 * batches, and `Attempts` decides what is sent next. `Spill` writes runs to disk, and `SpoolReader` reads runs from disk.
 */
export class Exporter implements RunSink {
  readonly capture: CapturePolicy;
  readonly hold: RunSink['hold'];
  readonly #held: HeldTraces | undefined;
  readonly #parts: ExporterParts;
  readonly #states: DeliveryStates;
  readonly #attempts: Attempts;
  readonly #loop: DeliveryLoop;
  readonly #slabs: SlabWriter | undefined;
  readonly light: LightRuns | undefined;
  readonly #spill: Spill | undefined;
  readonly #replay: SpoolReader | undefined;
  #state: 'open' | 'retiring' | 'closing' | 'closed' = 'open';
  #isOpened = false;
  #ends = 0;
  #closing: Promise<FlushResult> | undefined;
  #openRunTimer: NodeJS.Timeout | undefined;
  /** Resolve functions of pending `ready` calls. */
  #waiting: (() => void)[] = [];
  /** Timer that keeps the process alive while a `ready` call is pending. */
  #waitTimer: NodeJS.Timeout | undefined;

  constructor(parts: ExporterParts) {
    const { capture, spool } = parts;
    this.#parts = parts;
    this.capture = capture;
    const states = new DeliveryStates(parts);
    this.#states = states;
    // Runs on disk are read and written one by one. On edge runtimes, a body may belong to a request that has ended.
    if (parts.sendsStarts && spool === undefined && !isPerRequest) {
      const sealed = (slab: Slab): void => {
        this.#attempts.add(slab);
        this.#loop.wake();
      };
      this.#slabs = new SlabWriter(parts, states, sealed, () => this.#loop.recorded());
      this.light = new LightRuns(
        states,
        this.#slabs,
        () => this.#acceptLight(),
        () => this.#watchQueue(),
      );
    }
    if (capture.keep !== undefined) {
      const { ledger, limits, monotonicMs } = parts;
      const decided = (): void => this.#changed();
      const { counts } = ledger;
      const held = new HeldTraces({ rules: capture.keep, counts, ageMs: limits.openRunAgeMs, monotonicMs, decided });
      this.#held = held;
      this.hold = (rate) => {
        this.#open();
        return held.hold(rate);
      };
    }
    const attempts = new Attempts(parts, states, this.#slabs, () => this.#changed());
    this.#attempts = attempts;
    if (spool !== undefined) {
      const spooling = { ...parts, spool };
      this.#replay = new SpoolReader(spooling, states, attempts, () => this.#loop.wake());
      const spill = new Spill(spooling, states, this.#replay);
      this.#spill = spill;
      if (parts.isWriteAhead) spool.writeAgain = () => spill.again(attempts.unsettled);
    }
    this.#loop = new DeliveryLoop(parts, states, attempts, {
      spill: this.#spill,
      slabs: this.#slabs,
      light: this.light,
    });
    // Bound, because applications pass these methods as callbacks, as in `process.once('SIGTERM', exporter.close)`.
    this.flush = this.flush.bind(this);
    this.close = this.close.bind(this);
    this.stats = this.stats.bind(this);
    this.ready = this.ready.bind(this);
  }

  start(run: EncodedRun): boolean {
    this.#countCreated();
    const refusal = this.#refusal(run);
    if (refusal !== undefined) {
      this.#states.countDrop(run, refusal);
      return false;
    }
    // The oldest run in the queue is sent as incomplete. Light runs are older than this one, so they are queued first.
    if (this.#states.openRuns >= this.#parts.limits.openRuns) this.light?.begin();
    const delivery = this.#states.start(run);
    this.#spill?.started(delivery);
    if (this.#states.openRuns > this.#parts.limits.openRuns) this.#sendIncomplete();
    this.#watchQueue();
    return true;
  }

  #countCreated(): void {
    this.#parts.ledger.counts.created++;
    this.#open();
  }

  /** Called for the first run, also if it is held. */
  #open(): void {
    if (this.#isOpened) return;
    this.#isOpened = true;
    this.#parts.opened(this);
    if (this.#replay !== undefined) setSoon(() => this.#replay?.search(true)).unref();
  }

  #watchQueue(): void {
    if (this.#openRunTimer === undefined) this.#watchOpenRuns();
    this.#loop.recorded();
  }

  /** Returns whether a run may be light, and counts the run then. A flush sends the start of each open run. */
  #acceptLight(): boolean {
    if (this.#state !== 'open' || this.#loop.waiters > 0) return false;
    if (this.#states.openRuns >= this.#parts.limits.openRuns) return false;
    this.#countCreated();
    return true;
  }

  urlOf(run: RunPlace): string | undefined {
    return this.#parts.urlOf(run);
  }

  skip(): void {
    this.#parts.ledger.counts.sampledOut++;
  }

  end(run: EncodedRun): void {
    this.#ends++;
    const delivery = run.sinkState as Delivery | undefined;
    if (delivery === undefined || !isOpen(delivery)) {
      // The run was already dropped and counted before its end.
      releaseRun(run);
      return;
    }
    if (this.#state === 'closed') {
      this.#states.drop(delivery, 'closed');
      return;
    }
    while (this.#states.isOverfull && this.#spill?.makeRoom() === true);
    if (this.#states.isOverfull) dropEndPayloads(delivery);
    if (this.#slabs?.end(delivery) === true) return;
    this.#states.end(delivery);
    this.#spill?.ended(delivery);
    this.#loop.recorded();
  }

  flush(limit?: FlushLimit): Promise<FlushResult> {
    return this.#flush(limit, false);
  }

  /** If `interrupts`, open runs are interrupted once the ended runs have their content. */
  async #flush(limit: FlushLimit | undefined, interrupts: boolean): Promise<FlushResult> {
    const limitMs = flushLimitMs('flush and shutdown', limit, FLUSH_TIMEOUT_MS);
    const isClosing = this.#state === 'closing';
    try {
      // At the end, half of the time is for the delivery of what still waits then.
      const isLast = interrupts || isClosing;
      const spareMs = isLast ? limitMs / 2 : 0;
      const endMs = this.#parts.monotonicMs() + limitMs;
      const { waitingRuns } = await delayedEndsSettled(limitMs - spareMs, this.#isOwn);
      this.light?.begin();
      const late = isLast ? 0 : waitingRuns;
      if (isLast) this.#interruptOpenRuns();
      if (this.#states.pendingRuns === 0) return { ok: late === 0, pending: late };
      const delivered = () => this.#loop.flush(Math.max(0, endMs - this.#parts.monotonicMs()), isClosing);
      let isInTime = await delivered();
      // Runs that ended during the flush were sent as interrupted. Their own ends follow.
      if (isLast && releaseAll(this.#isOwn)) isInTime = await delivered();
      // If the exporter closed during the flush, undelivered runs may remain on disk.
      const pending = Math.max(late, isInTime && this.#state !== 'closed' ? 0 : this.#states.pendingRuns);
      return { ok: pending === 0, pending };
    } catch (thrown) {
      return this.#failed('flush', thrown);
    }
  }

  ready(): Promise<void> {
    if (this.#isReady) return Promise.resolve();
    this.#waitTimer ??= setTimer(() => {}, DELAY_MAX_MS);
    this.#loop.waiters++;
    this.#loop.wake();
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** Flushes the queue, then delivers runs from disk until the time limit. Never rejects. */
  async finish({ timeoutMs }: Required<FlushLimit>, interrupts = false): Promise<FlushResult> {
    const endMs = this.#parts.monotonicMs() + timeoutMs;
    this.#held?.settle();
    this.#slabs?.ending();
    try {
      for (;;) {
        const leftMs = Math.max(0, endMs - this.#parts.monotonicMs());
        const result = await this.#flush({ timeoutMs: leftMs }, interrupts || !this.#parts.sendsStarts);
        if (!result.ok) this.#loop.giveUp();
        if (!result.ok || leftMs === 0 || this.#replay?.isBusy !== true) return result;
        this.#loop.wake();
        await new Promise<void>((resolve) => setSoon(resolve));
      }
    } catch (thrown) {
      return this.#failed('flush', thrown);
    }
  }

  get isSettled(): boolean {
    const { pendingRuns, openRuns } = this.#states;
    const unsentRuns = this.#parts.sendsStarts ? pendingRuns : pendingRuns + openRuns;
    return unsentRuns === 0 && this.#replay?.isBusy !== true && this.#held?.isEmpty !== false;
  }

  get records(): number {
    return this.#parts.ledger.counts.created + this.#ends;
  }

  /** Whether the exporter refuses new runs, because `close` was called. */
  get isClosing(): boolean {
    return this.#state === 'closing' || this.#state === 'closed';
  }

  /** Starts delivering the runs that earlier processes left on disk. Used by the command `runspan spool send`. */
  recover(): void {
    this.#replay?.search(false);
  }

  /** Flushes the queue, then writes undelivered runs to disk or drops them. Never rejects. */
  close(limit?: FlushLimit): Promise<FlushResult> {
    this.#closing ??= this.#close(limit).catch((thrown) => this.#failed('shutdown', thrown));
    return this.#closing;
  }

  /** Sends the next request at once, because the application has set another API key. */
  retryNow(): void {
    this.#parts.endpoint.keyChanged();
    this.#loop.wake();
  }

  /** Closes the exporter as soon as every run has ended and is delivered or dropped. */
  retire(): void {
    if (this.#state !== 'open') return;
    this.#state = 'retiring';
    this.#changed();
    if (this.#held?.isEmpty !== false) return;
    // The age of held traces is checked when another trace starts. In a retired exporter, none may start.
    setTimer(() => this.#held?.settle(), Math.min(DELAY_MAX_MS, this.#parts.limits.openRunAgeMs)).unref();
  }

  stats(): Stats {
    return totalStats([this.#parts.ledger], [this.backlog()]);
  }

  backlog(): Backlog {
    this.#slabs?.write();
    const nowMs = this.#parts.monotonicMs();
    return { bytes: this.#states.bytes, oldestMs: nowMs - this.#attempts.oldestAtMs(nowMs) };
  }

  endProcess(): void {
    this.#held?.close();
    this.light?.begin();
    this.#state = 'closed';
    this.#parts.notice.report();
    if (!this.#parts.sendsStarts) this.#interruptOpenRuns();
    const lost = this.#leaveRest();
    if (lost.length === 0) return;
    const detail = lost.findLast((delivery) => delivery.detail !== undefined)?.detail;
    const starts = lost.filter(({ startedIn }) => startedIn && this.#parts.spool?.holds(startedIn)).length;
    const except = starts === 0 ? '' : `, except the starts of ${starts} on disk`;
    const why = detail === undefined ? '' : ` (last failure: ${detail})`;
    const or = this.#spill === undefined ? ', or set RUNSPAN_DURABILITY=spill to keep such runs on disk' : '';
    diagnostics.warn(
      `the process exits with undelivered runs (${lost.length}), which are lost${except}${why}; await \`flush()\` before the end${or}`,
    );
  }

  async #close(limit: FlushLimit | undefined): Promise<FlushResult> {
    this.#held?.close();
    this.light?.begin();
    this.#state = 'closing';
    try {
      return await this.flush(limit);
    } finally {
      this.#state = 'closed';
      this.#replay?.close();
      await this.#loop.stop();
      this.#leaveRest();
      clearTimer(this.#openRunTimer);
      this.#changed();
      this.#parts.notice.report();
      await this.#parts.closed(this);
    }
  }

  /** Writes undelivered runs to disk, and drops runs that cannot be written. Returns the dropped runs. */
  #leaveRest(): readonly Delivery[] {
    let left = this.#attempts.unsettled;
    this.#attempts.clear();
    this.#replay?.close();
    if (this.#spill !== undefined) {
      const unwritten = new Set(this.#spill.keep(left));
      for (const delivery of left) if (!unwritten.has(delivery)) this.#states.keep(delivery);
      left = [...unwritten];
      const { sendCommand } = this.#parts;
      const { spooled } = this.#parts.ledger.counts;
      if (spooled > 0 && sendCommand !== undefined) {
        diagnostics.warn(
          `undelivered runs (${spooled}) are on disk; \`${sendCommand}\` or the next process with these settings sends them`,
        );
      }
    }
    for (const delivery of left) this.#states.drop(delivery, 'closed');
    this.#parts.spool?.close();
    return left;
  }

  #failed(method: 'flush' | 'shutdown', thrown: unknown): FlushResult {
    reportBug(method, thrown);
    return { ok: false, pending: this.#states.pendingRuns };
  }

  #refusal(run: EncodedRun): DropReason | undefined {
    if (this.isClosing) return 'closed';
    if (run.refused) return 'queue_full';
    const states = this.#states;
    if (!states.isFullFor(run)) return undefined;
    if (this.#spill === undefined) return 'queue_full';
    // Only queued runs can be written to disk, so runs in batches have a separate limit.
    const { queue } = states;
    while (states.isFullFor(run, queue.freshRuns, queue.freshBytes)) if (!this.#spill.makeRoom()) return 'queue_full';
    return undefined;
  }

  get #isReady(): boolean {
    return this.isClosing || this.#states.hasRoom;
  }

  #changed(): void {
    const states = this.#states;
    const isEmpty = states.pendingRuns === 0 && states.openRuns === 0 && this.#held?.isEmpty !== false;
    if (this.#state === 'retiring' && isEmpty) void this.close();
    if (this.#waiting.length === 0 || !this.#isReady) return;
    clearTimer(this.#waitTimer);
    this.#waitTimer = undefined;
    this.#loop.waiters -= this.#waiting.length;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /**
   * Sends the open runs as interrupted. When a program ends by itself, this happens only with OTLP, which sends no starts,
   * because the program may go on after `beforeExit`.
   */
  #interruptOpenRuns(): void {
    const { queue } = this.#states;
    const end = endNow(PROGRAM_ENDED, 'interrupted');
    while (queue.oldestOpen !== undefined) this.#endOpen(queue.oldestOpen, end);
  }

  /** Whether this exporter delivers a run, as far as is known. Runs of LangSmith's clients may have several. */
  readonly #isOwn = ({ run: { sinkState } }: DelayedEnd): boolean =>
    !(sinkState instanceof Delivery) || sinkState.owner === this.#states;

  /** Sends an open run with the given end. A run that has ended, but whose end waits, is sent with its own end. */
  #endOpen(delivery: Delivery, end: EndOverride): void {
    if (delivery.run.endTime !== undefined) releaseAll(this.#isOwn);
    if (isOpen(delivery)) this.#states.sendIncomplete(delivery, end);
  }

  #sendIncomplete(): void {
    const oldest = this.#states.queue.oldestOpen;
    if (oldest === undefined) return;
    diagnostics.warnOnce(
      'incomplete',
      'a run is open for an hour, or more than 10,000 runs are open, and the oldest is sent as incomplete; logged once',
    );
    this.#endOpen(oldest, endNow(INCOMPLETE, 'incomplete'));
  }

  #watchOpenRuns(): void {
    const { limits, monotonicMs } = this.#parts;
    const { queue } = this.#states;
    const ageOf = ({ startedAtMs }: Delivery): number => monotonicMs() - startedAtMs;
    while (queue.oldestOpen !== undefined && ageOf(queue.oldestOpen) >= limits.openRunAgeMs) this.#sendIncomplete();
    this.#openRunTimer = undefined;
    if (queue.oldestOpen === undefined) return;
    const leftMs = Math.min(DELAY_MAX_MS, Math.max(1, limits.openRunAgeMs - ageOf(queue.oldestOpen)));
    this.#openRunTimer = setTimer(() => {
      this.#watchOpenRuns();
      this.#loop.recorded();
    }, leftMs).unref();
  }
}

function endNow(error: string, endReason: EndReason): EndOverride {
  return { endTime: isoTimestamp(clock.nowUs()), error, endReason };
}
