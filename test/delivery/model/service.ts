import { type Arrival, arrivalsIn } from '../../support/arrivals.ts';

/**
 * - `lost answer`: accepts the runs, and breaks the connection before the response;
 * - `half`: accepts the first half of the runs, and responds with an error;
 * - `poison`: refuses any batch with a run of that name;
 * - `small`: refuses batches, and a run named `large` with its payloads, as too large;
 * - `simple`: has no multipart ingestion;
 * - `fussy`: fails each third request;
 * - `silent`: accepts the runs, and never responds;
 * - `rejects one`: accepts the spans of a request except the first, and says so. Accepts all posts and patches.
 */
export const MOODS = [
  ...['up', 'down', 'lost answer', 'half', 'poison', 'small', 'busy', 'wrong key', 'wrong address', 'simple'],
  ...['fussy', 'silent', 'rejects one'],
] as const;
export type Mood = (typeof MOODS)[number];

export interface WireRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** @default '{}' */
  readonly body?: string;
}

/** `reset` breaks the connection, `silence` never responds. */
export type Answer = WireAnswer | 'reset' | 'silence';

/** A service that stores received runs. Reports patches without a post, and spans that differ from earlier ones. */
export class ModelService {
  mood: Mood = 'up';
  readonly posted = new Set<string>();
  readonly inputs = new Map<string, string>();
  readonly ended = new Map<string, string | undefined>();
  readonly incomplete = new Set<string>();
  /** Runs whose incomplete span came after the complete one. */
  readonly late = new Set<string>();
  /** Runs that a partial success has rejected, without telling which. */
  readonly rejected = new Set<string>();
  readonly faults: string[] = [];
  readonly met = new Map<Mood, number>();
  #requests = 0;

  answer(request: WireRequest): Answer {
    if (request.path === '/info') return status(404);
    const arrivals = arrivalsIn(request);
    const isSimple = request.path !== '/runs/multipart';
    this.met.set(this.mood, (this.met.get(this.mood) ?? 0) + 1);
    this.#requests++;
    switch (this.mood) {
      case 'up':
        return this.#take(arrivals, status(202));
      case 'down':
        return 'reset';
      case 'lost answer':
        return this.#take(arrivals, 'reset');
      case 'silent':
        return this.#take(arrivals, 'silence');
      case 'half':
        return this.#take(arrivals.slice(0, Math.ceil(arrivals.length / 2)), status(500));
      case 'poison':
        return arrivals.some(({ name }) => name === 'poison') ? status(400) : this.#take(arrivals, status(202));
      case 'small':
        return isTooLarge(arrivals) ? status(413) : this.#take(arrivals, status(202));
      case 'busy':
        return status(429, { 'retry-after': '20' });
      case 'wrong key':
        return status(401);
      case 'wrong address':
        return status(404);
      case 'simple':
        return isSimple ? this.#take(arrivals, status(202)) : status(405);
      case 'fussy':
        return this.#requests % 3 === 0 ? status(503) : this.#take(arrivals, status(202));
      case 'rejects one':
        if (arrivals[0]?.op === 'span') this.rejected.add(arrivals[0].id);
        if (arrivals[0]?.op !== 'span') return this.#take(arrivals, status(202));
        return { ...this.#take(arrivals.slice(1), status(200)), body: '{"partialSuccess":{"rejectedSpans":"1"}}' };
    }
  }

  #take<Given extends Answer>(arrivals: readonly Arrival[], answer: Given): Given {
    for (const arrival of arrivals) {
      const { op, id, name, isEnded, isIncomplete } = arrival;
      const { inputs, outputs } = payloadsOf(arrival);
      if (op === 'patch' && !this.posted.has(id)) this.faults.push(`the patch of ${name} came before its post`);
      if (op === 'post') this.posted.add(id);
      if (op === 'span') this.#checkSpan(arrival);
      if (inputs !== undefined) this.inputs.set(id, inputs);
      if (!isEnded) continue;
      if (isIncomplete && !this.late.has(id)) this.incomplete.add(id);
      else this.incomplete.delete(id);
      this.ended.set(id, outputs);
    }
    return answer;
  }

  /** A span contains the whole run, unless a post had the inputs. After a complete span, only the same may arrive. */
  #checkSpan(arrival: Arrival): void {
    const { id, name, isEnded, isIncomplete } = arrival;
    const { inputs, outputs } = payloadsOf(arrival);
    if (inputs === undefined && !this.posted.has(id)) this.faults.push(`the span of ${name} has no inputs`);
    if (!this.ended.has(id) || this.incomplete.has(id)) return;
    if (!isEnded || isIncomplete) this.late.add(id);
    // If the answer to a large run was lost and the run is too large later, the run comes again without its payloads.
    else if (outputs !== this.ended.get(id) && name !== 'large')
      this.faults.push(`the span of ${name} came again with other outputs`);
  }
}

export function status(status: number, headers: WireAnswer['headers'] = {}): WireAnswer {
  return { status, headers };
}

function isTooLarge(arrivals: readonly Arrival[]): boolean {
  const isWithPayload = (arrival: Arrival): boolean =>
    /question|answer/.test(Object.values(payloadsOf(arrival)).join());
  return arrivals.length > 1 || arrivals.some((arrival) => arrival.name === 'large' && isWithPayload(arrival));
}

function payloadsOf({ fields }: Arrival): Record<'inputs' | 'outputs', string | undefined> {
  return { inputs: textOf(fields.inputs), outputs: textOf(fields.outputs) };
}

function textOf(payload: unknown): string | undefined {
  const text = JSON.stringify(payload);
  return text === '{}' ? undefined : text;
}
