import { type Checks, checkedOptions } from '../base/options.ts';
import { toHeaders } from '../run/propagation.ts';
import type { Run } from '../run/run.ts';
import { currentRun } from '../run/start-run.ts';
import { type AnswerForm, problemOf } from './answer-form.ts';
import type { Answer, Api } from './api.ts';
import { InvalidAnswerError } from './api-error.ts';
import { checkIds } from './body-rules.ts';
import { type Call, pathOf } from './call.ts';
import { type CallOptions, callChecks, callOptionsOf } from './client-options.ts';
import { ifNotGone } from './gone.ts';
import { Page, PageList } from './page.ts';
import { isInRun, tracedCall } from './traced-call.ts';

/** How many items a page has where nothing else is asked for. */
const PAGE_ITEMS = 10;

/** What the groups of an agent server share. */
export interface AgentServiceOptions {
  readonly api: Api;
  readonly idleTimeoutMs: number;
  /** What the client was given for a call. */
  readonly timeoutMs: number | undefined;
  /** For calls that make runs. */
  readonly propagate: boolean;
  /** Of the client: what is said of a trace is added to a `baggage` that is among them. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A call that lists: by its query, or by its body where it is a POST. */
export type ListCall = Call & { readonly body?: Record<string, unknown> };

/** Sends the calls of an agent server for the groups that they belong to. */
export class AgentService {
  readonly api: Api;
  readonly idleTimeoutMs: number;
  /** For the head of an answer that is there when a run has ended. */
  readonly headTimeoutMs: number;
  readonly #propagate: boolean;
  readonly #headers: Readonly<Record<string, string>>;

  constructor({ api, idleTimeoutMs, timeoutMs, propagate, headers }: AgentServiceOptions) {
    this.api = api;
    this.idleTimeoutMs = idleTimeoutMs;
    this.headTimeoutMs = timeoutMs ?? idleTimeoutMs;
    this.#propagate = propagate;
    this.#headers = headers;
  }

  /** The body of an answer; an InvalidAnswerError where it has another form. */
  async json<Data>(call: Call, form: AnswerForm = 'object'): Promise<Data> {
    const answer = await this.api.answer<Data>(call);
    const problem = problemOf(answer.data, form);
    if (problem !== undefined) throw new InvalidAnswerError(this.api.factsOf(call), answer, problem);
    return answer.data;
  }

  /** A call whose answer says nothing. */
  async none(call: Call): Promise<void> {
    const answered = this.api.none(call);
    await (call.method === 'DELETE' ? answered.catch(ifNotGone) : answered);
  }

  /** A list by offset. */
  list<Item>(describe: () => ListCall, itemsOf: (data: unknown) => unknown = (data) => data): PageList<Item> {
    // What is wrong with the call is told when it is awaited, as for any other.
    return new PageList(async () => {
      const call = describe();
      const given = (call.method === 'GET' ? call.query : call.body) ?? {};
      const limit = typeof given.limit === 'number' ? given.limit : PAGE_ITEMS;
      const page = async (offset: number): Promise<Page<Item>> => {
        const answer = await this.api.answer<unknown>(placed(call, { limit, offset }));
        const items = itemsOf(answer.data) as readonly Item[];
        if (!Array.isArray(items)) throw new InvalidAnswerError(this.api.factsOf(call), answer, 'holds no list');
        const next = nextOf(answer.headers, offset + items.length, items.length >= limit);
        // A service that does not move on would be asked for ever.
        const hasNext = next !== undefined && next > offset;
        return new Page(items, hasNext ? () => page(next) : undefined);
      };
      return page(typeof given.offset === 'number' ? given.offset : 0);
    });
  }

  /** Makes a call that makes a run: within a run it is one below that, which the server is told of. */
  traced<Result>(
    name: string,
    inputs: Record<string, unknown>,
    send: (headers: Record<string, string>, run: Run | undefined) => Promise<Result>,
  ): Promise<Result> {
    const run = { name, runType: 'chain', inputs: () => inputs } as const;
    return tracedCall(run, () => send(this.traceHeaders(), currentRun()));
  }

  /** What tells the server of the current run, under both names that are read; nothing outside of any. */
  traceHeaders(): Record<string, string> {
    if (!this.#propagate || !isInRun()) return {};
    const all = toHeaders(undefined, this.#headers);
    const order = all['runspan-trace'];
    if (order === undefined) return {};
    const [baggage] = Object.entries(all).filter(([name]) => name.toLowerCase() === 'baggage');
    return { 'runspan-trace': order, 'langsmith-trace': order, ...(baggage && { baggage: baggage[1] }) };
  }
}

/**
 * Where the next page begins. One header tells it; some servers leave that out before the last page, so that a page that is
 * full has one behind it, unless the count of all items says otherwise.
 */
function nextOf(headers: Answer<unknown>['headers'], end: number, isFull: boolean): number | undefined {
  const next = numberOf(headers['x-pagination-next']);
  if (next !== undefined || !isFull) return next;
  const total = numberOf(headers['x-pagination-total']);
  return total === undefined || total > end ? end : undefined;
}

function numberOf(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}

function placed(call: ListCall, place: { readonly limit: number; readonly offset: number }): Call {
  if (call.method === 'GET') return { ...call, query: { ...call.query, ...place } };
  return { ...call, body: { ...call.body, ...place }, isIdempotent: true };
}

/** The path of ids that have been checked: `agentPath('threads.get', 'threads', { thread_id })`. */
export function agentPath(call: string, ...segments: readonly (string | Readonly<Record<string, string>>)[]): string {
  const ids = segments.filter((segment) => typeof segment === 'object');
  checkIds(call, Object.assign({}, ...ids));
  return pathOf(...segments.flatMap((segment) => (typeof segment === 'string' ? [segment] : Object.values(segment))));
}

/** Options of a call, checked: those that every call takes, and its own. */
export function splitOptions<Options extends CallOptions>(
  call: string,
  options: Options | undefined,
  checks: Checks<Omit<Options, keyof CallOptions>>,
): { readonly options: CallOptions; readonly own: Partial<Omit<Options, keyof CallOptions>> } {
  const all = { ...callChecks, ...checks } as unknown as Checks<Options>;
  const checked = checkedOptions<Options>(`the options of ${call}`, options ?? {}, all);
  const own = Object.entries(checked).filter(([name]) => Object.hasOwn(checks, name));
  return {
    options: callOptionsOf(checked as CallOptions),
    own: Object.fromEntries(own) as Partial<Omit<Options, keyof CallOptions>>,
  };
}
