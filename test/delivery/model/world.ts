// Loaded ahead, because its first use would load it outside of the virtual clock.
import 'p-queue';
import { diagnostics } from '#src/base/diagnostics.ts';
import type { Limits, Tuning } from '#src/config/limits.ts';
import type { Durability } from '#src/config/options.ts';
import type { Protocol } from '#src/config/otlp.ts';
import type { SpoolFs } from '#src/delivery/spool/fs.ts';
import type { EncodedRun } from '#src/run/encoded-run.ts';
import type { FlushResult } from '#src/run/sink.ts';
import type { DropReason } from '#src/run/stats.ts';
import { addsUp } from '../../support/adds-up.ts';
import { ended, makeRun } from '../../support/encoded-run.ts';
import { fail, MemoryDisk } from '../../support/memory-fs.ts';
import { turns } from '../../support/virtual-time.ts';
import { virtualClock } from '../../support/virtual-timers.ts';
import { Life, SHORT_AGES } from './life.ts';
import { ModelService, type Mood } from './service.ts';

const TOO_LATE = 'too late';

/** Maximum turns of the event loop that one timer's work takes. */
const TURNS = 8;

/** Interval at which a process checks whether its folder was deleted. */
const HEARTBEAT_MS = 5_000;

/** Delay before a failed disk is tried again. */
const DISK_RETRY_MS = 60_000;

/** A run as the application knows it. */
interface Known {
  readonly run: EncodedRun;
  readonly inputs: string;
  readonly life: LifeRecord;
  readonly service: ModelService;
  /** With `write-ahead`, whether the end was on disk when the call returned. */
  isEndWritten: boolean;
  isEnded: boolean;
  /** Whether the end was on disk when a process ended. */
  isEndOnDisk: boolean;
  isWiped: boolean;
}

interface LifeRecord {
  readonly life: Life;
  readonly protocol: Protocol;
  readonly open: Known[][];
  end: 'none' | 'crash' | 'close' | 'exit';
  /** Whether the disk was writable at `process.exit`. */
  isLeftOnDisk: boolean;
  /** Number of undelivered runs in the last log line. */
  toldLost: number;
}

interface Flush {
  readonly life: Life;
  readonly endMs: number;
  isSettled: boolean;
}

export interface WorldOptions {
  /** The protocols of consecutive processes, again and again. @default ['runs'] */
  readonly protocols?: readonly Protocol[];
  /** @default short ages */
  readonly limits?: Partial<Limits & Tuning>;
  readonly throughFs?: (fs: SpoolFs) => SpoolFs;
  readonly isDiskSound?: () => boolean;
}

/** Consecutive processes that share a disk and two services. */
export class World {
  readonly durability: Durability;
  readonly disk = new MemoryDisk();
  readonly services = [new ModelService(), new ModelService()] as const;
  readonly runs: Known[] = [];
  readonly dropped = new Map<string, DropReason>();
  readonly #protocols: Protocol[];
  readonly #limits: Partial<Limits & Tuning>;
  readonly #throughFs: (fs: SpoolFs) => SpoolFs;
  readonly #isDiskSound: () => boolean;
  readonly #flushes = new Set<Flush>();
  readonly #faults: string[] = [];
  #die = (): void => {};
  #isDiskFull = false;
  #wipedAtMs = Number.NEGATIVE_INFINITY;
  #now: LifeRecord;

