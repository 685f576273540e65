import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { parseExact } from '../../payload/fields.ts';
import type { Feedback } from '../../receiver/domain/feedback.ts';
import { pathSegment } from '../../receiver/domain/path-segment.ts';
import type {
  DeletionTarget,
  ListPage,
  RunCounts,
  Statistics,
  Suggestion,
  ThreadTurns,
} from '../../receiver/domain/query/query.ts';
import type {
  CacheComparison,
  PayloadField,
  ProjectSummary,
  RunDetails,
  RunOutline,
  RunSummary,
  ThreadSummary,
  TraceSummary,
} from '../../receiver/domain/run-view.ts';
import { saved } from './trace-file.ts';

/** Whether the receiver requires a key that the user has not entered yet. */
export const isLocked: Signal<boolean> = signal(false);

const permission: Signal<string | undefined> = signal(undefined);

/** Whether the user's key allows importing and deleting data and giving feedback. */
export const mayChange: ReadonlySignal<boolean> = computed(() => permission.value === 'admin');

/** How late the receiver deletes old runs, if it is late. */
export const lag: Signal<string | undefined> = signal(undefined);

/** Sets to which the user may add examples. Undefined unless the receiver is that of `runspan dev`. */
export const sets: Signal<readonly { name: string; examples: number }[] | undefined> = signal(undefined);

/** The traces or runs from which examples are made. */
export type Examples = { readonly trace_ids: readonly string[] } | { readonly run_ids: readonly string[] };

export async function readPermission(): Promise<void> {
  const session = await getJson<{ permission: string; lag?: string }>('/query/session').catch(() => undefined);
  permission.value = session?.permission;
  lag.value = session?.lag;
  if (mayChange.value) void readSets();
}

export async function readSets(): Promise<void> {
  const response = getJson<{ items: NonNullable<typeof sets.value> }>('/query/sets');
  sets.value = (await response.catch(() => undefined))?.items ?? sets.value;
}

export class ReceiverError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export const api = {
  projects: (): Promise<ListPage<ProjectSummary>> => getJson('/query/projects?limit=1'),
  traces: (query: URLSearchParams, signal?: AbortSignal): Promise<ListPage<TraceSummary>> =>
    getJson(`/query/traces?${query}`, signal),
  runs: (query: URLSearchParams, signal?: AbortSignal): Promise<ListPage<RunSummary>> =>
    getJson(`/query/runs?${query}`, signal),
  threads: (query: URLSearchParams, signal?: AbortSignal): Promise<ListPage<ThreadSummary>> =>
    getJson(`/query/threads?${query}`, signal),
  thread: (id: string, query: URLSearchParams, signal?: AbortSignal): Promise<ThreadTurns> =>
    getJson(`/query/threads/${pathSegment(id)}?${query}`, signal),
  trace: (id: string, signal?: AbortSignal): Promise<{ items: RunOutline[] }> =>
    getJson(`/query/traces/${pathSegment(id)}`, signal),
  run: (id: string, signal?: AbortSignal): Promise<RunDetails> => getJson(`/query/runs/${pathSegment(id)}`, signal),
  payload: (id: string, field: PayloadField, signal?: AbortSignal): Promise<unknown> =>
    getJson(payloadUrl(id, field), signal),
  cache: (id: string, signal?: AbortSignal): Promise<CacheComparison> =>
    getJson(`/query/runs/${pathSegment(id)}/cache`, signal),
  statistics: (query: URLSearchParams, signal?: AbortSignal): Promise<Statistics> =>
    getJson(`/query/statistics?${query}`, signal),
  suggestions: (query: URLSearchParams): Promise<{ items: Suggestion[] }> => getJson(`/query/suggestions?${query}`),
  giveFeedback: (feedback: Partial<Feedback>): Promise<Feedback> => send('/query/feedback', feedback),
  addToSet: (name: string, examples: Examples): Promise<{ added: number; kept: number; file: string }> =>
    send(`/query/sets/${pathSegment(name)}`, examples),
  importTraces: upload,
  removable: (target: DeletionTarget, signal?: AbortSignal): Promise<RunCounts> => remove(target, '', signal),
  remove: (target: DeletionTarget): Promise<RunCounts> => remove(target, `?confirm=${encodeURIComponent(target.id)}`),
  login: (key: string): Promise<unknown> => send('/login', { key }),
};

