import { type AnswerForm, problemOf } from './answer-form.ts';
import type { Answer, Api } from './api.ts';
import { ConnectionError, InvalidAnswerError } from './api-error.ts';
import type { Call } from './call.ts';
import { Page, PageList } from './page.ts';
import { hideSecretValues, secretValuesOf, withoutSecretValues } from './secret-values.ts';
import type { SpellingTable } from './spelling.ts';
import { tracedCall } from './traced-call.ts';
import { Waits } from './waits.ts';

/** Items of a page where the caller does not say. */
const PAGE_ITEMS = 20;

/** A call of a control plane, in the words of the interface. */
export interface ControlPlaneCall extends Omit<Call, 'secrets' | 'stream' | 'headers'> {
  readonly answer: AnswerForm;
  /** What its run tells beside query and body: the ids of the path. */
  readonly told?: Readonly<Record<string, unknown>>;
  /** What its run tells of the answer, where that is not all. */
  readonly outputs?: () => Record<string, unknown>;
}

/** A list, and where in it the first page begins. */
export interface ListCall {
  readonly call: ControlPlaneCall;
  readonly page: { readonly limit?: number; readonly offset?: number };
}

/** The way of all calls of a ControlPlane: the words of the service on the wire, and a run for each call that is made in one. */
export class ControlPlaneApi {
  readonly #api: Api;
  readonly #waits: Waits = new Waits();
  readonly #closing: AbortController = new AbortController();
  readonly spelling: SpellingTable;
  /** Whether the path of the upload-address route starts with a version. Updated by the responses of the service. */
  isUploadVersioned = true;

  constructor(api: Api, spelling: SpellingTable) {
    this.#api = api;
    this.spelling = spelling;
  }

  /** Milliseconds for a call that brings none of its own. */
  get timeoutMs(): number {
    return this.#api.timeoutMs;
  }

  /** Aborted when the client is closed, for what goes another way. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** The body of the answer. */
  async call<Result>(call: ControlPlaneCall): Promise<Result> {
    return (await this.traced<Result>(call)).data;
  }

  /** The answer to a call that is a run where it is made in one. */
  async traced<Result>(call: ControlPlaneCall): Promise<Answer<Result>> {
    const { name, told, query, body, outputs } = call;
    const inputs = (): Record<string, unknown> => recorded({ ...told, ...given(query), ...given(body) });
    return tracedCall<Answer<Result>>(
      { name, runType: 'tool', inputs, outputs: outputs ?? (({ data }) => recorded(data)) },
      () => this.answer(call),
    );
  }

  /** The answer to a call that is a part of another. */
  async answer<Result>(call: ControlPlaneCall): Promise<Answer<Result>> {
    const { answer: kind, told: _told, outputs: _outputs, ...rest } = call;
    const answer = await this.#api.answer<unknown>({
      ...rest,
      ...(call.body === undefined ? {} : { body: this.spelling.toWire(call.body) }),
      secrets: secretValuesOf(call.body),
    });
    const problem = problemOf(answer.data, kind);
    if (problem !== undefined) throw this.invalid(call, answer, problem);
    return { ...answer, data: this.#read(answer.data) as Result };
  }

  /** A list whose answers tell the offset of the page that follows. What `prepare` throws, it rejects with. */
  list<Item>(prepare: () => ListCall): PageList<Item> {
    const ask = async ({ call, page }: ListCall, from: number): Promise<Page<Item>> => {
      const { limit = PAGE_ITEMS } = page;
      const asked: ControlPlaneCall = { ...call, query: { ...call.query, limit, offset: from } };
      const answer = await this.traced<{ resources: Item[]; offset?: unknown }>(asked);
      const { resources, offset: next } = answer.data;
      if (!Array.isArray(resources)) throw this.invalid(asked, answer, 'holds no list of resources');
      // An offset that does not advance would give the same page for ever.
      const isLast = resources.length < limit || typeof next !== 'number' || !(next > from);
      return new Page(resources, isLast ? undefined : () => ask({ call, page }, next));
    };
    return new PageList(async () => {
      const list = prepare();
      return ask(list, list.page.offset ?? 0);
    });
  }

  /** Waits between two calls, until the signal is aborted or the client closed. */
  async pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    await this.#waits.wait(ms, signal);
  }

  async close(): Promise<void> {
    const facts = { method: 'GET', url: this.#api.urlOf(''), attempts: 0 };
    const closed = new ConnectionError(facts, 'the client was closed', false);
    this.#waits.end(closed);
    this.#closing.abort(closed);
    await this.#api.close();
  }

  #read(data: unknown): unknown {
    const { resources } = (typeof data === 'object' && data !== null ? data : {}) as { resources?: unknown };
    const read = Array.isArray(resources)
      ? { ...(data as object), resources: resources.map((resource) => this.spelling.fromWire(resource)) }
      : this.spelling.fromWire(data);
    return hideSecretValues(read);
  }

  /** Tells of an answer that is not what it should be. */
  invalid(call: ControlPlaneCall, answer: Omit<Answer<unknown>, 'data'>, problem: string): InvalidAnswerError {
    return new InvalidAnswerError(this.#api.factsOf(call), answer, problem);
  }
}

function recorded(value: unknown): Record<string, unknown> {
  const shown = withoutSecretValues(value);
  if (shown === undefined || shown === null) return {};
  return typeof shown === 'object' && !Array.isArray(shown) ? (shown as Record<string, unknown>) : { outputs: shown };
}

function given(fields: unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([, value]) => value !== undefined));
}
