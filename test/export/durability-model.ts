import fc from 'fast-check';
import { defaultLimits } from '../../src/base/limits.ts';
import type { Item } from '../../src/export/delivery.ts';
import { DropNotice } from '../../src/export/drop-notice.ts';
import { Exporter } from '../../src/export/exporter.ts';
import { IsolatingTransport } from '../../src/export/isolating-transport.ts';
import { type DropReason, Ledger } from '../../src/export/ledger.ts';
import { Outage } from '../../src/export/outage.ts';
import { Pace } from '../../src/export/pace.ts';
import { RetryingTransport } from '../../src/export/retrying-transport.ts';
import { ServiceInfo } from '../../src/export/service-info.ts';
import type { Durability } from '../../src/export/settings.ts';
import { openSpool } from '../../src/export/spool.ts';
import type { Settlement, Transport } from '../../src/export/transport.ts';
import { HttpClient } from '../../src/http/client.ts';
import type { EncodedRun } from '../../src/run/encoded-run.ts';
import { payloadRules } from '../../src/run/payload-rules.ts';
import { ended, makeRun } from '../support/encoded-run.ts';
import { addsUp, turns } from '../support/exporter.ts';
import { fail, MEMORY_SPOOL, MemoryDisk } from '../support/memory-fs.ts';

/** Few of everything, so that every limit is met often. */
const LIMITS = { ...defaultLimits, lingerMs: 1, batchRuns: 3, queueRuns: 12, openRuns: 100, spillAfterMs: 5_000 };

const client = new HttpClient({
  endpoint: new URL('http://127.0.0.1:9'),
  headers: {},
  connectTimeoutMs: 1,
  requestTimeoutMs: 1,
});

/**
 * - `lost answer`: what is sent is taken, and the answer says that it was not;
 * - `half`: the first half of what is sent is taken;
 * - `poison`: a run of that name is refused, and so is a batch that it is in.
 */
const MOODS = ['up', 'down', 'lost answer', 'half', 'poison'] as const;
type Mood = (typeof MOODS)[number];

/** A service that remembers what it was given, and in what order. */
class Service {
  mood: Mood = 'up';
  readonly posted = new Set<string>();
  readonly ended = new Map<string, string | undefined>();
  readonly faults: string[] = [];
  duplicates = 0;

  take({ delivery: { run }, op, isEnded, outputs }: Item): void {
    if (op === 'patch' && !this.posted.has(run.id)) this.faults.push(`the patch of ${run.name} came before its post`);
    if (op === 'post') this.posted.add(run.id);
    if (!isEnded) return;
    if (this.ended.has(run.id)) this.duplicates++;
    this.ended.set(run.id, outputs);
  }

  *answer(items: readonly Item[]): Iterable<Settlement> {
    const failed = { kind: 'failed', detail: 'as told' } as const;
    const half = this.mood === 'half' ? Math.ceil(items.length / 2) : items.length;
    const isPoisoned = this.mood === 'poison' && items.some(({ delivery }) => delivery.run.name === 'poison');
    if (isPoisoned) yield { items, outcome: { kind: 'invalid', detail: 'as told' } };
    else if (this.mood === 'down') yield { items, outcome: failed };
    else {
      for (const item of items.slice(0, half)) this.take(item);
      if (this.mood === 'lost answer') yield { items, outcome: failed };
      else yield { items: items.slice(0, half), outcome: { kind: 'accepted' } };
      if (half < items.length) yield { items: items.slice(half), outcome: failed };
    }
  }
}

/** What became of a run, as far as the application can know. */
interface Known {
  readonly run: EncodedRun;
  readonly process: Process;
  /** Its start, and its end, were on disk when the call returned. */
  isStartWritten: boolean;
  isEndWritten: boolean;
  isEnded: boolean;
}

/** One life of the application. */
class Process {
  readonly exporter: Exporter;
  readonly open: Known[] = [];
  readonly die: () => void;
  isDead = false;
  /** It has ended in a way that lets what waits go to the disk, and the disk took it. */
  isLeftOnDisk = false;

