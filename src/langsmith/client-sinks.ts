import { guard, ignoreRejection } from '../base/guard.ts';
import { defaultLimits } from '../config/limits.ts';
import { defaultRedaction } from '../payload/redaction/redact.ts';
import { payloadRules } from '../payload/truncate.ts';
import { contextTo, enterContext } from '../run/context.ts';
import { describeOpenRun, type EncodedRun, wholeJson } from '../run/encoded-run.ts';
import { runIdFrom } from '../run/ids.ts';
import { type CapturePolicy, currentSink, noopSink, type RunSink } from '../run/sink.ts';
import { copyingSink, type Target } from './run-copies.ts';
import type { ClientLike, KVMap, RunCreate } from './types.ts';

const CAPTURE: CapturePolicy = {
  ...noopSink.capture,
  hideInputs: false,
  hideOutputs: false,
  payload: payloadRules(defaultLimits, defaultRedaction()),
  attachmentBytes: defaultLimits.attachmentBytes,
  streamIdleMs: defaultLimits.streamIdleMs,
};

type Sinks = WeakMap<object, RunSink>;

/** Nested runs inherit from their parent only if both have the same sink. */
function once(sinks: Sinks, key: object, create: () => RunSink): RunSink {
  const sink = sinks.get(key) ?? create();
  sinks.set(key, sink);
  return sink;
}

const clients: readonly [Sinks, Sinks] = [new WeakMap(), new WeakMap()];
const copies: Sinks = new WeakMap();

/**
 * Returns a sink that calls the methods of an application's object instead of delivering runs. With `isForced`, also
 * while tracing is off.
 */
export function clientSink(client: ClientLike, isForced: boolean, isTracingOn: () => boolean): RunSink {
  const isOn = (): boolean => isForced || isTracingOn();
  // The client may record the run itself, which must not be passed to this sink again.
  const call = (work: () => unknown): void =>
    void guard('client', () => {
      ignoreRejection(enterContext(contextTo(currentSink() ?? noopSink, undefined), work));
    });
  return once(clients[isForced ? 1 : 0], client, () => ({
    ...noopSink,
    capture: CAPTURE,
    get isOff() {
      return !isOn() as true;
    },
    start(run) {
      if (!isOn()) return false;
      call(() => client.createRun(createOf(run)));
      return true;
    },
    end: (run) => call(() => client.updateRun(run.id, createOf(run))),
  }));
}

function createOf(run: EncodedRun): RunCreate {
  describeOpenRun(run);
  const attachments = run.attachments?.map(({ name, mimeType, bytes }) => [name, [mimeType, bytes]]);
  return { ...JSON.parse(wholeJson(run)), ...(attachments && { attachments: Object.fromEntries(attachments) }) };
}

/** A destination of runs: options, or a project and fields to change. */
export type Replica = ReplicaOptions | [projectName: string, updates?: KVMap];

/** A destination of runs. Options that are not set are those of the client. */
export interface ReplicaOptions {
  /** @default the project of the run */
  projectName?: string | undefined;
  /** URL of the service. */
  apiUrl?: string | undefined;
  /** Key for the service. */
  apiKey?: string | undefined;
  /** Workspace of the service. */
  workspaceId?: string | undefined;
  /** Fields of the copy, of which only `reference_example_id` is recorded. */
  updates?: KVMap | undefined;
  /** Whether the runs keep their ids. */
  primary?: boolean | undefined;
  /** @default the client of the run */
  client?: ClientLike | undefined;
}

/** Returns a sink that passes each run to all replicas. `sinkOf` returns the exporter of a replica. */
export function replicaSink(replicas: readonly Replica[], sinkOf: (replica: ReplicaOptions) => RunSink): RunSink {
  const options = replicas.map((it) => (Array.isArray(it) ? { projectName: it[0], updates: it[1] } : it));
  const hasPrimary = options.some(({ primary }) => primary === true);
  const targets = options.map((replica): Target => {
    const { projectName, primary, updates } = replica;
    const sink = sinkOf(replica);
    return {
      sink: () => sink,
      change(run) {
        const project = projectName ?? run.project;
        const keepsIds = primary ?? (!hasPrimary && project === run.project);
        const example = updates?.reference_example_id as string | undefined;
        return {
          project,
          ...(keepsIds ? {} : idsIn(run, String(projectName))),
          ...(example !== undefined && { referenceExampleId: example }),
        };
      },
    };
  });
  return once(copies, replicas, () => copyingSink(targets as [Target, ...Target[]]));
}

/** Returns the ids of a copy of a run. Two projects of one service cannot contain runs with the same id. */
function idsIn({ id, traceId, parentRunId, dottedOrder }: EncodedRun, project: string): Partial<EncodedRun> {
  const idIn = (of: string): string => runIdFrom(`${project}:${of}`);
  return {
    id: idIn(id),
    traceId: idIn(traceId),
    parentRunId: parentRunId && idIn(parentRunId),
    dottedOrder: dottedOrder.replaceAll(/(?<=Z)[^.]+/g, idIn),
  };
}
