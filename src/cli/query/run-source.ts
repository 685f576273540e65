import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import { type Command, Option } from '@commander-js/extra-typings';
import { messageOf, visible } from '../../base/text.ts';
import { isLoopback, isObject } from '../../config/checker.ts';
import { env } from '../../config/environment.ts';
import { defined, parsedJson } from '../../payload/fields.ts';
import { pathSegment } from '../../receiver/domain/path-segment.ts';
import type { DeletionTarget, ListPage, RunCounts } from '../../receiver/domain/query/query.ts';
import { CommandFailure, UsageError, webAddress } from '../command-line.ts';
import { registeredReceiver } from '../dev/registration.ts';
import type { RerunChanges, RerunEvent } from '../rerun/rerun-events.ts';
import { openStoreToRead, type RunSource, storeFile, storeSource } from '../stores.ts';

export interface SourceOptions {
  readonly url?: URL | undefined;
  readonly store?: string | undefined;
}

/** Adds the options that select a receiver or a file as the source of runs. */
export function withSourceOptions<Args extends unknown[], Options extends Record<string, unknown>>(
  command: Command<Args, Options>,
): Command<Args, Options & SourceOptions> {
  const extended = command
    .addOption(
      new Option(
        '--url <url>',
        'URL of a receiver (default: the receiver of the runspan dev that serves the store file, otherwise the file); RUNSPAN_RECEIVER_KEY sets the key',
      )
        .argParser(webAddress)
        .conflicts('store'),
    )
    .option('--store <file>', 'store file (default: RUNSPAN_STORE, otherwise ~/.runspan/runs.db)');
  return extended as unknown as Command<Args, Options & SourceOptions>;
}

export async function withSource<Result>(
  options: SourceOptions,
  use: (source: RunSource) => Promise<Result>,
): Promise<Result> {
  const found = await findSource(options);
  if (typeof found !== 'string') return use(found);
  const store = await openStoreToRead(found);
  return use(storeSource(store)).finally(() => store.close());
}

/**
 * Returns the receiver that the user has named or that proves that it serves the store file, otherwise the path of the
 * file. Throws if there is neither. Any program may listen on a port, so a port alone never identifies a receiver.
 */
export async function findSource({ url, store }: SourceOptions): Promise<ReceiverSource | string> {
  if (url !== undefined) return receiverAt(url);
  const file = storeFile(store);
  if (file === undefined) throw new CommandFailure('only its receiver can read a store in memory; pass --url');
  const address = await registeredReceiver(file);
  if (address !== undefined) return receiverAt(new URL(address), file);
  if (existsSync(file)) return file;
  throw new CommandFailure(
    `no running receiver is registered beside ${visible(file)}, and the file does not exist; start runspan dev, or pass --url or --store`,
  );
}

/**
 * Returns the receiver at an address that the user has named, or that was just proved. The key is sent to this address.
 * `file` is the store of a proved receiver.
 */
export function receiverAt(url: URL, file?: string): ReceiverSource {
  return new ReceiverSource(url, env('RUNSPAN_RECEIVER_KEY'), file);
}

/** Request timeout in milliseconds. The timeout is long, because a receiver under load may respond late. */
const RESPONSE_MAX_MS = 30_000;
export class NoReceiver extends CommandFailure {}
class Refusal extends CommandFailure {}
/** Time limit of a rerun in milliseconds, longer than that of the requests to the service. */
const RERUN_MAX_MS = 660_000;

type Method = 'GET' | 'POST' | 'DELETE';

/** Reads runs from a receiver over HTTP. Throws if the receiver does not respond or returns an error. */
export class ReceiverSource implements RunSource {
  readonly #url: URL;
  readonly #apiKey: string | undefined;
  /** Store of a receiver that is proved before each request. `findSource` has proved it before the first one. */
  readonly #file: string | undefined;
  #isProved = true;

  /** Throws if the API key would be sent over plain HTTP to another machine. */
  constructor(url: URL, apiKey: string | undefined, file: string | undefined) {
    if (apiKey !== undefined && url.protocol === 'http:' && !isLoopback(url.hostname)) {
      throw new UsageError(`the key is not sent to ${url.origin} over plain HTTP; use https`);
    }
    this.#url = url;
    this.#apiKey = apiKey;
    this.#file = file;
  }

  traces: RunSource['traces'] = (query) => this.#result(`traces?${parametersOf(query)}`, 'items');

  runs: RunSource['runs'] = (query) => this.#result(`runs?${parametersOf(query)}`, 'items');

  statistics: RunSource['statistics'] = ({ groupBy, ...query }) =>
    this.#result(`statistics?${parametersOf(defined({ ...query, group_by: groupBy }))}`, 'total');

