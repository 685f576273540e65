import { join } from 'node:path';
import { configure, runIdFrom, shutdown } from 'runspan';
import { createFeedbackTokens } from 'runspan/clients';
import { RunspanCallbackHandler } from 'runspan/langchain';
import { createReceiver, SqliteStore } from 'runspan/receiver';
import { isLoopback } from './http/host.ts';
import type { Handlers } from './runs/run.ts';
import { SettingsError } from './settings.ts';

const FEEDBACK_TIMEOUT_MS = 10_000;
const PROJECT = 'chat';

export interface TraceServiceOptions {
  readonly endpoint: string;
  readonly apiKey?: string | undefined;
  /** Whether the key may be sent to another machine over plain HTTP. @default false */
  readonly allowInsecure?: boolean;
  readonly workspaceId?: string | undefined;
  /** URL of the page that shows the traces. */
  readonly viewerUrl?: string | undefined;
}

/**
 * The service that stores the traces. This class creates the URLs for feedback; the runs themselves are sent by the
 * library.
 */
export class TraceService {
  /** Feedback keys that users can rate an answer with. */
  readonly feedbackKeys: readonly string[] = ['user_score'];
  readonly #options: TraceServiceOptions;

  constructor(options: TraceServiceOptions) {
    this.#options = options;
  }

  get viewerUrl(): string | undefined {
    return this.#options.viewerUrl;
  }

  /** Origin to which browsers send feedback. */
  get origin(): string {
    return new URL(this.#options.endpoint).origin;
  }

  /** Returns pre-signed URLs for feedback on a run, by feedback key. A later rating replaces an earlier one. */
  async feedbackUrls(runId: string): Promise<Record<string, string>> {
    const { endpoint, apiKey, allowInsecure, workspaceId } = this.#options;
    const tokens = await createFeedbackTokens(
      this.feedbackKeys.map((key) => ({ runId, key, feedbackId: runIdFrom(`${runId} ${key}`) })),
      { url: endpoint, apiKey, allowInsecure, workspaceId, timeoutMs: FEEDBACK_TIMEOUT_MS },
    );
    return Object.fromEntries(tokens.map(({ url }, index) => [this.feedbackKeys[index] ?? '', url]));
  }
}

export interface Traces {
  /** The service that stores the traces. Undefined if tracing is off. */
  readonly service: TraceService | undefined;
  readonly callbacks: Handlers;
  /** Delivers the remaining runs and closes the receiver, if there is one. */
  close(): Promise<void>;
}

export interface TracesOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Port of the receiver, if the chat starts one. */
  readonly tracePort: number;
  /** Folder for the receiver's file. @default runs are kept in memory */
  readonly data?: string | undefined;
}

/**
 * Sets up tracing. Traces are sent to RUNSPAN_ENDPOINT. If this variable is not set, a receiver in this process
 * receives the traces. With RUNSPAN_TRACING=false, nothing is traced.
 */
export async function openTraces({ env, tracePort, data }: TracesOptions): Promise<Traces> {
  const close = async (): Promise<void> => void (await shutdown());
  if (env.RUNSPAN_TRACING?.trim() === 'false') return { service: undefined, callbacks: [], close };
  const callbacks = [new RunspanCallbackHandler()];
  const endpoint = env.RUNSPAN_ENDPOINT?.trim();
  if (endpoint) {
    checkUrl('RUNSPAN_ENDPOINT', endpoint, 'RUNSPAN_API_KEY');
    if (env.CHAT_VIEWER_URL) checkUrl('CHAT_VIEWER_URL', env.CHAT_VIEWER_URL, 'RUNSPAN_API_KEY');
    configure({ project: env.RUNSPAN_PROJECT || PROJECT });
    const service = new TraceService({
      endpoint,
      apiKey: env.RUNSPAN_API_KEY,
      allowInsecure: env.RUNSPAN_ALLOW_INSECURE === 'true',
      workspaceId: env.RUNSPAN_WORKSPACE_ID,
      viewerUrl: env.CHAT_VIEWER_URL || (isLoopback(new URL(endpoint).hostname) ? endpoint : undefined),
    });
    return { service, callbacks, close };
  }
  const store = data === undefined ? undefined : await SqliteStore.open(join(data, 'traces.db'));
  const receiver = await createReceiver({ port: tracePort, ...(store && { store }) }).catch(async (error) => {
    await store?.close();
    if (error.code !== 'RUNSPAN_ADDRESS_IN_USE') throw error;
    throw new Error(`Port ${tracePort} is in use. Choose another port for the traces with --trace-port.`);
  });
  configure({ endpoint: receiver.url, project: PROJECT, tracing: true });
  return {
    service: new TraceService({ endpoint: receiver.url, viewerUrl: receiver.url }),
    callbacks,
    close: async () => {
      await close();
      await receiver.close();
      await store?.close();
    },
  };
}

/** Throws a SettingsError unless the text is an HTTP address without user and password. */
export function checkUrl(name: string, text: string, keyName: string): void {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new SettingsError(`Expected ${name} to be a URL that begins with http:// or https://.`);
  if (url.username !== '' || url.password !== '')
    throw new SettingsError(`Expected ${name} to have no user and no password. Set the key in ${keyName}.`);
}
