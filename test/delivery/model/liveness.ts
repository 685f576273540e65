// Loaded ahead, because its first use would load it outside of the virtual clock.
import 'p-queue';

import { diagnostics } from '#src/base/diagnostics.ts';
import type { Durability } from '#src/config/options.ts';
import type { Protocol } from '#src/config/otlp.ts';
import type { EncodedRun } from '#src/run/encoded-run.ts';
import { randomFrom } from '../../faults/random.ts';
import { addsUp } from '../../support/adds-up.ts';
import { ended, makeRun } from '../../support/encoded-run.ts';
import { MemoryDisk } from '../../support/memory-fs.ts';
import { turns } from '../../support/virtual-time.ts';
import { virtualClock } from '../../support/virtual-timers.ts';
import { JudgingService, REFUSALS, type Refusal } from './judging-service.ts';
import { Life } from './life.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** Longest time until a run arrives, if the service accepts it. */
const ARRIVES_WITHIN_MS = 15 * MINUTE;

/** After an outage, each probe of a poisoned run costs up to 5 minutes. Twelve in a row are too rare to occur here. */
const ARRIVES_AFTER_OUTAGE_MS = 60 * MINUTE;

/** Longest time between two probes of an endpoint that refuses requests. */
const PROBE_EVERY_MS = 5 * MINUTE;

const POISONED = ['none', 'one', 'two in a row', '1 %', '30 %', 'a trace'] as const;
const TEMPOS = ['quiet', 'busy', 'script'] as const;
const STEPS = {
  quiet: { stepMs: 5_000, steps: 100, runs: 1 },
  busy: { stepMs: 100, steps: 100, runs: 20 },
  script: { stepMs: 10, steps: 1, runs: 50 },
} as const;

const SERVICES = ['steady', 'revoked', 'refusing', 'gateway', 'flapping slowly', 'flapping fast'] as const;

export interface Scenario {
  readonly seed: number;
  readonly protocol: Protocol;
  readonly durability: Durability;
  readonly refusal: Refusal;
  readonly poisoned: (typeof POISONED)[number];
  readonly tempo: (typeof TEMPOS)[number];
  /**
   * - `revoked`: refuses every request for three minutes, while accepted requests are still in flight;
   * - `refusing`: refuses every request for twenty minutes, longer than a run in memory may age;
   * - `gateway`: refuses a tenth of all requests;
   * - `flapping`: refuses every request for 30 s or 2 s, and then accepts them for as long;
   * - `half`: refuses half of all requests.
   */
  readonly service: (typeof SERVICES)[number] | 'half';
  readonly isSimple: boolean;
  readonly hasRestarts: boolean;
  readonly flushes: boolean;
  /** Whether runs are sent by flushes only, as on edge runtimes. */
  readonly isEdge: boolean;
  /** Time until the start of an open run is sent, in milliseconds. */
  readonly startDelayMs: number;
}

/** The scenarios of a seed are the same on every machine. */
function scenarioOf(seed: number, given: Partial<Scenario> = {}): Scenario {
  const random = randomFrom(seed);
  const one = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)] as Value;
  const durability = given.durability ?? one(['memory', 'spill', 'write-ahead'] as const);
  const service = one(SERVICES);
  // A run that is refused alone with 409 counts as delivered, so 409 can only concern content.
  const refusal = one(service === 'steady' ? REFUSALS : REFUSALS.filter((status) => status !== 409));
  const poisoned = service === 'steady' || service === 'revoked' ? one(POISONED) : 'none';
  return {
    seed,
    protocol: 'runs',
    durability,
    refusal,
    poisoned,
    tempo: one(TEMPOS),
    service,
    // A service that takes 50 single runs a second cannot isolate more poisoned runs than that.
    isSimple:
      poisoned !== '30 %' &&
      !(service === 'gateway' && (refusal === 'timeout' || refusal === 'pause')) &&
      random() < 0.2,
    hasRestarts: durability !== 'memory' && random() < 0.3,
    flushes: random() < 0.4,
    isEdge: false,
    startDelayMs: random() < 0.2 ? 0 : 2_000,
    ...given,
  };
}

interface Recorded {
  readonly run: EncodedRun;
  readonly isPoison: boolean;
  readonly endAtMs: number;
}

/** Plays one scenario, and throws if a property does not hold. Returns the number of steps. */
async function live(scenario: Scenario): Promise<number> {
  const play = new Liveness(scenario);
  await play.run();
  return play.steps;
}