export function payloadUrl(id: string, field: PayloadField): string {
  return `/query/runs/${pathSegment(id)}/${field}`;
}

/** Returns the URL of an attachment. Returns undefined if a saved trace does not contain the attachment. */
export function attachmentUrl(id: string, name: string): string | undefined {
  const path = `/query/runs/${pathSegment(id)}/attachments/${pathSegment(name)}`;
  return saved === undefined ? path : (saved.responses.get(path) as string | undefined);
}

export function exportUrl(traceId: string, format: 'runspan' | 'perfetto' | 'html'): string {
  return `/query/traces/${pathSegment(traceId)}/export?format=${format}`;
}

/** Returns the error message to show for a failed request. Returns undefined if the page aborted the request. */
export function problemOf(error: unknown): string | undefined {
  if (error instanceof DOMException && error.name === 'AbortError') return undefined;
  if (error instanceof ReceiverError) return error.message;
  return 'The receiver does not respond. Check whether the receiver is running.';
}

export async function getJson<Result>(path: string, signal?: AbortSignal): Promise<Result> {
  if (saved !== undefined) {
    if (!saved.responses.has(path))
      throw new ReceiverError(404, 'Left out of this file, because the trace is too large.');
    return saved.responses.get(path) as Result;
  }
  return parseResponse(await fetch(path, signal === undefined ? {} : { signal }));
}

async function send<Result>(path: string, body: object): Promise<Result> {
  const headers = { 'content-type': 'application/json' };
  return parseResponse(await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) }));
}

/** Imports the traces in a file. Calls `onProgress` with the number of bytes sent, which `fetch` does not report. */
async function upload(file: File, onProgress: (sentBytes: number) => void, signal: AbortSignal): Promise<RunCounts> {
  const request = new XMLHttpRequest();
  signal.addEventListener('abort', () => request.abort());
  const response = new Promise<Response>((resolve, reject) => {
    request.upload.addEventListener('progress', ({ loaded }) => onProgress(loaded));
    request.addEventListener('load', () => resolve(new Response(request.response, { status: request.status })));
    request.addEventListener('error', () => reject(new TypeError('The receiver does not respond')));
    request.addEventListener('abort', () => reject(signal.reason));
  });
  request.open('POST', '/query/import');
  const isLines = /\.(jsonl|ndjson)$/i.test(file.name);
  request.setRequestHeader('content-type', isLines ? 'application/jsonl' : 'application/json');
  request.send(file);
  return parseResponse(await response);
}

async function remove({ kind, id }: DeletionTarget, search: string, signal?: AbortSignal): Promise<RunCounts> {
  const path = `/query/${kind}s/${pathSegment(id)}${search}`;
  const response = await fetch(path, { method: 'DELETE', ...(signal && { signal }) });
  // The receiver responds with status 409 and the counts if the request is not confirmed.
  return response.status === 409 ? response.json() : parseResponse(response);
}

export async function parseResponse<Result>(response: Response): Promise<Result> {
  if (response.ok) return response.status === 204 ? (undefined as Result) : parseExact(await response.text());
  if (response.status === 401) isLocked.value = true;
  const detail = parseDetail(await response.text());
  throw new ReceiverError(response.status, detail ?? `The receiver responded with status ${response.status}`);
}

/** Returns the message from an error response `{ detail: string | [{ loc, msg }] }`. */
function parseDetail(text: string): string | undefined {
  try {
    const { detail } = JSON.parse(text) as { detail?: string | { loc: (string | number)[]; msg: string }[] };
    if (!Array.isArray(detail)) return detail;
    if (detail[0]?.loc[0] === 'path') return 'The id in the URL is not valid.';
    return detail.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ');
  } catch {
    return undefined;
  }
}
