import { clock } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { RunspanError } from '../base/errors.ts';
import { guard } from '../base/guard.ts';
import {
  env,
  exporterVariables,
  hasServiceVariable,
  LANGSMITH_DEFAULT_ENDPOINT,
  langsmithEnv,
  parseFlag,
} from '../config/environment.ts';
import type { ConfigureOptions } from '../config/options.ts';
import { isOnByEnvironment, isSameOrigin, type ServiceOptions, serviceOf } from '../config/service.ts';
import { defined, definedOrNone, isPlainObject } from '../payload/fields.ts';
import { withoutTracing } from '../platform/suppress-tracing.ts';
import { newRunId } from '../run/ids.ts';
import { currentSink, noopSink, type RunSink } from '../run/sink.ts';
import { flush, shareExporter } from '../runspan.ts';
import { clientSink, once, type Replica, type ReplicaOptions, replicaSink } from './client-sinks.ts';
import { patchRun, postOnce } from './posting.ts';
import { copyingSink, type MaskFunction, type Masks } from './run-copies.ts';
import type { ClientLike, KVMap, RunCreate } from './types.ts';

/** Options of `Client`. Other LangSmith options have no effect, for example the queue options. */
export interface ClientConfig {
  /**
   * URL of the service.
   * @default the endpoint of the environment
   */
  apiUrl?: string | undefined;
  apiKey?: string | undefined;
  workspaceId?: string | undefined;
  headers?: Record<string, string> | undefined;
  /**
   * Set `true` to record no inputs. A function receives a copy of the inputs and returns what to record instead, or a
   * promise of it. The traced call does not wait for the promise. If the function throws, or the promise rejects or has
   * not settled 1 s after the run's end or when the process ends, nothing is recorded and a warning is logged.
   */
  hideInputs?: boolean | ((inputs: KVMap) => KVMap | Promise<KVMap>) | undefined;
  /** Like `hideInputs`, for the outputs. */
  hideOutputs?: boolean | ((outputs: KVMap) => KVMap | Promise<KVMap>) | undefined;
  /** Like `hideInputs`, for the metadata. Hidden metadata keeps its keys, and headers contain no metadata. */
  hideMetadata?: boolean | ((metadata: KVMap) => KVMap | Promise<KVMap>) | undefined;
  /**
   * The function for inputs, outputs and metadata without an option of their own. Also receives error texts, as
   * `{ error }`.
   */
  anonymizer?: ((values: KVMap) => KVMap | Promise<KVMap>) | undefined;
  tracingSamplingRate?: number | undefined;
  timeout_ms?: number | undefined;
  /** Function that sends all requests, with the signature of `fetch`. */
  fetchImplementation?: typeof fetch | undefined;
  readonly [other: string]: unknown;
}

/** Feedback to store with `Client.createFeedback`. */
export interface FeedbackCreate {
  score?: number | boolean | null | undefined;
  value?: unknown;
  correction?: object | string | undefined;
  comment?: string | undefined;
  sourceInfo?: object | undefined;
  feedbackSourceType?: 'api' | 'model' | 'app' | undefined;
  sourceRunId?: string | undefined;
  feedbackId?: string | undefined;
  sessionId?: string | undefined;
  projectId?: string | undefined;
  traceId?: string | undefined;
}

/** Feedback that `Client.createFeedback` has sent. */
export interface Feedback {
  id: string;
  run_id: string;
  key: string;
  score: number | boolean | null | undefined;
  value: unknown;
  correction: object | string | undefined;
  comment: string | undefined;
  feedback_source: { type: string; metadata: object };
  [field: string]: unknown;
}

/**
 * Replaces the parts of LangSmith's client that record runs, flush and send feedback. By default, the client uses the
 * exporter set up by `configure`. If `apiUrl`, `apiKey` or `fetchImplementation` is set, the client uses an exporter for
 * these options. Clients with the same options share one exporter. The exporter closes when no client and no traced
 * function uses it any more, and its runs are delivered. The other members of LangSmith's client do not exist.
 */
export class Client {
  /**
   * @internal The exporter for the client's options, which refuses runs while tracing is off. Undefined if the client
   *   uses `configure`'s exporter.
   */
  readonly exporter: RunSink | undefined;
  /** @internal Like `exporter`, but does not check whether tracing is on. */
  readonly forcedExporter: RunSink | undefined;
  /** @internal */
  readonly config: ClientConfig;

  constructor(config: ClientConfig = {}) {
    this.config = config;
    const options = exporterOptions(config);
    const isOwn = Object.keys(options).length > 0;
    const own = isOwn ? shareExporter(exporterKey(options), options) : undefined;
    const masks = masksOf(config);
    this.forcedExporter = masks ? maskingSink(masks, own) : own;
    this.exporter = own && this.forcedExporter ? whileTracingIsOn(this.forcedExporter) : this.forcedExporter;
  }

  /** Records the start of a run. If `run` has an end time, also records the end. */
  async createRun(run: RunCreate): Promise<void> {
    guard('Client.createRun', () => postOnce(run, this.exporter));
  }

