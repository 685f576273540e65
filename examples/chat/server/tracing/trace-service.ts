import { runIdFrom } from 'runspan';
import { createFeedbackTokens } from 'runspan/clients';

/** Where traces go, and where they are looked at. */
export interface TraceServiceOptions {
  readonly endpoint: string;
  readonly apiKey?: string | undefined;
  readonly workspaceId?: string | undefined;
  readonly project?: string | undefined;
  /** The page of the traces, for browsers. */
  readonly viewerUrl?: string | undefined;
  /** What is kept of no run. @default nothing */
  readonly hides?: { readonly inputs: boolean; readonly outputs: boolean } | undefined;
}

/** What a user is asked about an answer. */
export const FEEDBACK_KEYS: readonly string[] = ['user_score'];

const TIMEOUT_MS = 10_000;

/** The service that keeps the traces of the chat, for what goes to it beside the runs of the agent. */
export class TraceService {
  readonly #options: TraceServiceOptions;

  constructor(options: TraceServiceOptions) {
    this.#options = options;
  }

  get viewerUrl(): string | undefined {
    return this.#options.viewerUrl;
  }

  /** Where feedback is sent by browsers. */
  get origin(): string {
    return new URL(this.#options.endpoint).origin;
  }

  /** Pre-signed addresses by which feedback can be given to a run, by their keys. What is said by a later one takes the place of what was said before. */
  async feedbackUrls(runId: string): Promise<Record<string, string>> {
    const { endpoint, apiKey, workspaceId } = this.#options;
    const tokens = await createFeedbackTokens(
      FEEDBACK_KEYS.map((key) => ({ runId, key, feedbackId: runIdFrom(`${runId} ${key}`) })),
      { url: endpoint, apiKey, workspaceId, timeoutMs: TIMEOUT_MS },
    );
    return Object.fromEntries(tokens.map(({ url }, index) => [FEEDBACK_KEYS[index] ?? '', url]));
  }

  /** Keeps a run that was made outside of this process, whole. */
  async keep(run: Readonly<Record<string, unknown>>): Promise<void> {
    const { endpoint, apiKey, workspaceId, project = 'default', hides } = this.#options;
    const hidden = { ...(hides?.inputs && { inputs: {} }), ...(hides?.outputs && { outputs: {} }) };
    const answer = await fetch(`${endpoint.replace(/\/+$/, '')}/runs`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }),
        ...(workspaceId === undefined ? {} : { 'x-tenant-id': workspaceId }),
      },
      body: JSON.stringify({ ...run, ...hidden, session_name: project }),
      // A redirect could take the key to another origin.
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await answer.body?.cancel();
    if (!answer.ok) throw new Error(`The service for traces answered ${answer.status}`);
  }
}
