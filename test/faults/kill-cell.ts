import { arrivalsIn } from '../support/arrivals.ts';
import { temporaryFolder } from '../support/folders.ts';
import { type IngestServer, ingestServer, type Received, type Reply } from '../support/ingest-server.ts';
import { type Ended, type Started, startNode } from '../support/program.ts';
import { silenceOwners } from '../support/spool.ts';
import type { Cell, Ending, Protocols, Service } from './kill-matrix.ts';

const TRACES = '/v1/traces';
const PROGRAM = 'test/faults/kill-program.mjs';
/** Longer than a program may take to end, so that no limit ends it early. */
const NEVER_MS = 600_000;

export interface Outcome {
  /** How the program ended, without runspan's own lines on standard error. */
  readonly ended: Ended;
  /** How the program ends without runspan. */
  readonly bare: Ended;
  /** runspan's own lines. */
  readonly told: readonly string[];
  /** The runs that had arrived when the program ended, and after the same program was started again. */
  readonly now: readonly string[];
  readonly later: readonly string[];
  /** The names of the runs that have arrived as incomplete spans. */
  readonly incomplete: readonly string[];
}

export function namesOf(name: string): string[] {
  return Array.from({ length: 10 }, (_, number) => `${name} ${number}`);
}

/** Runs a cell's program to its end, and then once more. */
export async function outcomeOf(
  { ending, durability, service, promised }: Cell,
  [protocol, later]: Protocols,
): Promise<Outcome> {
  const folder = temporaryFolder();
  const endpoint = await Endpoint.open(service);
  // With a path, the address is the same destination for each protocol.
  const env = { RUNSPAN_ENDPOINT: `${endpoint.url}${TRACES}`, SPOOL: folder.path };
  const start = (how: string, name: string, exitFlushMs: number, RUNSPAN_PROTOCOL: string): Started =>
    startKilled(how, [durability, name], {
      ...env,
      RUNSPAN_DEV: JSON.stringify({ limits: { exitFlushMs } }),
      RUNSPAN_PROTOCOL,
    });
  try {
    const [bare, ended] = await Promise.all([
      bareEnd(ending),
      endOf(ending, start(ending, 'first', limitFor(ending, service), protocol), () => endpoint.asked()),
    ]);
    const now = endpoint.arrived();
    if (promised === 'later') {
      // A process that was killed counts as dead 10 seconds after its last heartbeat.
      silenceOwners(folder.path, 30_000);
      await again(endpoint, start('when told', 'again', NEVER_MS, later));
    }
    const told = ended.stderr.match(OURS) ?? [];
    const { incomplete } = endpoint;
    return { ended: comparable(ended), bare: comparable(bare), told, now, later: endpoint.arrived(), incomplete };
  } finally {
    await endpoint.close();
    folder.remove();
  }
}

/** The exit limit: unreachable if delivery can finish or a second signal must end the process, and short otherwise. */
function limitFor(ending: Ending, service: Service): number {
  return service === 'up' || ending === 'SIGINT twice' ? NEVER_MS : 300;
}

function startKilled(how: string, args: readonly string[], env: Readonly<Record<string, string>>): Started {
  const memory = how === 'heap full' ? ['--max-old-space-size=40'] : [];
  const register = how.includes('registered') ? ['--import', 'runspan/register'] : [];
  return startNode([...memory, ...register, PROGRAM, how, ...args], env);
}

const bareEnds = new Map<Ending, Promise<Ended>>();

function bareEnd(ending: Ending): Promise<Ended> {
  const known = bareEnds.get(ending);
  if (known !== undefined) return known;
  const end = endOf(ending, startKilled(ending, ['untraced', 'first', '1'], {}), () => new Promise<void>(() => {}));
  bareEnds.set(ending, end);
  return end;
}

async function endOf(ending: Ending, { child, printed, ended }: Started, asked: () => Promise<void>): Promise<Ended> {
  const [signal, more] = ending.split(/,? /);
  if (!signal?.startsWith('SIG')) return ended;
  await printed(/recorded/);
  child.kill(signal as NodeJS.Signals);
  if (more !== 'twice') return ended;
  // Sends the second signal after the delivery for the first one has begun. If the service is down, a logged failure
  // shows this.
  const failed = new Promise<void>((resolve) => child.stderr?.once('data', () => resolve()));
  await Promise.race([asked(), failed, ended]);
  child.kill(signal as NodeJS.Signals);
  return ended;
}

/** Runs the program until all remaining runs have arrived or its time limit is reached. */
async function again(endpoint: Endpoint, { child, ended }: Started): Promise<void> {
  await endpoint.restore();
  await Promise.race([endpoint.has(namesOf('first')), ended]);
  child.stdin?.end();
  await ended;
}

const OURS = /^runspan: .*\n/gm;

function comparable({ code, signal, stdout, stderr }: Ended): Ended {
  // Removes heap addresses and times, which differ each time.
  const isHeapFull = /heap out of memory/.test(stderr);
  const others = stderr.replaceAll(OURS, '').replaceAll(/^ +at .*node:.*\n/gm, '');
  return { code, signal, stdout, stderr: isHeapFull ? 'heap out of memory' : others };
}

/** A service that fails at first, and later works at the same address. */
class Endpoint {
  readonly url: string;
  readonly #accepted: Received[] = [];
  #server: IngestServer;
  #isUp: boolean;
  #look = (): void => {};

  static async open(service: Service): Promise<Endpoint> {
    const endpoint: Endpoint = new Endpoint(await ingestServer((request) => endpoint.#answer(request)), service);
    if (service === 'down') await endpoint.#server.close();
    return endpoint;
  }

  private constructor(server: IngestServer, service: Service) {
    this.#server = server;
    this.url = server.url;
    this.#isUp = service === 'up';
  }

  /** Resolves with the first request. */
  asked(): Promise<void> {
    return this.#server.arrived(1);
  }

  /** The names of the accepted runs, each once. */
  arrived(): string[] {
    return [...new Set(this.#accepted.flatMap(arrivalsIn).map(({ name }) => name))].sort();
  }

  get incomplete(): string[] {
    const spans = this.#accepted.flatMap(arrivalsIn).filter(({ op }) => op === 'span');
    return spans.filter(({ isIncomplete }) => isIncomplete).map(({ name }) => name);
  }

  has(names: readonly string[]): Promise<void> {
    return new Promise((resolve) => {
      this.#look = () => {
        const arrived = this.arrived();
        if (names.every((name) => arrived.includes(name))) resolve();
      };
      this.#look();
    });
  }

  async restore(): Promise<void> {
    this.#isUp = true;
    await this.#server.close();
    this.#server = await ingestServer((request) => this.#answer(request), undefined, Number(new URL(this.url).port));
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  #answer(request: Received): Reply {
    if (!this.#isUp) return 'hold';
    this.#accepted.push(request);
    this.#look();
    return { status: 202 };
  }
}
