import type PQueue from 'p-queue';
import { wallNowMs } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import type { HttpClient } from '../http/client.ts';
import { isFilled, mainJson } from '../run/encoded-run.ts';
import { outcomeOf, outcomeOfError } from './answer.ts';
import type { Item } from './delivery.ts';
import { STRIPPED_PAYLOAD, strippedPayloads } from './multipart.ts';
import type { Pace } from './pace.ts';
import type { RequestLog } from './request-log.ts';
import type { Outcome, Settlement, Transport } from './transport.ts';

/** Number of consecutive failures after which the rest of the batch is not sent. */
const FAILURES_MAX = 3;

/** Further times that a run which has been posted is patched, when the service does not know it yet. */
const UNKNOWN_MAX = 3;

export interface SimpleTransportOptions {
  /** Runs under way at once. */
  readonly inFlight: number;
  readonly requestsPerSecond: number;
  readonly pace: Pace;
  readonly monotonicMs: () => number;
  readonly delay: (ms: number, signal: AbortSignal) => Promise<void>;
}

/**
 * Sends runs one by one, `POST /runs` and then `PATCH /runs/{id}`: the way of services without multipart ingestion.
 * It is slower by contract, hence rate-limited. The two requests of a run are one task; the runs of a batch go parents
 * first, since the service works out the place of a child from its parent. Attachments have no place here.
 */
export class SimpleTransport implements Transport {
  readonly #client: HttpClient;
  readonly #options: SimpleTransportOptions;
  readonly #requests: RequestLog;
  /** How often the service did not know a run that it had accepted. */
  readonly #unknown = new WeakMap<Item, number>();
  #queue: Promise<PQueue> | undefined;
  #nextAtMs = Number.NEGATIVE_INFINITY;

  constructor(client: HttpClient, options: SimpleTransportOptions, requests: RequestLog) {
    this.#client = client;
    this.#options = options;
    this.#requests = requests;
  }

  async *send(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    this.#queue ??= this.#createQueue();
    let queue: PQueue;
    try {
      queue = await this.#queue;
    } catch (thrown) {
      this.#queue = undefined;
      yield { items, outcome: { kind: 'failed', detail: messageOf(thrown) } };
      return;
    }
    const settlements: Promise<Settlement>[] = [];
    const byId = new Map<string, Promise<Settlement>>();
    let failures = 0;
    let failure: Outcome | undefined;
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
        if (failure !== undefined && failures >= FAILURES_MAX) return { items: [item], outcome: failure };
        const outcome = await this.#sendRun(item, signal);
        failure = sharedFailure(outcome);
        failures = failure === undefined ? 0 : failures + 1;
        return { items: [item], outcome };
      };
      const settlement = queue.add(task).catch((thrown) => ({ items: [item], outcome: unlaid(thrown) }));
      settlements.push(settlement);
      byId.set(id, settlement);
    }
    yield* asTheySettle(settlements);
  }

  async #sendRun(item: Item, signal: AbortSignal): Promise<Outcome> {
    if (item.op === 'post') {
      const posted = await this.#request('POST', '/runs', postJson(item), signal);
      if (posted.kind !== 'accepted' || !item.isEnded) return posted;
      item.op = 'patch';
      item.isPosted = true;
    }
    const path = `/runs/${item.delivery.run.id}`;
    const patched = await this.#request('PATCH', path, patchJson(item), signal);
    return patched.kind === 'unsupported' ? this.#outcomeOfUnknown(item, patched.detail) : patched;
  }

  /** The way is there, the post has gone through it; what is missing is the run, which may take a while to be stored. */
  #outcomeOfUnknown(item: Item, detail: string): Outcome {
    const times = (this.#unknown.get(item) ?? 0) + 1;
    this.#unknown.set(item, times);
    if (times > UNKNOWN_MAX) return { kind: 'dropped', reason: 'rejected', detail };
    return { kind: 'failed', detail: `${detail} for a run that was accepted before` };
  }

  async #request(method: 'POST' | 'PATCH', path: string, body: string, signal: AbortSignal): Promise<Outcome> {
    try {
      await this.#turn(signal);
      const headers = { 'content-type': 'application/json' };
      const request = { method, path, headers, body: [body], needsStatusOnly: true, signal };
      const answer = await this.#requests.send(this.#client, { kind: 'simple', runs: 1 }, request);
      const outcome = outcomeOf(answer, 1, wallNowMs());
      if (outcome.kind !== 'failed' || outcome.afterMs === undefined) return outcome;
      // What waits for its turn has to know at once; whoever hears of it later must not pause for as long again.
      this.#options.pace.defer(outcome.afterMs);
      return { kind: 'failed', detail: outcome.detail };
    } catch (thrown) {
      return outcomeOfError(thrown);
    }
  }

  /** Lets one request begin in each interval, and none while the service has asked for a pause. */
  async #turn(signal: AbortSignal): Promise<void> {
    const { monotonicMs, requestsPerSecond, pace, delay } = this.#options;
    const nowMs = monotonicMs();
    this.#nextAtMs = Math.max(nowMs, this.#nextAtMs + 1_000 / requestsPerSecond);
    if (this.#nextAtMs > nowMs) await delay(this.#nextAtMs - nowMs, signal);
    await pace.waitOut(signal);
    signal.throwIfAborted();
  }

  // p-queue keeps the order and bounds the runs under way; its own intervals would hold the process.
  async #createQueue(): Promise<PQueue> {
    const { default: Queue } = await import('p-queue');
    return new Queue({ concurrency: this.#options.inFlight });
  }
}

/** Returns the outcome to assume for the remaining runs of the batch, or undefined if their outcome may differ. */
function sharedFailure(outcome: Outcome): Outcome | undefined {
  const { kind } = outcome;
  if (kind === 'failed') return { kind, detail: 'the service failed for other runs of the batch' };
  return kind === 'misconfigured' || kind === 'unsupported' ? outcome : undefined;
}

/** A record that cannot be laid, as it is longer than a string can be, is at fault itself. */
function unlaid(thrown: unknown): Outcome {
  return { kind: 'invalid', detail: messageOf(thrown) };
}

/** The results in the order in which they come; none of the promises rejects. */
async function* asTheySettle<Result>(promises: readonly Promise<Result>[]): AsyncGenerator<Result> {
  const results: Result[] = [];
  let wake = (): void => {};
  for (const promise of promises) {
    void promise.then((result) => {
      results.push(result);
      wake();
    });
  }
  for (let left = promises.length; left > 0; left--) {
    if (results.length === 0) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    yield results.shift() as Result;
  }
}

/** A dotted order begins with that of the parent, so sorting by it puts parents first. */
export function parentsFirst(items: readonly Item[]): Item[] {
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
  let json = `${mainJson(item.delivery.run, true, item.endOverride).slice(0, -1)},"outputs":${payloads.outputs ?? '{}'}`;
  // Inputs that were set after the run was posted; those that this record has posted are there already.
  if (!item.isPosted && isFilled(payloads.inputs)) json += `,"inputs":${payloads.inputs}`;
  if (payloads.events !== undefined) json += `,"events":${payloads.events}`;
  return `${json}}`;
}
