import { clock } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { RunspanError } from '../base/errors.ts';
import { guard } from '../base/guard.ts';
import { shareInstances } from '../base/shared.ts';
import { parseFlag } from '../config/checker.ts';
import { hasServiceVariable, langsmithEnv } from '../config/environment.ts';
import type { ConfigureOptions } from '../config/options.ts';
import { isSameOrigin, langsmithAddress, type ServiceOptions, serviceOf } from '../config/service.ts';
import { plainClients } from '../integrations/langchain/tracer.ts';
import { defined, definedOrNone, fieldsOf } from '../payload/fields.ts';
import { withoutTracing } from '../platform/suppress-tracing.ts';
import { newRunId } from '../run/ids.ts';
import { currentSink, noopSink, type RunSink, replicated } from '../run/sink.ts';
import { flush } from '../runspan.ts';
import { type Replica, sharedExporter, targetsOf, whileTracingIsOn } from './destinations.ts';
import { patchRun, postOnce } from './posting.ts';
import { copyingSink, type MaskFunction, type Masks } from './run-copies.ts';
import type { KVMap, RunCreate } from './types.ts';

/** Options of `Client`. Other LangSmith options have no effect, for example the queue options. */
export interface ClientConfig {
  /** URL of the service. @default the endpoint of the environment */
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
  /** @internal The exporter for the client's options, without its masks. */
  readonly own: RunSink | undefined;
  /** @internal */
  readonly masks: Masks | undefined;
  /** @internal The exporters for lists of replicas, which refuse runs while tracing is off. */
  readonly replicas = new WeakMap<object, RunSink>();
  /** @internal Like `replicas`, but they do not check whether tracing is on. */
  readonly forcedReplicas = new WeakMap<object, RunSink>();
  /** @internal */
  readonly config: ClientConfig;

  constructor(config: ClientConfig = {}) {
    this.config = config;
    const options = exporterOptions(config);
    // An `apiKey` or `workspaceId` option turns LangSmith's variables off, so their endpoint is passed with it.
    const isPart = (config.apiKey ?? config.workspaceId) !== undefined;
    const service = isPart ? { ...langsmithService(config), ...options } : options;
    this.own = Object.keys(options).length > 0 ? replicated(sharedExporter(service)) : undefined;
    this.masks = masksOf(config);
    this.forcedExporter = this.masks ? maskingSink(this.masks, this.own) : this.own;
    this.exporter = this.own && this.forcedExporter ? whileTracingIsOn(this.forcedExporter) : this.forcedExporter;
    if (this.exporter === undefined) plainClients.add(this);
  }

  /** Records the start of a run. If `run` has an end time, also records the end. */
  async createRun(run: RunCreate): Promise<void> {
    guard('Client.createRun', () => postOnce(run, this.exporter));
  }

  /** Records changes to a run that `createRun` started. If `run` has an end time or an error, the run ends. */
  async updateRun(runId: string, run: Partial<RunCreate>): Promise<void> {
    guard('Client.updateRun', () => patchRun(runId, run));
  }

  /** Waits until all recorded runs are delivered or dropped. Does not wait for open runs. The promise never rejects. */
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
    const { score, value, correction, comment, feedbackSourceType: type = 'api', sourceRunId, ...rest } = options;
    const place = { run_id: runId, trace_id: rest.traceId, session_id: rest.sessionId ?? rest.projectId };
    const metadata = { ...rest.sourceInfo, ...(sourceRunId !== undefined && { __run: { run_id: sourceRunId } }) };
    const content = { key, score, value, correction, comment, feedback_source: { type, metadata } };
    const feedback: Feedback = { id: rest.feedbackId ?? newRunId(clock.nowUs()), ...place, ...content };
    await this.#sendFeedback(feedback);
    return feedback;
  }

  async #sendFeedback(feedback: Feedback): Promise<void> {
    const service = serviceOf({ ...langsmithService(this.config), ...exporterOptions(this.config) });
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

// A program may load the package twice, with `import` and with `require`.
shareInstances({ Client });