  /** Records changes to a run that `createRun` started. If `run` has an end time or an error, the run ends. */
  async updateRun(runId: string, run: Partial<RunCreate>): Promise<void> {
    guard('Client.updateRun', () => patchRun(runId, run));
  }

  /**
   * Waits until all recorded runs are delivered or dropped. Does not wait for open runs. The promise never rejects.
   */
  async flush(): Promise<void> {
    await flush();
  }

  /** Same as `flush`. */
  async awaitPendingTraceBatches(): Promise<void> {
    await flush();
  }

  /** Same as `flush`. The exporter stays open. */
  async cleanup(): Promise<void> {
    await flush();
  }

  /** Stores feedback on a run. Rejects with an ApiError if the service refuses the feedback. */
  async createFeedback(runId: string, key: string, options?: FeedbackCreate): Promise<Feedback>;
  async createFeedback(params: FeedbackCreate & { runId: string; key: string }): Promise<Feedback>;
  async createFeedback(
    run: string | (FeedbackCreate & { runId: string; key: string }),
    givenKey = '',
    given: FeedbackCreate = {},
  ): Promise<Feedback> {
    const { runId, key, ...options } = typeof run === 'string' ? { runId: run, key: givenKey, ...given } : run;
    const { score, feedbackId, feedbackSourceType = 'api', sourceInfo, sourceRunId, traceId, ...rest } = options;
    const feedback: Feedback = {
      id: feedbackId ?? newRunId(clock.nowUs()),
      run_id: runId,
      trace_id: traceId,
      key,
      score,
      value: rest.value,
      correction: rest.correction,
      comment: rest.comment,
      feedback_source: {
        type: feedbackSourceType,
        metadata: { ...sourceInfo, ...(sourceRunId !== undefined && { __run: { run_id: sourceRunId } }) },
      },
      session_id: rest.sessionId ?? rest.projectId,
    };
    await this.#sendFeedback(feedback);
    return feedback;
  }

  async #sendFeedback(feedback: Feedback): Promise<void> {
    const service = serviceOf({ ...langsmithService(this.config), ...serviceOptions(this.config) });
    if (service === undefined) {
      throw new RunspanError(
        'RUNSPAN_INVALID_OPTION',
        'Client.createFeedback: expected an endpoint, got none; set LANGSMITH_ENDPOINT or `apiUrl`.',
      );
    }
    const { 'user-agent': _, ...headers } = service.headers;
    const { Api } = await withoutTracing(() => import('../clients/api.ts'));
    const api = new Api({ url: service.endpoint, headers, fetch: this.config.fetchImplementation });
    try {
      await api.send({
        name: 'Client.createFeedback',
        method: 'POST',
        path: '/feedback',
        body: feedback,
        options: definedOrNone({ timeoutMs: this.config.timeout_ms }),
        // The feedback has an id, so a retry does not store the feedback twice.
        isIdempotent: true,
        response: 'none',
      });
    } finally {
      await api.close();
    }
  }
}

/** Returns the exporter for a run with these options, or undefined if the run uses `configure`'s exporter. */
export function exporterOf(options: {
  readonly client?: ClientLike | undefined;
  readonly tracingEnabled?: boolean | undefined;
  readonly replicas?: readonly Replica[] | undefined;
}): RunSink | undefined {
  const { client, tracingEnabled, replicas = [] } = options;
  if (tracingEnabled === false) return noopSink;
  if (replicas.length > 0) {
    return replicaSink(replicas, client, tracingEnabled === true, ({ client: own = client, ...replica }) => {
      const target = clientFor(replica, own);
      return () => exporterOf({ client: target, tracingEnabled }) ?? currentSink() ?? noopSink;
    });
  }
  if (client !== undefined && isCalled(client)) {
    const sink = clientSink(client);
    return tracingEnabled === true ? sink : once(switched, sink, () => whileTracingIsOn(sink));
  }
  const { forcedExporter, exporter } = (client ?? defaultClient() ?? {}) as Partial<Client>;
  return tracingEnabled === true ? forcedExporter : exporter;
}

let hidingClient: Client | undefined;

/** Returns the client of runs without one, if the environment hides their metadata. */
function defaultClient(): Client | undefined {
  if (!isMetadataHidden()) return undefined;
  hidingClient ??= new Client();
  return hidingClient;
}

/** Only LangSmith's clients read this variable. */
function isMetadataHidden(): boolean {
  return parseFlag(langsmithEnv('HIDE_METADATA')) === true;
}

/** The sinks that refuse runs while tracing is off, by the sinks of the application's objects. */
const switched = new WeakMap<RunSink, RunSink>();

/** Returns a client for the service of a replica, or `client` if the replica has no service of its own. */
function clientFor({ apiUrl, apiKey, workspaceId }: ReplicaOptions, client: ClientLike | undefined) {
  const service = defined({ apiUrl, apiKey, workspaceId });
  if (Object.keys(service).length === 0) return client;
  const config = client instanceof Client ? client.config : {};
  const isElsewhere = apiUrl !== undefined && !isSameOrigin(apiUrl, config.apiUrl ?? '');
  // Another service must not receive the client's credentials.
  const credentials = isElsewhere && { apiKey: undefined, workspaceId: undefined, headers: undefined };
  return new Client({ ...config, ...credentials, ...service });
}

