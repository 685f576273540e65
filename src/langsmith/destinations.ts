import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { parseFlag } from '../config/checker.ts';
import { env, exporterVariables, langsmithEnv } from '../config/environment.ts';
import type { ConfigureOptions } from '../config/options.ts';
import { isOnByEnvironment, isSameOrigin } from '../config/service.ts';
import { defined, isPlainObject } from '../payload/fields.ts';
import { runIdFrom } from '../run/ids.ts';
import { currentSink, type RunSink, registerReplication } from '../run/sink.ts';
import { shareExporter } from '../runspan.ts';
import { copyingSink, type Target } from './run-copies.ts';
import type { KVMap } from './types.ts';

/** A destination of runs: its options, or its project and the fields to change. */
export type Replica = ReplicaOptions | [projectName: string, updates?: KVMap];

/**
 * A destination of runs, with an exporter of its own. Options that are not set are those of the client. If `apiUrl` has
 * another origin than that of the client, the client's key, workspace and headers are not used.
 */
export interface ReplicaOptions {
  /** @default the project of the run */
  projectName?: string | undefined;
  /** URL of the service. */
  apiUrl?: string | undefined;
  /** Key for the service. */
  apiKey?: string | undefined;
  /** Workspace of the service. */
  workspaceId?: string | undefined;
  /** Fields of the copies: `name`, `tags`, `reference_example_id`, and `metadata`, which is added to that of the run. */
  updates?: KVMap | undefined;
  /** Whether the runs keep their ids. @default true if no replica is primary and the project is that of the run */
  primary?: boolean | undefined;
}

/** Returns the targets of replicas. `sinkOf` returns a function that returns the exporter of a replica. */
export function targetsOf(
  replicas: readonly Replica[],
  sinkOf: (replica: ReplicaOptions) => () => RunSink,
): readonly Target[] {
  const options = replicas.map((it) => (Array.isArray(it) ? { projectName: it[0], updates: it[1] } : it));
  const hasPrimary = options.some(({ primary }) => primary === true);
  return options.map((replica): Target => {
    const { projectName, primary, updates } = replica;
    return {
      sink: sinkOf(replica),
      updates: updates ?? {},
      place(runProject) {
        const project = projectName ?? runProject;
        const keepsIds = primary ?? (!hasPrimary && project === runProject);
        // Two projects of one service cannot contain runs with the same id.
        return keepsIds ? { project } : { project, idOf: (id) => runIdFrom(`${projectName}:${id}`) };
      },
    };
  });
}

// The runs of the process go to all services in `LANGSMITH_RUNS_ENDPOINTS`.
registerReplication((first) => {
  const { endpoints = [], options } = first.capture.replication ?? {};
  const [own] = endpoints;
  if (own === undefined) return first;
  const targets = targetsOf(endpoints, ({ apiUrl = '', apiKey = '' }) => {
    if (apiUrl === own.apiUrl && apiKey === own.apiKey) return () => first;
    const isSame = isSameOrigin(apiUrl, own.apiUrl);
    // Another service must not receive credentials of the first one.
    const credentials = isSame ? { workspaceId: langsmithEnv('WORKSPACE_ID') } : { headers: undefined };
    const sink = sharedExporter(defined({ ...options, ...credentials, endpoint: apiUrl, apiKey }));
    return () => sink;
  });
  return copyingSink(() => first, undefined, targets);
});

/** Returns the exporter with these options. Callers share one if it records and delivers their runs in the same way. */
export function sharedExporter(options: ConfigureOptions): RunSink {
  const { headers = {}, ...others } = options;
  const key = guard('Client', () => {
    const values = isPlainObject(headers) ? [...Object.values(others), ...Object.values(headers)] : [headers];
    const isComparable = values.every((value) => ['string', 'number', 'boolean'].includes(typeof value));
    return isComparable ? JSON.stringify([others, headers, exporterVariables()]) : undefined;
  });
  // An object is equal to no other key.
  return shareExporter(key ?? {}, options);
}

/**
 * Returns a sink that refuses runs while tracing is off. The environment variables are read for each run, as in
 * LangSmith.
 */
export function whileTracingIsOn(exporter: RunSink): RunSink {
  return {
    ...exporter,
    get isOff() {
      const isOn = isTracingOn();
      const line = 'Client: no run is recorded without a valid endpoint; set `apiUrl` or LANGSMITH_ENDPOINT.';
      if (isOn && exporter.isOff === true) diagnostics.warnOnce('Client endpoint', line);
      return (!isOn || exporter.isOff === true) as true;
    },
    start: (run) => isTracingOn() && exporter.start(run),
  };
}

/** Whether the environment or `configure` turns tracing on. */
function isTracingOn(): boolean {
  const wanted = parseFlag(env('RUNSPAN_TRACING'));
  if (wanted !== undefined || isOnByEnvironment()) return wanted ?? true;
  const sink = currentSink();
  return sink !== undefined && sink.isOff !== true;
}
