import {
  AgentThreads,
  ApiError,
  CommandError,
  InvalidRequestError,
  type ThreadState as StateOf,
  type ThreadEvent,
  type ThreadSummary,
} from 'runspan/clients';

export type Fields = Readonly<Record<string, unknown>>;
type Values = { readonly messages?: readonly Fields[] };
export type ThreadState = StateOf<Values>;
export type { ThreadEvent, ThreadSummary };

/** Maximum time without data. The server sends at least a comment every 5 s. */
const SILENCE_MS_MAX = 20_000;

/** The client of the chat server. */
export const server: AgentThreads = new AgentThreads({
  url: new URL('/api', location.href.replace(/#.*/s, '')),
  idleTimeoutMs: SILENCE_MS_MAX,
});

/** The response of `GET /api/info`. */
export interface Info {
  readonly agent: string;
  readonly model: { readonly name: string; readonly is_local: boolean };
  readonly tracing: { readonly is_on: boolean; readonly viewer_url: string | null };
  readonly feedback_keys: readonly string[];
}

export async function loadInfo(): Promise<Info> {
  return fetchJson('GET', '/info');
}

/** Returns the URLs for rating a run, by feedback key. */
export async function feedbackUrls(threadId: string, runId: string): Promise<Readonly<Record<string, string>>> {
  const path = `/threads/${encodeURIComponent(threadId)}/runs/${encodeURIComponent(runId)}/feedback`;
  const { urls } = await fetchJson<{ urls: Record<string, string> }>('POST', path, '{}');
  return urls;
}

/** Returns the newest state of a thread, or undefined if there is none. */
export async function stateOf(threadId: string): Promise<ThreadState | undefined> {
  try {
    return await server.state<Values>(threadId, { bootstrap: false });
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

export const NO_RESPONSE = 'The server does not respond. Check whether the server is running.';

/** Whether the server has responded and refused the request. */
export function isRefusal(error: unknown): error is Error {
  return error instanceof ApiError || error instanceof CommandError || error instanceof InvalidRequestError;
}

/** Returns the text of an error to show to the user. */
export function problemOf(error: unknown): string {
  const refusal = error instanceof CommandError && error.cause !== undefined ? error.cause : error;
  if (refusal instanceof CommandError) return refusal.detail ?? 'The command failed.';
  if (!(refusal instanceof ApiError)) return isRefusal(refusal) ? refusal.message : NO_RESPONSE;
  const { status, detail } = refusal;
  if (status === 413) return 'This message is too long. Send a shorter message.';
  if (status === 422) return `The server rejected the request. Reload the page. (${detail ?? status})`;
  const isAway = status >= 502 && status <= 504;
  const unexplained = isAway
    ? `The server is not available (${status}). Try again later.`
    : `The server responded with ${status}.`;
  return detail ?? unexplained;
}

export function checkpointOf(state: ThreadState | undefined): string | undefined {
  return state?.checkpoint?.checkpoint_id ?? undefined;
}

/** Returns a value from the server as an object, or an empty object if it is not one. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

async function fetchJson<Result>(method: 'GET' | 'POST', path: string, body?: string): Promise<Result> {
  const url = server.url + path;
  const response = await fetch(url, { method, ...(body && { headers: { 'content-type': 'application/json' }, body }) });
  if (response.ok) return response.json();
  throw new ApiError(
    { method, url, attempts: 1 },
    { status: response.status, headers: {}, text: await response.text() },
  );
}