  constructor(world: World) {
    const { fs, die } = world.disk.process();
    this.die = () => {
      this.isDead = true;
      die();
    };
    const monotonicMs = (): number => world.nowMs;
    const pace = new Pace(monotonicMs, { ...LIMITS, random: () => 1, delay: (_, signal) => world.delay(signal) });
    const outage = new Outage(monotonicMs);
    const info = new ServiceInfo(client, { runs: LIMITS.batchRuns, bytes: LIMITS.batchBytes });
    info.ask = () => Promise.resolve();
    const wire: Transport = {
      send: async function* (this: void, items) {
        await turns(1);
        if (owner.isDead) await new Promise(() => {});
        yield* world.service.answer(items);
      },
    };
    const owner = this;
    const transport = new RetryingTransport(new IsolatingTransport(wire), pace, {
      ...LIMITS,
      ageMs: LIMITS.spoolAgeMs,
      endpoint: 'http://service',
      outage,
      monotonicMs,
    });
    this.exporter = new Exporter({
      capture: {
        project: 'default',
        hideInputs: false,
        hideOutputs: false,
        payload: payloadRules(LIMITS, undefined),
        attachmentBytes: 0,
        sampling: undefined,
        streamIdleMs: 1,
      },
      limits: LIMITS,
      transport,
      info,
      pace,
      outage,
      spool:
        world.durability === 'memory'
          ? undefined
          : openSpool({
              spoolDir: MEMORY_SPOOL,
              endpoint: new URL('http://service'),
              workspaceId: undefined,
              apiKey: undefined,
              bytesMax: LIMITS.spoolBytes,
              ageMaxMs: LIMITS.spoolAgeMs,
              fs,
              wallMs: () => world.disk.nowMs + world.nowMs,
              monotonicMs,
            }),
      isWriteAhead: world.durability === 'write-ahead',
      ledger: new Ledger(),
      notice: new DropNotice((reason, { id }) => world.dropped.set(id, reason), monotonicMs),
      monotonicMs,
      opened: () => {},
      closed: async () => {},
    });
  }
}

/** Processes that follow each other, the disk between them, and the service. */
export class World {
  readonly durability: Durability;
  readonly disk = new MemoryDisk();
  readonly service = new Service();
  readonly runs: Known[] = [];
  readonly dropped = new Map<string, DropReason>();
  readonly #delays = new Set<() => void>();
  nowMs = 0;
  process: Process;

  constructor(durability: Durability) {
    this.durability = durability;
    this.process = new Process(this);
  }