  outline: RunSource['outline'] = async (traceId) =>
    (await this.#json<{ items: [] }>(`traces/${traceId}`, 'items'))?.items ?? [];

  details: RunSource['details'] = (runId) => this.#json(`runs/${runId}`, 'payload_sizes');

  payload: RunSource['payload'] = (runId, field) => this.#text(`runs/${runId}/${field}`);

  cache: RunSource['cache'] = (runId) => this.#json(`runs/${runId}/cache`);

  exported: RunSource['exported'] = (traceId) => this.#text(`traces/${traceId}/export`);

  saved: RunSource['saved'] = (traceId) => this.#text(`traces/${traceId}/export?format=html`);

  /** Stores the runs and the feedback of an export. */
  import = (text: string): Promise<RunCounts | undefined> => this.#json('import', 'runs', 'POST', text);

  /** Deletes traces, or only counts their runs. Returns undefined if there are none. */
  remove({ kind, id }: DeletionTarget, isConfirmed: boolean): Promise<RunCounts | undefined> {
    const path = `${kind}s/${pathSegment(id)}${isConfirmed ? `?confirm=${encodeURIComponent(id)}` : ''}`;
    return this.#json<RunCounts>(path, undefined, 'DELETE');
  }

  /** Ends the open runs of a program of `runspan dev`, and returns the traces of the program, the latest last. */
  async endProgram(id: string, endTime: string): Promise<readonly string[]> {
    const path = `programs/${id}?end_time=${encodeURIComponent(endTime)}`;
    return (await this.#json<{ trace_ids: string[] }>(path, 'trace_ids', 'DELETE'))?.trace_ids ?? [];
  }

  /** Sends a recorded model call again. Yields the last event of each sample. */
  async *rerun(runId: string, changes: RerunChanges, signal?: AbortSignal): AsyncGenerator<RerunEvent> {
    const limit = AbortSignal.timeout(RERUN_MAX_MS);
    const response = await this.#send(`runs/${runId}/rerun`, {
      ...{ method: 'POST', body: JSON.stringify(changes) },
      signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    });
    if (!response.ok) throw this.#refusal(response, await response.text());
    const lines = createInterface({ input: Readable.fromWeb(response.body as NodeReadableStream) });
    try {
      for await (const line of lines) {
        const event: RerunEvent = JSON.parse(line);
        if (event.trace_id !== undefined) yield event;
      }
    } catch (error) {
      this.#lost(error);
    }
  }

  /** Returns the first 1,000 projects. */
  projects(): Promise<ListPage<unknown>> {
    return this.#result('projects?limit=1000', 'items');
  }

  /** Returns the response to a request that a receiver never answers with status 404. */
  async #result<Body>(path: string, field: string): Promise<Body> {
    const body = await this.#json<Body>(path, field);
    if (body === undefined) throw this.#notReceiver('responded with status 404');
    return body;
  }

  /** Returns an object, or undefined if the run or trace does not exist. `field` is a field that every receiver sends. */
  async #json<Body>(path: string, field?: string, method?: Method, sent?: string): Promise<Body | undefined> {
    const text = await this.#text(path, method, sent);
    if (text === undefined) return undefined;
    const body = parsedJson(text);
    if (body === text) throw this.#notReceiver('responded without JSON');
    if (!isObject(body) || (field !== undefined && body[field] === undefined))
      throw this.#notReceiver('responded with other JSON');
    return body as Body;
  }

  /** Returns the response body, or undefined if the run or trace does not exist. */
  async #text(path: string, method: Method = 'GET', sent?: string): Promise<string | undefined> {
    const response = await this.#send(path, {
      method,
      ...defined({ body: sent }),
      signal: AbortSignal.timeout(RESPONSE_MAX_MS),
    });
    const text = await response.text().catch(this.#lost);
    const { status } = response;
    // The receiver responds with status 409 to a `DELETE` request that is not confirmed.
    if (response.ok || (status === 409 && method === 'DELETE')) return text;
    const refusal = this.#refusal(response, text);
    if (status === 404 && refusal instanceof Refusal) return undefined;
    throw refusal;
  }

  #refusal({ status }: Response, text: string): CommandFailure {
    const receiver = `the receiver at ${this.#url.origin}`;
    if (status === 401) {
      const problem = this.#apiKey === undefined ? 'requires a key; set' : 'rejected the key in';
      return new CommandFailure(`${receiver} ${problem} RUNSPAN_RECEIVER_KEY`);
    }
    // Proxies refuse requests with these two. Most other servers send no `detail` with an error.
    const detail = detailOf(text) ?? (status === 403 || status === 429 ? `status ${status}` : undefined);
    if (detail === undefined) return this.#notReceiver(`responded with status ${status}`);
    if (status === 503) return new NoReceiver(`${receiver} cannot answer: ${detail}`);
    return new Refusal(`${receiver} refused the request: ${detail}`, status === 422 ? 2 : 1);
  }

  get address(): string {
    const { origin, pathname } = this.#url;
    return origin + pathname.replace(/\/$/, '');
  }

  #notReceiver(response: string): CommandFailure {
    return new CommandFailure(`${this.address} ${response}: this is not the URL of a receiver`);
  }

  async #send(path: string, init: RequestInit): Promise<Response> {
    // After the first request, another program may listen on the port of a receiver that has ended.
    const isProved = this.#file === undefined || this.#isProved;
    this.#isProved = false;
    if (!isProved && (await registeredReceiver(this.#file)) !== this.address) {
      throw new NoReceiver(`the receiver of the store has ended, or does not respond at ${this.#url.origin}`);
    }
    const base = this.#url.href.endsWith('/') ? this.#url : `${this.#url.href}/`;
    const headers = defined({ 'x-api-key': this.#apiKey, 'content-type': init.body ? 'application/json' : undefined });
    return fetch(new URL(`query/${path}`, base), { ...init, headers, redirect: 'manual' }).catch(this.#lost);
  }

  readonly #lost = (error: unknown): never => {
    const reason = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new NoReceiver(`no receiver responds at ${this.#url.origin}: ${messageOf(reason)}`);
  };
}

/** Returns the `detail` of an error response: a message, or the first of a list of issues. */
function detailOf(text: string): string | undefined {
  const body = parsedJson(text);
  const detail = isObject(body) ? body.detail : undefined;
  const issue = Array.isArray(detail) ? detail[0] : { msg: detail };
  return isObject(issue) && typeof issue.msg === 'string' ? visible(issue.msg) : undefined;
}

function parametersOf(query: object): URLSearchParams {
  return new URLSearchParams(Object.entries(query).map(([name, value]): [string, string] => [name, `${value}`]));
}
