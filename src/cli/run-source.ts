import { existsSync } from 'node:fs';
import { env } from '../base/env.ts';
import { isLoopback } from '../base/options.ts';
import { messageOf, visible } from '../base/text.ts';
import type { ListQuery, Page } from '../receiver/query/query.ts';
import { exportTrace } from '../receiver/query/trace-export.ts';
import type { PayloadField, RunDetails, RunOutline, RunSummary, TraceSummary } from '../receiver/store/run-view.ts';
import { SqliteStore } from '../receiver/store/sqlite-store.ts';
import type { Store } from '../receiver/store/store.ts';
import { DEFAULT_PORT } from './dev-arguments.ts';
import { storeFile } from './dev-store.ts';
import type { Place } from './query-arguments.ts';

/** Where the command line reads runs: a receiver, or a store beside it. */
export interface RunSource {
  traces(query: ListQuery): Promise<Page<TraceSummary>>;
  runs(query: ListQuery): Promise<Page<RunSummary>>;
  /** None when the trace is unknown. */
  outline(traceId: string): Promise<RunOutline[]>;
  details(runId: string): Promise<RunDetails | undefined>;
  /** JSON text. */
  payload(runId: string, field: PayloadField): Promise<string | undefined>;
  /** A trace as JSON text that can be imported. */
  exported(traceId: string): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Opens the place where runs are looked for; throws in words for the user when there is none. */
export async function openSource({ url, store: named }: Place): Promise<RunSource> {
  const apiKey = env('RUNSPAN_RECEIVER_KEY');
  if (url !== undefined) return new ReceiverSource(url, apiKey);
  const receiver = new ReceiverSource(new URL(`http://127.0.0.1:${DEFAULT_PORT}`), apiKey);
  if (named === undefined && (await receiver.isThere())) return receiver;
  const file = storeFile(named);
  if (file === undefined || !existsSync(file)) {
    const noReceiver = named === undefined ? `no receiver listens on port ${DEFAULT_PORT}, and ` : '';
    throw new Error(
      `${noReceiver}there is no file ${visible(file ?? 'of a store')}; \`runspan dev\` starts a receiver, --url names another`,
    );
  }
  const store = await SqliteStore.open(file, { readOnly: true });
  return new StoreSource(store, () => store.close());
}

/** A receiver that has been asked takes longer than any answer of its own machine. */
const ANSWER_MS = 30_000;

/** Nobody listens at the address. */
class NoReceiver extends Error {}

/** A store that no receiver is asked for. */
export class StoreSource implements RunSource {
  readonly #store: Store;
  readonly close: () => Promise<void>;

  constructor(store: Store, close: () => Promise<void>) {
    this.#store = store;
    this.close = close;
  }

  traces(query: ListQuery): Promise<Page<TraceSummary>> {
    return this.#store.traces(query);
  }

  runs(query: ListQuery): Promise<Page<RunSummary>> {
    return this.#store.list(query);
  }

  outline(traceId: string): Promise<RunOutline[]> {
    return this.#store.outline(traceId);
  }

  details(runId: string): Promise<RunDetails | undefined> {
    return this.#store.details(runId);
  }

  payload(runId: string, field: PayloadField): Promise<string | undefined> {
    return this.#store.payload(runId, field);
  }

  exported(traceId: string): Promise<string | undefined> {
    return exportTrace(this.#store, traceId);
  }
}

/** A receiver over HTTP. What it answers with an error, or not at all, is thrown in words for the user. */
export class ReceiverSource implements RunSource {
  readonly #url: URL;
  readonly #apiKey: string | undefined;

  /** Throws rather than to send a key over plain HTTP beyond this machine. */
  constructor(url: URL, apiKey: string | undefined) {
    if (apiKey !== undefined && url.protocol === 'http:' && !isLoopback(url.hostname)) {
      throw new Error(`the key is not sent to ${url.origin}: that is neither https nor this machine`);
    }
    this.#url = url;
    this.#apiKey = apiKey;
  }

  async traces(query: ListQuery): Promise<Page<TraceSummary>> {
    return (await this.#read<Page<TraceSummary>>(`traces?${searchOf(query)}`)) ?? { items: [] };
  }

  async runs(query: ListQuery): Promise<Page<RunSummary>> {
    return (await this.#read<Page<RunSummary>>(`runs?${searchOf(query)}`)) ?? { items: [] };
  }

  async outline(traceId: string): Promise<RunOutline[]> {
    return (await this.#read<{ items: RunOutline[] }>(`traces/${traceId}`))?.items ?? [];
  }

  details(runId: string): Promise<RunDetails | undefined> {
    return this.#read<RunDetails>(`runs/${runId}`);
  }

  payload(runId: string, field: PayloadField): Promise<string | undefined> {
    return this.#get(`runs/${runId}/${field}`);
  }

  exported(traceId: string): Promise<string | undefined> {
    return this.#get(`traces/${traceId}/export`);
  }

  async close(): Promise<void> {}

  async isThere(): Promise<boolean> {
    try {
      await this.#ask('projects');
      return true;
    } catch (error) {
      if (error instanceof NoReceiver) return false;
      throw error;
    }
  }

  async #read<Body>(path: string): Promise<Body | undefined> {
    const text = await this.#get(path);
    try {
      return text === undefined ? undefined : JSON.parse(text);
    } catch {
      throw this.#stranger('answered what is no JSON');
    }
  }

  /** The body of an answer; undefined for 404. */
  async #get(path: string): Promise<string | undefined> {
    const { response, text } = await this.#ask(path);
    if (response.ok) return text;
    if (response.status === 404 && text.includes('"detail":"There ')) return undefined;
    // After many wrong keys, the receiver answers further ones with 429.
    if (response.status === 401 || response.status === 429) {
      const problem =
        this.#apiKey === undefined
          ? 'asks for a key: set RUNSPAN_RECEIVER_KEY'
          : 'asks for another key than that in RUNSPAN_RECEIVER_KEY';
      throw new Error(`the receiver at ${this.#url.origin} ${problem}`);
    }
    if (response.status === 403 && text.includes('write key')) {
      throw new Error(`the key in RUNSPAN_RECEIVER_KEY can only send runs to the receiver at ${this.#url.origin}`);
    }
    throw this.#stranger(`answered ${response.status}`);
  }

  #stranger(did: string): Error {
    return new Error(`${this.#url.origin} ${did}; it may be no receiver of runspan`);
  }

  async #ask(path: string): Promise<{ response: Response; text: string }> {
    const base = this.#url.href.endsWith('/') ? this.#url : `${this.#url.href}/`;
    try {
      const response = await fetch(new URL(`query/${path}`, base), {
        headers: this.#apiKey === undefined ? {} : { 'x-api-key': this.#apiKey },
        redirect: 'manual',
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      return { response, text: await response.text() };
    } catch (error) {
      const reason = error instanceof Error && error.cause !== undefined ? error.cause : error;
      throw new NoReceiver(`no receiver answers at ${this.#url.origin}: ${messageOf(reason)}`, { cause: error });
    }
  }
}

/** In an address the fields of a query are in snake case; those that may be repeated are. */
function searchOf(query: ListQuery): URLSearchParams {
  const search = new URLSearchParams();
  for (const [field, value] of Object.entries(query)) {
    const name = field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one));
  }
  return search;
}
