import { createParser } from 'eventsource-parser';
import type { ThreadState as StateOf, ThreadEvent, ThreadSummary } from 'runspan/clients';

// `AgentThreads` of runspan/clients needs Node, so the page has this small client with the same types.

export type Fields = Readonly<Record<string, unknown>>;
export type ThreadState = StateOf<{ readonly messages?: readonly Fields[] }>;
export type { ThreadEvent, ThreadSummary };

/** The response of `GET /api/info`. */
export interface Info {
  readonly agent: string;
  readonly model: { readonly name: string; readonly is_local: boolean };
  readonly tracing: { readonly is_on: boolean; readonly viewer_url: string | null };
  readonly feedback_keys: readonly string[];
}

/** A request that the server refused. */
export class ApiError extends Error {
  readonly status: number;
  /** The error code of a command. */
  readonly code: string | undefined;

  constructor(status: number, message: string, code?: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const NO_RESPONSE = 'The server does not respond. Is it still running?';

/** The text of an error, for the user. */
export function problemOf(error: unknown): string {
  return error instanceof ApiError ? error.message : NO_RESPONSE;
}

const CHANNELS = ['messages', 'tools', 'lifecycle', 'checkpoints', 'input', 'custom'];
/** The server sends a comment every 5 s. */
const SILENCE_MS_MAX = 20_000;

let commands = 0;

/** The end points of the server. A method rejects with an ApiError if the server refuses the request. */
export const client = {
  info: (): Promise<Info> => send('GET', '/info'),
  threads: (limit: number, offset: number): Promise<ThreadSummary[]> =>
    send('GET', `/threads?limit=${limit}&offset=${offset}`),
  deleteThread: (id: string): Promise<void> => send('DELETE', threadPath(id)),
  cancel: (id: string, runId: string): Promise<void> => send('POST', `${threadPath(id)}/runs/${runId}/cancel`, {}),

  /** The newest state. Undefined if there is none. */
  state: async (id: string): Promise<ThreadState | undefined> => {
    try {
      return await send<ThreadState>('GET', `${threadPath(id)}/state`);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  },

  /** At most `limit` states before a checkpoint, newest first. */
  history: (id: string, limit: number, before?: string): Promise<ThreadState[]> =>
    send('POST', `${threadPath(id)}/history`, { limit, before }),

  /** Sends `run.start` or `input.respond`. Returns the id of the run. */
  command: async (id: string, method: string, params: object): Promise<string | undefined> => {
    commands += 1;
    const response = await send<{
      readonly type: string;
      readonly result?: { readonly run_id?: string };
      readonly error?: string;
      readonly message?: string;
    }>('POST', `${threadPath(id)}/commands`, { id: commands, method, params });
    if (response.type === 'error') throw new ApiError(200, response.message ?? 'The command failed.', response.error);
    return response.result?.run_id;
  },

  /** The address for ratings of a run, by key. */
  feedbackUrls: async (id: string, runId: string): Promise<Readonly<Record<string, string>>> =>
    (await send<{ urls: Record<string, string> }>('POST', `${threadPath(id)}/runs/${runId}/feedback`, {})).urls,

  sendFeedback: async (url: string, feedback: object): Promise<void> => {
    const response = await fetch(url, { ...jsonRequest('POST', feedback), credentials: 'omit' });
    if (!response.ok) throw await errorOf(response);
  },

  /**
   * Reads the events of a thread after a number, until the signal aborts. `onLive` is called when all past events have
   * been read. Rejects if the connection breaks or is silent for too long.
   */
  events: async (
    id: string,
    since: number | undefined,
    signal: AbortSignal,
    { onEvent, onLive }: { readonly onEvent: (event: ThreadEvent) => void; readonly onLive: () => void },
  ): Promise<void> => {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS_MAX);
    const parser = createParser({
      onEvent: ({ data }) => onEvent(JSON.parse(data)),
      onComment: (comment) => comment === 'live' && onLive(),
    });
    try {
      const response = await fetch(`/api${threadPath(id)}/stream`, {
        ...jsonRequest('POST', { channels: CHANNELS, since }),
        signal: AbortSignal.any([signal, silence.signal]),
      });
      if (!response.ok || response.body === null) throw await errorOf(response);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS_MAX);
        parser.feed(chunk.value);
      }
    } finally {
      clearTimeout(timer);
    }
  },
};

export function checkpointOf(state: ThreadState | undefined): string | undefined {
  return state?.checkpoint?.checkpoint_id ?? undefined;
}

/** The fields of a value from the server, or none if the value is not an object. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function threadPath(id: string): string {
  return `/threads/${encodeURIComponent(id)}`;
}

async function send<Result>(method: string, path: string, body?: object): Promise<Result> {
  const response = await fetch(`/api${path}`, jsonRequest(method, body));
  if (!response.ok) throw await errorOf(response);
  const text = await response.text();
  return (text === '' ? undefined : JSON.parse(text)) as Result;
}

function jsonRequest(method: string, body?: object): RequestInit {
  if (body === undefined) return { method };
  return { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

async function errorOf(response: Response): Promise<ApiError> {
  const { status } = response;
  const detail = detailIn(await response.text());
  if (status === 413) return new ApiError(status, 'This message is too long. Shorten it, or send it in parts.');
  if (status === 422)
    return new ApiError(status, `The server does not understand this page. Reload it. (${detail ?? status})`);
  const isAway = status >= 502 && status <= 504;
  return new ApiError(
    status,
    detail ??
      (isAway ? `The server is not available (${status}). Try again later.` : `The server responded with ${status}.`),
  );
}

/** The text of an error response: `message`, `detail`, or the list of mistakes. A proxy may send something else. */
function detailIn(body: string): string | undefined {
  try {
    const { detail, message } = fieldsOf(JSON.parse(body));
    if (typeof message === 'string') return message;
    if (!Array.isArray(detail)) return stringOf(detail);
    return detail.map((mistake) => `${fieldsOf(mistake).loc}: ${fieldsOf(mistake).msg}`).join('; ');
  } catch {
    return undefined;
  }
}

/** A UUIDv4. `crypto.randomUUID` is missing on pages that are loaded over plain HTTP. */
export function newId(): string {
  const [first, ...rest] = crypto.getRandomValues(new Uint8Array(16));
  const hex = [first, ...rest].map((byte = 0) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-a$4-$5');
}
