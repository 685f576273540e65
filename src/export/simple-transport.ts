import type PQueue from 'p-queue';
import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import type { HttpClient } from '../http/client.ts';
import { mainJson } from '../run/encoded-run.ts';
import { outcomeOf } from './answer.ts';
import type { Item } from './delivery.ts';
import type { Stats } from './ledger.ts';
import { STRIPPED_PAYLOAD, strippedPayloads } from './multipart.ts';
import type { Outcome, Settlement, Transport } from './transport.ts';

export interface SimpleTransportOptions {
  /** Runs under way at once. */
  readonly inFlight: number;
  readonly requestsPerSecond: number;
}

/**
 * Sends runs one by one, `POST /runs` and then `PATCH /runs/{id}`: the way of services without multipart ingestion.
 * It is slower by contract, hence rate-limited. The two requests of a run are one task; the runs of a batch go parents
 * first, since the service works out the place of a child from its parent. Attachments have no place here.
 */
export class SimpleTransport implements Transport {
  readonly #client: HttpClient;
  readonly #options: SimpleTransportOptions;
  readonly #requests: Stats['requests'];
  #queues: Promise<Queues> | undefined;

  constructor(client: HttpClient, options: SimpleTransportOptions, requests: Stats['requests']) {
    this.#client = client;
    this.#options = options;
    this.#requests = requests;
  }

  async *send(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    this.#queues ??= createQueues(this.#options);
    const queues = await this.#queues;
    const settlements: Promise<Settlement>[] = [];
    const byId = new Map<string, Promise<Settlement>>();
    for (const item of parentsFirst(items)) {
      const { id, parentRunId } = item.delivery.run;
      if (item.attachments.length > 0) {
        diagnostics.warnOnce(
          'simple attachments',
          'the service takes single runs only: their attachments are left out',
        );
      }
      const parent = parentRunId === undefined ? undefined : byId.get(parentRunId);
      const task = async (): Promise<Settlement> => {
        await parent;
        return { items: [item], outcome: await this.#sendRun(item, queues.requests, signal) };
      };
      const settlement = queues.runs.add(task);
      settlements.push(settlement);
      byId.set(id, settlement);
    }
    for (const settlement of settlements) yield await settlement;
  }

  async #sendRun(item: Item, requests: PQueue, signal: AbortSignal): Promise<Outcome> {
    if (item.op === 'post') {
      const posted = await this.#request('POST', '/runs', postJson(item), requests, signal);
      if (posted.kind !== 'accepted' || !item.isEnded) return posted;
      item.op = 'patch';
    }
    const path = `/runs/${item.delivery.run.id}`;
    const patched = await this.#request('PATCH', path, patchJson(item), requests, signal);
    // The route is there, the post has gone through it; what is missing is the run, and no repetition brings it back.
    return patched.kind === 'unsupported' ? { kind: 'dropped', reason: 'rejected', detail: patched.detail } : patched;
  }

  async #request(
    method: 'POST' | 'PATCH',
    path: string,
    body: string,
    requests: PQueue,
    signal: AbortSignal,
  ): Promise<Outcome> {
    try {
      await requests.add(() => signal.throwIfAborted());
      this.#requests.simple++;
      const headers = { 'content-type': 'application/json' };
      return outcomeOf(await this.#client.send({ method, path, headers, body: [body], signal }), Date.now());
    } catch (thrown) {
      return { kind: 'failed', detail: messageOf(thrown) };
    }
  }
}

interface Queues {
  /** Its concurrency bounds the runs under way. */
  readonly runs: PQueue;
  /** Lets one request begin in each interval; the requests themselves are outside of it. */
  readonly requests: PQueue;
}

// p-queue's interval timer keeps the process alive while one of its tasks runs. As requests run outside, and a task of
// the second queue takes no time, that is one short interval at the most.
async function createQueues({ inFlight, requestsPerSecond }: SimpleTransportOptions): Promise<Queues> {
  const { default: Queue } = await import('p-queue');
  return {
    runs: new Queue({ concurrency: inFlight }),
    requests: new Queue({ interval: Math.ceil(1_000 / requestsPerSecond), intervalCap: 1 }),
  };
}

/** A dotted order begins with that of the parent, so sorting by it puts parents first. */
function parentsFirst(items: readonly Item[]): Item[] {
  return [...items].sort((a, b) => (a.delivery.run.dottedOrder < b.delivery.run.dottedOrder ? -1 : 1));
}

/** The interface's run record for `POST /runs`: inputs, and nothing of the end. */
function postJson(item: Item): string {
  const main = mainJson(item.delivery.run, false);
  const inputs = item.stripped === 'payloads' ? STRIPPED_PAYLOAD : (item.inputs ?? '{}');
  return `${main.slice(0, -1)},"inputs":${inputs}}`;
}

/** A patch can stand alone, so it repeats who the run is. */
function patchJson(item: Item): string {
  const payloads = item.stripped === 'payloads' ? strippedPayloads(item) : item;
  let json = `${mainJson(item.delivery.run, true).slice(0, -1)},"outputs":${payloads.outputs ?? '{}'}`;
  if (payloads.events !== undefined) json += `,"events":${payloads.events}`;
  return `${json}}`;
}
