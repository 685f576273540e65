import { subscribe, unsubscribe } from 'node:diagnostics_channel';

const CHANNEL = 'http.server.request.start';

/** Matches no route. */
const NO_ROUTE = '/none';

/**
 * Counts what a receiver in this process takes: requests, the bytes of their bodies, the starts and ends of runs, and
 * the processor time. `totals` returns the store's numbers of `runs` and `pending` runs. With `isSimple`, the receiver
 * has no multipart route.
 */
export class Intake {
  #totals;
  #requests = 0;
  #bytes = 0;
  #startRecords = 0;
  #endRecords = 0;
  #startCpu;
  #startTotals;
  #listener;

  constructor(store, totals, isSimple = false) {
    this.#totals = totals;
    this.#listener = ({ request }) => {
      if (isSimple && request.url === '/runs/multipart') request.url = NO_ROUTE;
      else if (request.method !== 'GET') this.#countBytes(request);
    };
    subscribe(CHANNEL, this.#listener);
    const apply = store.apply.bind(store);
    store.apply = async (scope, operations) => {
      await apply(scope, operations);
      for (const { kind, fields } of operations) {
        if (kind === 'post') this.#startRecords += 1;
        if (typeof fields.end_time === 'string') this.#endRecords += 1;
      }
    };
  }

  /** Stops counting. */
  close() {
    unsubscribe(CHANNEL, this.#listener);
  }

  async reset() {
    [this.#requests, this.#bytes, this.#startRecords, this.#endRecords] = [0, 0, 0, 0];
    this.#startTotals = await this.#totals();
    this.#startCpu = process.cpuUsage();
  }

  /** Returns the counts since `reset`. The numbers of runs are those in the store. */
  async count() {
    const { user, system } = process.cpuUsage(this.#startCpu);
    const { runs, pending } = await this.#totals();
    const before = this.#startTotals;
    return {
      requests: this.#requests,
      bytes: this.#bytes,
      malformed: 0,
      startRecords: this.#startRecords,
      endRecords: this.#endRecords,
      posted: runs - before.runs,
      complete: runs - pending - (before.runs - before.pending),
      cpuUs: user + system,
    };
  }

  /** Counts when Node passes a chunk to the request, because a second reader would change how the receiver reads. */
  #countBytes(request) {
    this.#requests += 1;
    const push = request.push.bind(request);
    request.push = (chunk, encoding) => {
      this.#bytes += chunk?.length ?? 0;
      return push(chunk, encoding);
    };
  }
}