/** Plays one scenario, and returns how many runs were dropped that the service would have accepted. */
export async function lostIn(seed: number, given: Partial<Scenario>): Promise<number> {
  const play = new Liveness(scenarioOf(seed, given));
  await play.run();
  return play.lost;
}

/** Plays the scenarios of the seeds, up to a number of steps. Returns the failures and the number of steps. */
export async function liveAll(
  seeds: Iterable<number>,
  given?: Partial<Scenario>,
  stepsMax: number = Number.POSITIVE_INFINITY,
): Promise<{ failures: string[]; steps: number }> {
  const failures: string[] = [];
  let steps = 0;
  for (const seed of seeds) {
    if (steps >= stepsMax) break;
    try {
      steps += await live(scenarioOf(seed, given));
    } catch (thrown) {
      failures.push(`${seed}: ${(thrown as Error).message}`);
    }
  }
  return { failures, steps };
}

class Liveness {
  readonly #scenario: Scenario;
  readonly #random: () => number;
  readonly #service: JudgingService;
  readonly #disk = new MemoryDisk();
  readonly #runs: Recorded[] = [];
  readonly #open = new Set<Recorded>();
  readonly #dropped = new Map<string, string>();
  #die = (): void => {};
  #life: Life;
  steps = 0;
  lost = 0;

  constructor(scenario: Scenario) {
    virtualClock.reset();
    diagnostics.setLog(() => {});
    this.#scenario = scenario;
    this.#random = randomFrom(scenario.seed + 1);
    const { service, tempo } = scenario;
    const latencyMs = tempo === 'busy' ? (service === 'revoked' ? 100 : 20) : service === 'revoked' ? 400 : 0;
    this.#service = new JudgingService(scenario, latencyMs, this.#random);
    this.#life = this.#begin();
  }

  async run(): Promise<void> {
    const { service, tempo, refusal } = this.#scenario;
    const { stepMs, steps, runs } = STEPS[tempo];
    for (let step = 0; step < steps; step++) {
      if (step === Math.floor(steps / 4) || steps === 1)
        this.#service.isDown = service === 'revoked' || service === 'refusing';
      for (let count = 0; count < runs; count++) this.#record();
      await this.#advance(stepMs);
      if (this.#scenario.hasRestarts && step % 30 === 29) await this.#restart();
    }
    if (service === 'revoked') await this.#pass(3 * MINUTE);
    if (service === 'refusing') await this.#outlast(refusal);
    this.#service.isDown = false;
    this.#service.isFlapping = false;
    if (service === 'refusing') this.#record();
    await this.#pass(service === 'revoked' ? ARRIVES_AFTER_OUTAGE_MS : ARRIVES_WITHIN_MS);
    this.#check();
    this.#life.die();
    this.#die();
    virtualClock.clear();
  }

  /** Nothing is dropped before its age, and requests become rare. */
  async #outlast(refusal: Refusal): Promise<void> {
    await this.#pass(10 * MINUTE);
    const before = this.#service.requests;
    await this.#pass(10 * MINUTE);
    const requests = this.#service.requests - before;
    // The delay after a failure that is no refusal grows to a random share of 30 s.
    const delayMs = isLater(refusal) ? 10 * SECOND : PROBE_EVERY_MS;
    const most = (10 * MINUTE) / delayMs + 1;
    // A flush asks again, at most twice a second.
    if (!this.#scenario.isEdge && requests > most * (this.#scenario.flushes ? 30 : 1))
      this.#fail(`${requests} requests in 10 minutes`);
  }

  async #pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 10 * SECOND) await this.#advance(Math.min(left, 10 * SECOND));
  }