  constructor(durability: Durability, options: WorldOptions = {}) {
    const { protocols = ['runs'], limits = SHORT_AGES, throughFs = (fs) => fs, isDiskSound = () => true } = options;
    virtualClock.reset();
    diagnostics.setLog((_, line) => this.#hear(line));
    this.durability = durability;
    this.#protocols = [...protocols];
    this.#limits = limits;
    this.#throughFs = throughFs;
    this.#isDiskSound = () => !this.#isDiskFull && isDiskSound();
    this.#now = this.#begin();
  }

  // Actions of the application.

  start(service: number, name: string, isChild = false): void {
    const { life, open } = this.#now;
    const parent = isChild ? open[service]?.at(-1)?.run : undefined;
    const run = makeRun({ name }, parent);
    const inputs = `{"question":"${run.id}"}`;
    run.inputs = inputs;
    const known: Known = {
      run,
      inputs,
      life: this.#now,
      service: this.#service(service),
      isEndWritten: false,
      isEnded: false,
      isEndOnDisk: false,
      isWiped: false,
    };
    this.runs.push(known);
    if (life.exporters[service]?.start(run) === true) open[service]?.push(known);
    else if (!this.dropped.has(run.id)) this.#faults.push('a run was refused without a report');
  }

  end(service: number, index: number): void {
    const { life, open } = this.#now;
    const [known] = open[service]?.splice(index % Math.max(1, open[service].length), 1) ?? [];
    if (known === undefined) return;
    life.exporters[service]?.end(ended(known.run, { outputs: answerOf(known) }));
    known.isEnded = true;
    // Until the next heartbeat, records are written to the deleted file.
    known.isEndWritten = this.#isDiskSound() && virtualClock.nowMs >= this.#wipedAtMs + HEARTBEAT_MS;
  }

  whole(service: number): void {
    this.start(service, 'whole');
    this.end(service, (this.#now.open[service]?.length ?? 0) - 1);
  }

  /** Flushes several times at once. With `ok`, every earlier run must have arrived or be reported as dropped. */
  flush(service: number, timeoutMs: number, times = 1): void {
    const { life } = this.#now;
    const ours = this.runs.filter((known) => known.life === this.#now && known.service === this.#service(service));
    const before = ours.filter((known) => !this.#isSettled(known)).map((known) => ({ known, isEnded: known.isEnded }));
    for (let time = 0; time < times; time++) {
      const flush: Flush = { life, endMs: virtualClock.nowMs + timeoutMs, isSettled: false };
      this.#flushes.add(flush);
      const settled = ({ ok, pending }: FlushResult): void => {
        flush.isSettled = true;
        if (life.isDead) return;
        if (ok !== (pending === 0)) this.#faults.push(`a flush gives ok ${ok} with ${pending} pending`);
        if (ok) for (const { known, isEnded } of before) this.#checkFlushed(known, isEnded);
      };
      life.exporters[service]?.flush({ timeoutMs }).then(settled, () => this.#faults.push('a flush rejects'));
    }
  }

  // Faults.

  turnTo(service: number, mood: Mood): void {
    this.#service(service).mood = mood;
  }

  async advance(ms: number): Promise<void> {
    await virtualClock.advance(ms, () => turns(TURNS));
    await turns(TURNS);
  }

  async setDiskFull(isFull: boolean): Promise<void> {
    this.#isDiskFull = isFull;
    this.disk.obstacle = isFull ? (_, path) => fail('ENOSPC', path) : () => {};
    if (!isFull) await this.advance(DISK_RETRY_MS);
  }

  /** Deletes the spool. */
  wipe(): void {
    this.disk.wipe();
    this.#wipedAtMs = virtualClock.nowMs;
    for (const known of this.runs) known.isWiped = true;
  }

  crash(): void {
    this.#endLife('crash');
  }

  /** Closes, with flushes before, during and after, and with runs that start too late. */
  async close(timeoutMs: number): Promise<void> {
    const { life, open } = this.#now;
    this.flush(0, 2 * timeoutMs);
    let isClosed = false;
    void Promise.all(life.exporters.map((exporter) => exporter.close({ timeoutMs }))).then(() => {
      isClosed = true;
    });
    this.flush(0, timeoutMs, 3);
    for (let round = 0; round < 40 && !isClosed; round++) await this.advance(500);
    for (let round = 0; round < 1_000 && !isClosed; round++) await turns(2);
    if (!isClosed) this.#faults.push('close does not settle');
    this.flush(0, 1_000);
    open.forEach((_, service) => {
      this.start(service, TOO_LATE);
      this.end(service, 0);
    });
    await turns(2);
    for (const exporter of life.exporters) {
      const { queued, inFlight } = exporter.stats();
      if (queued + inFlight > 0) this.#faults.push('something is queued or in flight after close');
    }
    this.check();
    this.#endLife('close');
  }

  /** Delivers for up to the limit, with open runs as interrupted. */
  async signal(timeoutMs: number): Promise<void> {
    let isOver = false;
    const finishes = this.#now.life.exporters.map((exporter) => exporter.finish({ timeoutMs }, true));
    void Promise.all(finishes).then(() => {
      isOver = true;
    });
    for (let round = 0; round < 20 && !isOver; round++) await this.advance(250);
    if (!isOver) this.#faults.push('delivery at a signal outlasts its limit');
  }

  exit(): void {
    for (const exporter of this.#now.life.exporters) exporter.endProcess();
    this.#now.isLeftOnDisk = this.#isDiskSound();
    this.#endLife('exit');
  }

  // Checks.

  /** Holds at every step. */
  check(): void {
    const faults = [...this.#faults, ...this.services.flatMap((service) => service.faults)];
    for (const exporter of this.#now.life.exporters) {
      const stats = exporter.stats();
      if (!addsUp(stats)) faults.push(`the ledger does not add up: ${JSON.stringify(stats)}`);
    }
    for (const flush of this.#flushes) {
      if (flush.isSettled || flush.life.isDead) this.#flushes.delete(flush);
      // The flush's own timer is the last one due at that time.
      else if (flush.endMs + 1 < virtualClock.nowMs) faults.push('a flush outlasts its limit');
    }
    if (faults.length > 0) throw new Error(faults.join('\n'));
  }

  /** Repairs services and disk, and delivers all runs. */
  async settle(): Promise<void> {
    for (const service of this.services) service.mood = 'up';
    await this.setDiskFull(false);
    if (this.runs.length % 2 === 0) {
      await this.drain();
      if (!this.isEmpty) throw new Error('a process does not finish');
    }
    await this.close(0);
    await this.drain();
    if (!this.isEmpty) throw new Error('runs remain after the last process');
    this.#now.life.die();
  }

  async drain(): Promise<void> {
    // The first run makes the process check for earlier processes.
    this.services.forEach((_, service) => {
      this.whole(service);
    });
    for (let round = 0; round < 100 && !this.isEmpty; round++) {
      this.services.forEach((_, service) => {
        this.flush(service, 0);
      });
      await this.advance(15_000);
      await turns(4);
      this.check();
    }
  }

  /** Whether no record is left in memory or on disk. */
  get isEmpty(): boolean {
    if (this.disk.files.some((path) => path.endsWith('.seg'))) return false;
    return this.#now.life.exporters.every((exporter, service) => {
      const { open, queued, inFlight, spooled } = exporter.stats();
      const isDone = ({ run, service: { incomplete: done, rejected } }: Known) =>
        done.has(run.id) || rejected.has(run.id);
      const incomplete = this.#now.open[service]?.filter(isDone) ?? [];
      return queued + inFlight + spooled === 0 && open <= incomplete.length;
    });
  }

  /** Promised runs that are missing or changed. */
  missing(): string[] {
    const missing: string[] = [];
    const lost = new Map<LifeRecord, number>();
    for (const known of this.runs) {
      const { run, life, service, isEndWritten } = known;
      if (service.late.has(run.id) && isEndWritten) missing.push(`the end of ${run.name}, before its incomplete span`);
      if (service.ended.has(run.id)) missing.push(...this.#differences(known));
      else if (this.dropped.has(run.id) || !known.isEnded || known.isWiped) continue;
      else if (this.isExpected(known)) missing.push(`the end of ${run.name}, after ${life.end}`);
      else lost.set(life, (lost.get(life) ?? 0) + 1);
    }
    for (const [{ end, toldLost }, count] of lost) {
      if (end === 'exit' && count > toldLost) missing.push(`${count} runs at an exit that reported ${toldLost}`);
    }
    return missing;
  }

  /** Whether an ended run must arrive or be reported as dropped. */
  isExpected({ life, isWiped, isEndWritten, isEndOnDisk }: Known): boolean {
    if (isWiped) return false;
    if (life.end === 'close' || life.end === 'none' || isEndOnDisk) return true;
    const isWritten = this.durability === 'write-ahead' && isEndWritten;
    return isWritten || (this.durability !== 'memory' && life.isLeftOnDisk);
  }

  tallies(): Map<string, number> {
    const tallies = new Map<string, number>();
    for (const { run, service } of this.runs) {
      const reason = this.dropped.get(run.id);
      const fate = service.ended.has(run.id) ? 'arrived' : reason === undefined ? 'not promised' : `dropped: ${reason}`;
      tallies.set(fate, (tallies.get(fate) ?? 0) + 1);
    }
    return tallies;
  }

  #differences({ run, inputs, service, ...known }: Known): string[] {
    const different: string[] = [];
    const isSame = (given: string, found: string | undefined): boolean =>
      found === given || (run.name === 'large' && found?.includes('left out') === true);
    if (!isSame(inputs, service.inputs.get(run.id))) different.push(`the inputs of ${run.name}`);
    if (service.incomplete.has(run.id)) return different;
    if (!isSame(answerOf({ run }), service.ended.get(run.id))) different.push(`the outputs of ${run.name}`);
    if (!known.isEnded) different.push(`${run.name} has ended only at the service`);
    const other = this.services.find((one) => one !== service);
    if (other?.posted.has(run.id) === true || other?.ended.has(run.id) === true)
      different.push(`${run.name} at the other service`);
    return different;
  }

  #begin(): LifeRecord {
    const { fs, die } = this.disk.process();
    this.#die = die;
    const protocol = this.#protocols.shift() as Protocol;
    this.#protocols.push(protocol);
    const life = new Life({
      durability: this.durability,
      protocol,
      limits: this.#limits,
      services: this.services,
      fs: this.#throughFs(fs),
      wallMs: () => this.disk.nowMs + virtualClock.nowMs,
      onDrop: (reason, { id }) => {
        const ids = id === '' ? this.services.flatMap(({ rejected }) => [...rejected]) : [id];
        for (const one of ids) this.dropped.set(one, reason);
      },
    });
    const open = this.services.map(() => []);
    return { life, protocol, open, end: 'none', isLeftOnDisk: false, toldLost: 0 };
  }

  #endLife(end: LifeRecord['end']): void {
    this.#now.end = end;
    this.#now.life.die();
    this.#die();
    virtualClock.clear();
    const { text } = this.disk;
    for (const known of this.runs) {
      if (!known.isEnded || this.#isSettled(known)) continue;
      known.isEndOnDisk = text.includes(answerOf(known));
    }
    this.#now = this.#begin();
  }

  /** Whether the run has arrived or was reported as dropped. */
  #isSettled({ run, service }: Known): boolean {
    return service.ended.has(run.id) || this.dropped.has(run.id);
  }

  #checkFlushed(known: Known, isEnded: boolean): void {
    const { run, service } = known;
    // If its records were deleted, a run on disk is dropped without its name.
    if (known.isWiped) return;
    const isThere = isEnded ? this.#isSettled(known) : service.posted.has(run.id) || this.dropped.has(run.id);
    const isPromised = isEnded || known.life.protocol === 'runs';
    if (isPromised && !isThere)
      this.#faults.push(`a flush reports the missing ${isEnded ? 'end' : 'start'} of ${run.name} as delivered`);
  }

  #service(index: number): ModelService {
    return this.services[index] as ModelService;
  }

  #hear(line: string): void {
    const left = /the process exits with undelivered runs \((\d+)\)/.exec(line)?.[1];
    this.#now.toldLost += Number(left ?? 0);
  }
}

function answerOf({ run }: Pick<Known, 'run'>): string {
  return `{"answer":"${run.id}"}`;
}