/** Returns the exporter for a run with these options, or undefined if the run uses `configure`'s exporter. */
export function exporterOf(options: {
  readonly client?: unknown;
  readonly tracingEnabled?: boolean | undefined;
  readonly replicas?: readonly Replica[] | undefined;
}): RunSink | undefined {
  const { tracingEnabled, replicas = [] } = options;
  if (tracingEnabled === false) return noopSink;
  const client = options.client ?? once(defaultClients, isMetadataHidden(), () => new Client());
  if (!(client instanceof Client)) {
    const line = 'client: expected a Client of runspan/langsmith; no run is recorded, because another may hide values.';
    diagnostics.warnOnce('langsmith client', line);
    return noopSink;
  }
  const isForced = tracingEnabled === true;
  const usual = isForced ? client.forcedExporter : client.exporter;
  if (replicas.length === 0) return usual;
  return guard('replicas', () => replicaSink(client, replicas, isForced)) ?? usual;
}

/** Clients with the masks of other packages' clients. */
const likenesses = new WeakMap<object, Client>();

/** Returns a client with the masks of a client of LangSmith's own package, which keeps them in fields of these names. */
export function clientLike(client: unknown): Client {
  if (client instanceof Client) return client;
  const { hideInputs, hideOutputs, hideMetadata } = fieldsOf(client) as ClientConfig;
  return once(likenesses, Object(client), () => new Client({ hideInputs, hideOutputs, hideMetadata }));
}

/** The clients of runs without one, by whether the environment hides their metadata. */
const defaultClients = new Map<boolean, Client>();

/** Only LangSmith's clients read this variable. */
function isMetadataHidden(): boolean {
  return parseFlag(langsmithEnv('HIDE_METADATA')) === true;
}

function replicaSink(client: Client, replicas: readonly Replica[], isForced: boolean): RunSink {
  const gated = (sink: RunSink): RunSink => (isForced ? sink : whileTracingIsOn(sink));
  // Nested runs inherit from their parent only if both have the same sink.
  return once(isForced ? client.forcedReplicas : client.replicas, replicas, () => {
    const own = client.own && gated(client.own);
    const base = (): RunSink => own ?? currentSink() ?? noopSink;
    const targets = targetsOf(replicas, ({ apiUrl, apiKey, workspaceId, ...others }) => {
      if (fieldsOf(others).client !== undefined) {
        const line =
          'replicas: a replica with a `client` gets no runs, because the client may hide values; use `apiUrl`.';
        diagnostics.warnOnce('langsmith replica client', line);
        return () => noopSink;
      }
      const given = defined({ endpoint: apiUrl, apiKey, workspaceId });
      if (Object.keys(given).length === 0) return base;
      const sink = gated(sharedExporter({ ...usualOptions(apiUrl, client.config), ...given }));
      return () => sink;
    });
    return copyingSink(base, client.masks, targets);
  });
}

/** Returns the client's options for the exporter of a replica. Another service must not receive its credentials. */
function usualOptions(apiUrl: string | undefined, config: ClientConfig): ConfigureOptions {
  const { apiKey, workspaceId, headers, ...others } = { ...langsmithService(config), ...exporterOptions(config) };
  const isElsewhere = apiUrl !== undefined && !isSameOrigin(apiUrl, others.endpoint ?? '');
  return isElsewhere ? others : defined({ apiKey, workspaceId, headers, ...others });
}

/** Returns a sink that masks runs, and passes them to `own` or to the sink that they would have without a client. */
function maskingSink(masks: Masks, own: RunSink | undefined): RunSink {
  const sinkTo = (sink: () => RunSink): RunSink => copyingSink(sink, masks);
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

function once<Key, Value>(
  values: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  create: () => Value,
): Value {
  const value = values.get(key) ?? create();
  values.set(key, value);
  return value;
}

/** Returns the service that LangSmith's variables name, unless a runspan option or variable sets a service. */
function langsmithService({ apiUrl }: ClientConfig): ConfigureOptions {
  if (apiUrl !== undefined || hasServiceVariable()) return {};
  const { endpoints: _, ...address } = langsmithAddress();
  return defined(address);
}

function exporterOptions(config: ClientConfig): ServiceOptions & ConfigureOptions {
  const { apiUrl: endpoint, apiKey, workspaceId, headers, fetchImplementation: fetch, tracingSamplingRate } = config;
  return defined({ endpoint, apiKey, workspaceId, headers, fetch, sampleRate: tracingSamplingRate });
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