  delay(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const wake = (): void => {
        this.#delays.delete(wake);
        resolve();
      };
      this.#delays.add(wake);
      signal.addEventListener('abort', () => this.#delays.delete(wake) && reject(signal.reason), { once: true });
    });
  }

  /** Lets time pass: whoever waits for a back-off goes on. */
  advance(ms: number): void {
    this.nowMs += ms;
    for (const wake of [...this.#delays]) wake();
  }

  turnTo(mood: Mood): void {
    this.service.mood = mood;
  }

  start(name: string): void {
    const run = makeRun({ name, inputs: '{"question":1}' });
    const known = { run, process: this.process, isStartWritten: false, isEndWritten: false, isEnded: false };
    this.runs.push(known);
    const errorsBefore = this.#refusals;
    if (!this.process.exporter.start(run)) return;
    known.isStartWritten = this.#refusals === errorsBefore && !this.isDiskFull;
    this.process.open.push(known);
  }

  end(index: number): void {
    const { open, exporter } = this.process;
    const [known] = open.splice(index % Math.max(1, open.length), 1);
    if (known === undefined) return;
    exporter.end(ended(known.run, { outputs: `{"answer":"${known.run.id}"}` }));
    known.isEnded = true;
    known.isEndWritten = !this.isDiskFull;
  }

  isDiskFull = false;
  #refusals = 0;
  #crashes = 0;

  setDiskFull(isFull: boolean): void {
    this.isDiskFull = isFull;
    this.disk.obstacle = isFull
      ? (_, path) => {
          this.#refusals++;
          fail('ENOSPC', path);
        }
      : () => {};
    // A disk that has refused is tried again after a minute.
    if (!isFull) this.nowMs += 60_000;
  }

  crash(): void {
    if (++this.#crashes > CRASHES_MAX) return;
    this.process.die();
    this.process = new Process(this);
  }

  async close(): Promise<void> {
    this.process.isLeftOnDisk = !this.isDiskFull;
    await this.process.exporter.close({ timeoutMs: 0 });
    this.process.die();
    this.process = new Process(this);
  }

  exit(): void {
    this.process.isLeftOnDisk = !this.isDiskFull;
    this.process.exporter.endProcess();
    this.process.die();
    this.process = new Process(this);
  }

  check(): void {
    if (this.service.faults.length > 0) throw new Error(this.service.faults.join('\n'));
    const stats = this.process.exporter.stats();
    if (!addsUp(stats)) throw new Error(`the ledger does not add up: ${JSON.stringify(stats)}`);
  }

  /** Brings everything back that can come back. */
  async settle(): Promise<void> {
    this.service.mood = 'up';
    this.setDiskFull(false);
    // The next process looks for what this one and those before it have left.
    await this.close();
    this.start('last');
    this.end(0);
    for (let round = 0; round < 400 && this.#isUnsettled; round++) {
      this.advance(30_000);
      void this.process.exporter.flush({ timeoutMs: 0 });
      await turns(4);
    }
    this.check();
    if (this.#isUnsettled) throw new Error('something is left that does not come to an end');
  }

  get #isUnsettled(): boolean {
    const { open, queued, inFlight, spooled } = this.process.exporter.stats();
    return open + queued + inFlight + spooled > 0 || this.disk.files.some((path) => path.endsWith('.seg'));
  }

  /** What should have arrived and has not. */
  missing(): string[] {
    const missing: string[] = [];
    for (const { run, process, isStartWritten, isEndWritten, isEnded } of this.runs) {
      if (this.dropped.has(run.id)) continue;
      const isWritten = this.durability === 'write-ahead' && isStartWritten && isEndWritten;
      const isKept = this.durability !== 'memory' && process.isLeftOnDisk;
      const isExpected = isEnded && (isKept || isWritten);
      if (isExpected && !this.service.ended.has(run.id)) missing.push(`the end of ${run.name}`);
      const answer = this.service.ended.get(run.id);
      if (answer !== undefined && answer !== `{"answer":"${run.id}"}`) missing.push(`the outputs of ${run.name}`);
    }
    return missing;
  }
}

/** What happens in the world, and how often each was reached. */
export type Reached = Map<string, number>;

class Step implements fc.AsyncCommand<object, World> {
  readonly #name: string;
  readonly #run: (world: World) => void | Promise<void>;
  readonly #reached: Reached;

  constructor(name: string, reached: Reached, run: (world: World) => void | Promise<void>) {
    this.#name = name;
    this.#reached = reached;
    this.#run = run;
  }

  check(): boolean {
    return true;
  }

  async run(_: object, world: World): Promise<void> {
    this.#reached.set(this.#name, (this.#reached.get(this.#name) ?? 0) + 1);
    await this.#run(world);
    world.check();
  }

  toString(): string {
    return this.#name;
  }
}

/** A segment that ends the fifth process in a row is set aside, and is told: the model does not go so far. */
const CRASHES_MAX = 4;

export function steps(reached: Reached): fc.Arbitrary<Iterable<fc.AsyncCommand<object, World>>> {
  const step = (name: string, run: (world: World) => void | Promise<void>) => fc.constant(new Step(name, reached, run));
  const commands = [
    step('start', (world) => world.start('run')),
    step('start of a poisoned run', (world) => world.start('poison')),
    fc.nat(20).map((index) => new Step('end', reached, (world) => world.end(index))),
    step('a whole run', (world) => {
      world.start('whole');
      world.end(world.process.open.length - 1);
    }),
    step('five whole runs', (world) => {
      for (let count = 0; count < 5; count++) {
        world.start('whole');
        world.end(world.process.open.length - 1);
      }
    }),
    step('flush', (world) => void world.process.exporter.flush({ timeoutMs: 1 })),
    step('turn', () => turns(2)),
    step('six seconds', (world) => world.advance(6_000)),
    ...MOODS.map((mood) => step(`service: ${mood}`, (world) => world.turnTo(mood))),
    step('disk full', (world) => world.setDiskFull(true)),
    step('disk free', (world) => world.setDiskFull(false)),
    step('crash', (world) => world.crash()),
    step('close', (world) => world.close()),
    step('exit', (world) => world.exit()),
  ];
  return fc.commands(commands as fc.Arbitrary<Step>[], { size: 'large', maxCommands: 60 });
}