/** Returns a sink that masks runs, and passes them to `own` or to the sink that they would have without a client. */
function maskingSink(masks: Masks, own: RunSink | undefined): RunSink {
  const sinkTo = (sink: () => RunSink): RunSink => copyingSink([{ sink, masks }]);
  if (own !== undefined) return sinkTo(() => own);
  const known = new WeakMap<object, RunSink>();
  return Object.assign(
    sinkTo(() => currentSink() ?? noopSink),
    {
      over(given: RunSink): RunSink {
        const sink = unmasked.get(given) ?? given;
        const masking = once(known, sink, () => sinkTo(() => sink));
        unmasked.set(masking, sink);
        return masking;
      },
    },
  );
}

/** The sinks below those that `over` returns. A client replaces the masks of an outer client. */
const unmasked = new WeakMap<RunSink, RunSink>();

/** Whether an application's own object stands for a client, or replaces its methods, for example with spies. */
export function isCalled({ createRun, updateRun }: ClientLike): boolean {
  return createRun !== Client.prototype.createRun || updateRun !== Client.prototype.updateRun;
}

/**
 * Returns a sink that refuses runs while tracing is off. The environment variables are read for each run, as in
 * LangSmith.
 */
function whileTracingIsOn(exporter: RunSink): RunSink {
  return {
    capture: exporter.capture,
    get isOff() {
      const isOn = isTracingOn();
      const line = 'Client: no run is recorded without a valid endpoint; set `apiUrl` or LANGSMITH_ENDPOINT.';
      if (isOn && exporter.isOff === true) diagnostics.warnOnce('Client endpoint', line);
      return (!isOn || exporter.isOff === true) as true;
    },
    start: (run) => isTracingOn() && exporter.start(run),
    end: (run) => exporter.end(run),
    skip: () => exporter.skip(),
    urlOf: (run) => exporter.urlOf?.(run),
    flush: (limit) => exporter.flush(limit),
    close: (limit) => exporter.close(limit),
  };
}

/** Whether the environment or `configure` turns tracing on. */
function isTracingOn(): boolean {
  const wanted = parseFlag(env('RUNSPAN_TRACING'));
  if (wanted !== undefined || isOnByEnvironment()) return wanted ?? true;
  const sink = currentSink();
  return sink !== undefined && sink.isOff !== true;
}

/**
 * Returns the service from LangSmith's environment variables. `LANGSMITH_TRACING` is ignored, because feedback is sent
 * even while tracing is off. If a runspan option or variable sets a service, the result is empty.
 */
function langsmithService({ apiUrl, apiKey, workspaceId }: ClientConfig): ServiceOptions {
  const [endpoint, key] = [langsmithEnv('ENDPOINT'), langsmithEnv('API_KEY')];
  const isSet = (apiUrl ?? apiKey ?? workspaceId) !== undefined || hasServiceVariable();
  if (isSet || (endpoint ?? key) === undefined) return {};
  const workspace = langsmithEnv('WORKSPACE_ID');
  return defined({ endpoint: endpoint ?? LANGSMITH_DEFAULT_ENDPOINT, apiKey: key, workspaceId: workspace });
}

function serviceOptions(config: ClientConfig): ServiceOptions & ConfigureOptions {
  const { apiUrl, apiKey, workspaceId, headers, fetchImplementation: fetch } = config;
  return defined({ endpoint: apiUrl, apiKey, workspaceId, headers, fetch });
}

/** Returns a key that is equal for clients whose runs are recorded and delivered in the same way. */
function exporterKey({ headers = {}, ...options }: ConfigureOptions): unknown {
  const key = guard('Client', () => {
    const values = isPlainObject(headers) ? [...Object.values(options), ...Object.values(headers)] : [headers];
    const isComparable = values.every((value) => ['string', 'number', 'boolean'].includes(typeof value));
    return isComparable ? JSON.stringify([options, headers, exporterVariables()]) : undefined;
  });
  // An object is equal to no other key.
  return key ?? {};
}

function exporterOptions(config: ClientConfig): ConfigureOptions {
  const { tracingSamplingRate } = config;
  return {
    ...serviceOptions(config),
    ...(tracingSamplingRate !== undefined && { sampleRate: tracingSamplingRate }),
  };
}

/** Returns what the client hides, or undefined if it hides nothing. */
function masksOf({ hideInputs, hideOutputs, hideMetadata, anonymizer }: ClientConfig): Masks | undefined {
  const maskOf = (value: unknown) => (typeof value === 'function' ? (value as MaskFunction) : Boolean(value));
  const masks = {
    inputs: maskOf(hideInputs ?? anonymizer),
    outputs: maskOf(hideOutputs ?? anonymizer),
    metadata: maskOf(hideMetadata ?? anonymizer ?? isMetadataHidden()),
    error: maskOf(anonymizer),
  };
  return Object.values(masks).some((mask) => mask !== false) ? masks : undefined;
}
