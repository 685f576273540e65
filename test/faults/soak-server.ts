import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Arrival, arrivalsIn } from '../support/arrivals.ts';
import { listen } from '../support/listen.ts';
import { requestBody } from '../support/request-body.ts';
import { tally } from './report.ts';

/** How the service misbehaves, and for how many of five hundred requests. */
const WAYS = {
  accepts: 435,
  'answers 500': 8,
  'answers 503': 8,
  'answers 408': 4,
  'answers 429, to come back in a second': 3,
  'answers 413': 6,
  'resets at once': 8,
  'takes and resets': 8,
  'takes and hangs': 3,
  hangs: 3,
  'takes slowly': 8,
  'takes, and answers by half': 6,
} as const;
type Way = keyof typeof WAYS;

const SLOW_MS = 500;

/** In an outage, every request is reset, for longer than the time after which runs are written to disk. */
const OUTAGE = 'resets in an outage';
const OUTAGE_MS = 8_000;

/** A run's state. */
const POSTED = 1;
const ENDED = 2;

/** A service that misbehaves at random, and stores only the ids of runs. */
export class SoakServer {
  readonly reached = new Map<string, number>([...Object.keys(WAYS), OUTAGE].map((way) => [way, 0]));
  duplicates = 0;
  /** Number of patches that arrived before their run's post. */
  early = 0;
  readonly #runs = new Map<string, number>();
  readonly #random: () => number;
  readonly #outageEveryMs: number;
  readonly #openedMs = performance.now();
  readonly #server: Server;
  #left: Way[] = [];
  #isCalm = false;

  constructor(random: () => number, outageEveryMs: number) {
    this.#random = random;
    this.#outageEveryMs = Math.max(4 * OUTAGE_MS, outageEveryMs);
    this.#server = createServer((request, response) => void this.#serve(request, response).catch(() => {}));
  }

  listen(): Promise<string> {
    return listen(this.#server);
  }

  /** Accepts everything from now on. */
  calm(): void {
    this.#isCalm = true;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Returns the number of runs whose end has arrived, and the sum of the last 32 bits of their ids. */
  ended(): { readonly runs: number; readonly checksum: number } {
    let [runs, checksum] = [0, 0];
    for (const [id, state] of this.#runs) {
      if ((state & ENDED) === 0) continue;
      runs++;
      checksum += Number.parseInt(id.slice(-8), 16);
    }
    return { runs, checksum };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/info') return void response.writeHead(404).end();
    let way = this.#nextWay();
    tally(this.reached, way);
    if (way.startsWith('resets')) return void request.socket.resetAndDestroy();
    const body = await requestBody(request);
    if (body === undefined) return;
    const { method = '', url: path = '', headers } = request;
    const runs = arrivalsIn({ method, path, headers, body });
    // A single run that gets 413 twice is dropped, as documented.
    if (way === 'answers 413' && runs.length === 1) way = 'accepts';
    if (way.includes('takes') || way === 'accepts') this.#take(runs);
    if (way === 'takes and resets') request.socket.resetAndDestroy();
    else if (way === 'takes, and answers by half') response.writeHead(202, { 'content-length': 20 }).write('{');
    else if (way === 'takes slowly') setTimeout(() => response.writeHead(202).end('{}'), SLOW_MS);
    else if (!way.includes('hangs')) answer(response, way);
  }

  /** Returns a random order in which each kind occurs within five hundred requests. */
  #nextWay(): Way | typeof OUTAGE {
    if (this.#isCalm) return 'accepts';
    const sinceMs = (performance.now() - this.#openedMs) % this.#outageEveryMs;
    if (sinceMs > this.#outageEveryMs - OUTAGE_MS) return OUTAGE;
    if (this.#left.length === 0) this.#left = Object.entries(WAYS).flatMap(([way, of]) => Array(of).fill(way));
    return this.#left.splice(Math.floor(this.#random() * this.#left.length), 1)[0] as Way;
  }

  #take(runs: readonly Arrival[]): void {
    for (const { op, id, isEnded, isIncomplete } of runs) {
      const before = this.#runs.get(id) ?? 0;
      const hasEnded = isEnded && !(op === 'span' && isIncomplete);
      if (op === 'patch' && (before & POSTED) === 0) this.early++;
      if (hasEnded && (before & ENDED) !== 0) this.duplicates++;
      this.#runs.set(id, before | (op === 'patch' ? 0 : POSTED) | (hasEnded ? ENDED : 0));
    }
  }
}

function answer(response: ServerResponse, way: string): void {
  const status = Number(/answers (\d+)/.exec(way)?.[1] ?? 202);
  response.writeHead(status, status === 429 ? { 'retry-after': '1' } : {}).end('{}');
}
