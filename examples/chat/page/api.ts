import type { Info, ThreadState, ThreadSummary } from './protocol.ts';
import { refusalOf } from './refusal.ts';
import { AS_CHANGES } from './whole-states.ts';

/** What an answer that is no success said. */
export class ApiError extends Error {
  readonly status: number;
  /** Of a command that was not done: why, as the protocol calls it. */
  readonly code: string | undefined;

  constructor(status: number, message: string, code?: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const base = '/api';
let commands = 0;

/** The end points of the server. What goes wrong is thrown, as an ApiError where the server has answered. */
export const api = {
  info: (): Promise<Info> => get('/info'),
  threads: (limit: number, offset: number): Promise<ThreadSummary[]> => get(`/threads?limit=${limit}&offset=${offset}`),
  deleteThread: (id: string): Promise<void> => send('DELETE', threadPath(id)),

  /** The newest state, or undefined where there is none. */
  state: async (id: string, signal?: AbortSignal): Promise<ThreadState | undefined> => {
    try {
      return await get<ThreadState>(`${threadPath(id)}/state`, signal);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  },

  /** States, newest first: the page that comes before a checkpoint. */
  history: async (id: string, limit: number, before?: string): Promise<ThreadState[]> =>
    send('POST', `${threadPath(id)}/history`, { limit, ...AS_CHANGES, ...(before === undefined ? {} : { before }) }),

  command: async (id: string, method: string, params: object): Promise<CommandedRun> => {
    commands += 1;
    const answer = await send<CommandAnswer>('POST', `${threadPath(id)}/commands`, { id: commands, method, params });
    if (answer.type === 'error') throw new ApiError(200, answer.message ?? 'The command was refused.', answer.error);
    return { ...answer.result, trace_id: answer.meta?.trace_id };
  },

  cancel: (id: string, runId: string): Promise<void> =>
    send('POST', `${threadPath(id)}/runs/${encodeURIComponent(runId)}/cancel`, {}),

  stream: async (id: string, body: object, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> => {
    const response = await fetch(`${base}${threadPath(id)}/stream`, { ...jsonRequest('POST', body), signal });
    if (!response.ok || response.body === null) throw await errorOf(response);
    return response.body;
  },

  /** Addresses that feedback on a run is sent to, by its key. */
  feedbackUrls: async (id: string, runId: string): Promise<Readonly<Record<string, string>>> => {
    const { urls } = await send<{ urls: Readonly<Record<string, string>> }>(
      'POST',
      `${threadPath(id)}/runs/${encodeURIComponent(runId)}/feedback`,
      {},
    );
    return urls;
  },

  giveFeedback: async (
    url: string,
    feedback: { readonly score?: 1 | -1; readonly comment?: string },
  ): Promise<void> => {
    const response = await fetch(url, { ...jsonRequest('POST', feedback), credentials: 'omit' });
    if (!response.ok) throw await errorOf(response);
  },
};

/** The run that a command has begun. */
interface CommandedRun {
  readonly run_id?: string;
  readonly trace_id: string | undefined;
}

interface CommandAnswer {
  readonly type: string;
  readonly result?: { readonly run_id?: string };
  readonly meta?: { readonly trace_id?: string };
  readonly error?: string;
  readonly message?: string;
}

/** The problem that is over as soon as something is heard of the server. */
export const NO_ANSWER = 'The server does not answer. Is it still running?';

/** What went wrong, for a reader. */
export function problemOf(error: unknown): string {
  return error instanceof ApiError ? error.message : NO_ANSWER;
}

function threadPath(id: string): string {
  return `/threads/${encodeURIComponent(id)}`;
}

async function get<Result>(path: string, signal?: AbortSignal): Promise<Result> {
  return answered(await fetch(base + path, signal === undefined ? {} : { signal }));
}

async function send<Result>(method: string, path: string, body?: object): Promise<Result> {
  return answered(await fetch(base + path, jsonRequest(method, body)));
}

function jsonRequest(method: string, body?: object): RequestInit {
  if (body === undefined) return { method };
  return { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

async function answered<Result>(response: Response): Promise<Result> {
  if (!response.ok) throw await errorOf(response);
  const text = await response.text();
  return (text === '' ? undefined : JSON.parse(text)) as Result;
}

async function errorOf(response: Response): Promise<ApiError> {
  return new ApiError(response.status, refusalOf(response.status, await response.text()));
}
