import { ApiError } from 'runspan/clients';

export type Fields = Readonly<Record<string, unknown>>;

/** A state of a thread. */
export interface ThreadState {
  readonly values: { readonly messages?: readonly Fields[] };
  /** Names of the nodes to run next. */
  readonly next: readonly string[];
  readonly tasks: readonly { readonly interrupts?: readonly { readonly id?: string; readonly value?: unknown }[] }[];
  readonly checkpoint: Checkpoint | null;
  readonly parent_checkpoint: Checkpoint | null;
  readonly metadata: Fields | null;
  /** ISO 8601 timestamp. */
  readonly created_at: string | null;
}

interface Checkpoint {
  readonly checkpoint_id?: string | null;
}

export interface ThreadSummary {
  readonly id: string;
  readonly title: string;
  /** ISO 8601 timestamp. */
  readonly updatedAt: string | null;
}

/** The response of `GET /api/info`. */
export interface Info {
  readonly agent: string;
  readonly model: { readonly name: string; readonly is_local: boolean };
  readonly tracing: { readonly is_on: boolean; readonly viewer_url: string | null };
  readonly feedback_keys: readonly string[];
}

/** A run to start. */
interface RunRequest {
  readonly input: unknown;
  /** Checkpoint to continue from. @default the newest checkpoint */
  readonly checkpoint_id?: string;
  /** Whether to create a thread that does not exist. */
  readonly ifNotExists: 'create' | 'reject';
}

const TIMEOUT_MS = 60_000;
const RETRIES_MAX = 2;
const FIRST_RETRY_MS = 500;

/** The server refused a command, which had no effect. */
export class CommandError extends Error {
  override readonly name: string = 'CommandError';
  readonly reason: string;

  constructor(reason: string, message: string | undefined) {
    super(message || 'The command failed.');
    this.reason = reason;
  }
}

export function loadInfo(): Promise<Info> {
  return request('GET', '/info');
}

export function loadThreadPage(limit: number, offset: number): Promise<readonly ThreadSummary[]> {
  return request('GET', `/threads?limit=${limit}&offset=${offset}`);
}

export function removeThread(threadId: string): Promise<void> {
  return request('DELETE', pathOf(threadId));
}

/** Returns the newest state of a thread, or undefined if there is none. */
export async function stateOf(threadId: string): Promise<ThreadState | undefined> {
  try {
    return await request<ThreadState>('GET', `${pathOf(threadId)}/state`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** Returns states of a thread, newest first: the newest ones, or the ones before a checkpoint. */
export function statesBefore(threadId: string, limit: number, before?: string): Promise<readonly ThreadState[]> {
  return request('POST', `${pathOf(threadId)}/history`, { limit, before });
}

/** Starts a run, and returns its id. */
export function startRun(threadId: string, { checkpoint_id, ...run }: RunRequest): Promise<string> {
  const config = checkpoint_id === undefined ? {} : { config: { configurable: { checkpoint_id } } };
  return sendCommand(threadId, 'run.start', { assistant_id: '_', ...run, ...config });
}

/** Responds to an interrupt, and returns the id of the run that continues. */
export function respondTo(threadId: string, interrupt_id: string, response: unknown): Promise<string> {
  return sendCommand(threadId, 'input.respond', { namespace: [], interrupt_id, response });
}

export function cancelRun(threadId: string, runId: string): Promise<void> {
  return request('POST', `${pathOf(threadId)}/runs/${encodeURIComponent(runId)}/cancel`, {});
}

/** Returns the URLs for rating a run, by feedback key. */
export async function feedbackUrls(threadId: string, runId: string): Promise<Readonly<Record<string, string>>> {
  const path = `${pathOf(threadId)}/runs/${encodeURIComponent(runId)}/feedback`;
  return (await request<{ urls: Record<string, string> }>('POST', path, {})).urls;
}

/** Returns a UUIDv4. `crypto.randomUUID` is not available on pages loaded over plain HTTP. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20)].join('-');
}

export function pathOf(threadId: string): string {
  return `/threads/${encodeURIComponent(threadId)}`;
}

let commands = 0;

/** Commands are sent once, because the server may have executed a command whose response is lost. */
async function sendCommand(threadId: string, method: string, params: object): Promise<string> {
  const command = { id: ++commands, method, params };
  const answer = await request<CommandAnswer>('POST', `${pathOf(threadId)}/commands`, command, 0);
  if (answer.type === 'error') throw new CommandError(answer.error, answer.message);
  return answer.result.run_id;
}

type CommandAnswer =
  | { readonly type: 'success'; readonly result: { readonly run_id: string } }
  | { readonly type: 'error'; readonly error: string; readonly message?: string };

/** Sends a request, again if the server does not respond or fails. Rejects with an ApiError for an error status. */
async function request<Result>(
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: object,
  retriesMax: number = RETRIES_MAX,
): Promise<Result> {
  const json = body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  for (let retries = 0; ; retries++) {
    try {
      const response = await fetch(`/api${path}`, { method, ...json, signal: AbortSignal.timeout(TIMEOUT_MS) });
      if (!response.ok) throw await errorOf(response);
      const text = await response.text();
      return text === '' ? (undefined as Result) : JSON.parse(text);
    } catch (error) {
      if (retries >= retriesMax || (error instanceof ApiError && error.status < 500)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, FIRST_RETRY_MS * 2 ** retries));
  }
}

/** Returns the error for a response with an error status. */
export async function errorOf(response: Response): Promise<ApiError> {
  const { status, url } = response;
  return new ApiError({ method: '', url, attempts: 1 }, { status, headers: {}, text: await response.text() });
}

export const NO_RESPONSE = 'The server does not respond. Check whether the server is running.';

/** Whether the server has responded and refused the request. */
export function isRefusal(error: unknown): error is Error {
  return error instanceof ApiError || error instanceof CommandError;
}

/** Returns the text of an error to show to the user. */
export function problemOf(error: unknown): string {
  if (error instanceof CommandError) return error.message;
  if (!(error instanceof ApiError)) return NO_RESPONSE;
  const { status, detail } = error;
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