  async #advance(ms: number): Promise<void> {
    this.steps++;
    await virtualClock.advance(ms, () => this.#settle());
    await this.#settle();
    for (const open of this.#open) if (open.endAtMs <= virtualClock.nowMs) this.#end(open);
    if (this.#scenario.isEdge) void this.#exporter.flush();
    else if (this.#scenario.flushes && this.steps % 7 === 0) void this.#exporter.flush({ timeoutMs: 2_000 });
    const stats = this.#exporter.stats();
    if (!addsUp(stats)) this.#fail(`the ledger does not add up: ${JSON.stringify(stats)}`);
    const isWaiting = stats.queued + stats.inFlight + stats.spooled > 0;
    const dueMs = (virtualClock.nextMs ?? Number.POSITIVE_INFINITY) - virtualClock.nowMs;
    if (!this.#scenario.isEdge && isWaiting && dueMs > PROBE_EVERY_MS * 1.1)
      this.#fail('runs wait, and no timer is set');
  }

  async #settle(): Promise<void> {
    for (let requests = -1; requests !== this.#service.requests; ) {
      requests = this.#service.requests;
      await turns(8);
    }
  }

  #record(): void {
    this.steps++;
    const at = this.#runs.length;
    const isPoison = this.#isPoison(at);
    const parent = this.#scenario.poisoned === 'a trace' && isPoison ? this.#runs[10]?.run : undefined;
    const run = makeRun({ name: isPoison ? 'poison' : 'innocent', inputs: `{"number":${at}}` }, parent);
    const isLong = this.#random() < 0.1;
    const recorded = { run, isPoison, endAtMs: virtualClock.nowMs + (isLong ? 8 * SECOND : 0) };
    this.#runs.push(recorded);
    this.#exporter.start(run);
    if (isLong) this.#open.add(recorded);
    else this.#end(recorded);
  }

  #end(recorded: Recorded): void {
    this.#open.delete(recorded);
    this.#exporter.end(ended(recorded.run, { outputs: '{"answer":1}' }));
  }

  #isPoison(at: number): boolean {
    // Each poison without a response takes 30 s of one of four requests, and each `Retry-After` a pause of all requests.
    const isSlow = this.#scenario.refusal === 'timeout' || this.#scenario.refusal === 'pause';
    switch (this.#scenario.poisoned) {
      case 'none':
        return false;
      case 'one':
        return at === 10;
      case 'two in a row':
        return at === 10 || at === 11;
      case '1 %':
        return at % 100 === 7 && (!isSlow || at < 200);
      case '30 %':
        return this.#random() < 0.3 && (!isSlow || at < 5);
      case 'a trace':
        return at >= 10 && at < (isSlow ? 13 : 20);
    }
  }

  get #exporter(): Life['exporters'][number] {
    return this.#life.exporters[0] as Life['exporters'][number];
  }

  #begin(): Life {
    const { fs, die } = this.#disk.process();
    this.#die = die;
    return new Life({
      durability: this.#scenario.durability,
      protocol: this.#scenario.protocol,
      limits: { batchRuns: 1_000, queueRuns: 100_000, openRuns: 10_000, startDelayMs: this.#scenario.startDelayMs },
      services: [this.#service],
      fs,
      random: this.#random,
      wallMs: () => this.#disk.nowMs + virtualClock.nowMs,
      onDrop: (reason, { id }) => this.#dropped.set(id, reason),
    });
  }

  /** A killed process keeps its runs with `write-ahead`, and a process that exits keeps them with `spill` too. */
  async #restart(): Promise<void> {
    // A killed process leaves the starts of its open runs.
    if (this.#scenario.durability === 'write-ahead') this.#open.clear();
    for (const open of [...this.#open]) this.#end(open);
    if (this.#scenario.durability === 'spill') this.#exporter.endProcess();
    this.#life.die();
    this.#die();
    virtualClock.clear();
    this.#life = this.#begin();
    // The first run makes the process look for earlier processes.
    this.#record();
    await this.#advance(15 * SECOND);
  }

  #check(): void {
    const { service, refusal } = this.#scenario;
    if (this.#service.emptyRequests > 0) this.#fail(`${this.#service.emptyRequests} requests without runs`);
    const innocents = this.#runs.filter(({ isPoison, run }) => !isPoison && run.endTime !== undefined);
    const missing = innocents.filter(({ run }) => !this.#service.ended.has(run.id));
    const expired = missing.filter(({ run }) => this.#dropped.get(run.id) === 'expired');
    // After failures that are not refusals, runs may expire. A random gateway cannot be told from content.
    const isLost = service === 'refusing' && isLater(refusal) ? missing.length - expired.length : missing.length;
    const mayBeLost = { gateway: innocents.length / 50, half: innocents.length }[service as string] ?? 0;
    this.lost = missing.length;
    if (isLost <= mayBeLost) return;
    const reasons = missing.map(({ run }) => this.#dropped.get(run.id) ?? 'waiting');
    this.#fail(`${isLost} of ${innocents.length} innocent runs are missing: ${[...new Set(reasons)].join(', ')}`);
  }

  #fail(problem: string): never {
    throw new Error(`${problem} at ${virtualClock.nowMs} ms; ${JSON.stringify(this.#scenario)}`);
  }
}

function isLater(refusal: Refusal): boolean {
  return typeof refusal === 'string' || refusal === 408 || refusal >= 500;
}
