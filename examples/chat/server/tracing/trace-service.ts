import { runIdFrom } from 'runspan';
import { createFeedbackTokens } from 'runspan/clients';

/** Where traces go, and where they are looked at. */
export interface TraceServiceOptions {
  readonly endpoint: string;
  readonly apiKey?: string | undefined;
  /** Whether the key may be sent to other machines over plain HTTP. @default false */
  readonly allowInsecure?: boolean;
  readonly workspaceId?: string | undefined;
  /** The page of the traces, for browsers. */
  readonly viewerUrl?: string | undefined;
}

/** What a user is asked about an answer. */
export const FEEDBACK_KEYS: readonly string[] = ['user_score'];

const TIMEOUT_MS = 10_000;

/** A client of the service that stores the chat's traces. It sends feedback and builds links; the library sends the runs. */
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
    const { endpoint, apiKey, allowInsecure, workspaceId } = this.#options;
    const tokens = await createFeedbackTokens(
      FEEDBACK_KEYS.map((key) => ({ runId, key, feedbackId: runIdFrom(`${runId} ${key}`) })),
      { url: endpoint, apiKey, allowInsecure, workspaceId, timeoutMs: TIMEOUT_MS },
    );
    return Object.fromEntries(tokens.map(({ url }, index) => [FEEDBACK_KEYS[index] ?? '', url]));
  }
}
