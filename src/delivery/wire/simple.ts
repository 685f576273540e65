import type PQueue from 'p-queue';
import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf } from '../../base/text.ts';
import { isPerRequest } from '../../platform/node.ts';
import { isFilled, mainJson } from '../../run/encoded-run.ts';
import type { Batch } from '../batch.ts';
import type { Item } from '../delivery.ts';
import { STRIPPED_PAYLOAD, strippedPayloads } from './multipart.ts';
import { type Ingest, type Outcome, UNSENT, unencodable } from './outcome.ts';

/** After this many failures in a row, the rest of the batch is not sent. */
const FAILURES_MAX = 3;
const REQUESTS_IN_FLIGHT = 4;
/** Minimum time between the starts of two requests, in milliseconds. */
const REQUEST_EVERY_MS = 20;

export interface SimpleIngestionOptions {
  readonly ingest: Ingest;
  readonly monotonicMs: () => number;
  readonly delay: (ms: number, signal: AbortSignal) => Promise<void>;
}

/**
 * Sends runs one by one with `POST /runs` and `PATCH /runs/{id}`. Used for services without multipart ingestion. Limits
 * the number of requests per second. Parents are sent before their children, because the service may look up the
 * parent. Omits attachments.
 */
export class SimpleIngestion {
  readonly #options: SimpleIngestionOptions;
  #queue: PQueue | undefined;
  #nextRequestAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: SimpleIngestionOptions) {
    this.#options = options;
  }

  /**
   * Sends each run of a batch once, and returns the outcomes in the order of the items. Stops after three failures in a
   * row, if the service has no such route or asks for a pause, or if `isOver` returns true. The outcome of the remaining
   * runs is `unsent`.
   */
  async send(batch: Batch, signal: AbortSignal, isOver: () => boolean): Promise<Outcome[]> {
    const { items } = batch;
    const { default: Queue } = await import('p-queue');
    if (isPerRequest) this.#queue = undefined;
    this.#queue ??= new Queue({ concurrency: REQUESTS_IN_FLIGHT });
    const queue = this.#queue;
    const outcomes = new Map<Item, Promise<Outcome>>();
    const byId = new Map<string, Promise<Outcome>>();
    let failures = 0;
    let isStopped = false;
    // A child's `dotted_order` begins with its parent's.
    for (const item of items.toSorted((a, b) => (a.delivery.run.dottedOrder < b.delivery.run.dottedOrder ? -1 : 1))) {
      const { id, parentRunId } = item.delivery.run;
      const parent = parentRunId === undefined ? undefined : byId.get(parentRunId);
      const attempt = async (): Promise<Outcome> => {
        await parent;
        isStopped ||= signal.aborted || isOver();
        if (isStopped) return UNSENT;
        const outcome = await this.#sendRun(item, batch, signal);
        failures = outcome.kind === 'failed' ? failures + 1 : 0;
        const isPause = outcome.kind === 'failed' && outcome.afterMs !== undefined;
        isStopped ||= failures >= FAILURES_MAX || outcome.kind === 'unsupported' || isPause;
        return outcome;
      };
      const outcome = queue.add(attempt).catch((thrown): Outcome => {
        // The run cannot be encoded, for example because its JSON exceeds the maximum string length.
        return signal.aborted ? UNSENT : unencodable(1, messageOf(thrown));
      });
      outcomes.set(item, outcome);
      byId.set(id, outcome);
    }
    return Promise.all(items.map((item) => outcomes.get(item) as Promise<Outcome>));
  }

  async #sendRun(item: Item, batch: Batch, signal: AbortSignal): Promise<Outcome> {
    if (item.attachments.length > 0) {
      diagnostics.warnOnce('simple attachments', 'the service accepts only single runs; attachments are not sent');
    }
    if (item.op === 'post') {
      const posted = await this.#request('POST', '/runs', postJson(item), signal);
      // If another run has the id, a patch would change that run.
      const isOwn = posted.kind === 'known' && (batch.isEcho(item.delivery, posted) || !item.delivery.run.isIdGiven);
      if ((posted.kind !== 'accepted' && !isOwn) || !item.isEnded) return posted;
      item.op = 'patch';
      item.hasSentInputs = true;
    }
    const patched = await this.#request('PATCH', `/runs/${item.delivery.run.id}`, patchJson(item), signal);
    if (patched.kind !== 'unsupported') return patched;
    return { kind: 'failed', failure: 'refused', detail: `${patched.detail} for a run that was accepted before` };
  }

  async #request(method: 'POST' | 'PATCH', path: string, body: string, signal: AbortSignal): Promise<Outcome> {
    await this.#waitForTurn(signal);
    const headers = { 'content-type': 'application/json' };
    const request = { method, path, headers, body: [body], signal, isBodyOptional: true };
    return (await this.#options.ingest('simple', 1, request)).outcome;
  }

  /** Spaces requests evenly. The timer of p-queue's own rate limit would keep the process alive. */
  async #waitForTurn(signal: AbortSignal): Promise<void> {
    const { monotonicMs, delay } = this.#options;
    const nowMs = monotonicMs();
    this.#nextRequestAtMs = Math.max(nowMs, this.#nextRequestAtMs + REQUEST_EVERY_MS);
    if (this.#nextRequestAtMs > nowMs) await delay(this.#nextRequestAtMs - nowMs, signal);
    signal.throwIfAborted();
  }
}

function postJson(item: Item): string {
  const main = mainJson(item.delivery.run, false);
  const inputs = item.stripped === 'payloads' ? STRIPPED_PAYLOAD : (item.inputs ?? '{}');
  return `${main.slice(0, -1)},"inputs":${inputs}}`;
}

/** Returns the JSON body of a patch, including the required fields that identify the run. */
function patchJson(item: Item): string {
  const payloads = item.stripped === 'payloads' ? strippedPayloads(item) : item;
  let json = `${mainJson(item.delivery.run, true, item.endOverride).slice(0, -1)},"outputs":${payloads.outputs ?? '{}'}`;
  if (!item.hasSentInputs && isFilled(payloads.inputs)) json += `,"inputs":${payloads.inputs}`;
  if (payloads.events !== undefined) json += `,"events":${payloads.events}`;
  return `${json}}`;
}
