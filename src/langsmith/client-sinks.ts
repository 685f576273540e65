import { guard } from '../base/guard.ts';
import { defaultLimits } from '../config/limits.ts';
import { defaultRedaction } from '../payload/redaction/redact.ts';
import { payloadRules } from '../payload/truncate.ts';
import { types } from '../platform/node.ts';
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
  // An attachment would pass the masks of a client that the object calls.
  payload: { ...payloadRules(defaultLimits, defaultRedaction()), isInline: true },
  attachmentBytes: defaultLimits.attachmentBytes,
  streamIdleMs: defaultLimits.streamIdleMs,
};

type Sinks = WeakMap<object, RunSink>;
type SinksByClient = WeakMap<object, Sinks>;

/** Nested runs inherit from their parent only if both have the same sink. */
export function once<Value>(values: WeakMap<object, Value>, key: object, create: () => Value): Value {
  const value = values.get(key) ?? create();
  values.set(key, value);
  return value;
}

const { isOff: _, ...openSink } = noopSink;
const clients: Sinks = new WeakMap();
const copies: readonly [SinksByClient, SinksByClient] = [new WeakMap(), new WeakMap()];

/** Returns a sink that calls the methods of an application's object instead of delivering runs. */
export function clientSink(client: ClientLike): RunSink {
  // The client may record the run itself, which must not be passed to this sink again.
  const call = (work: () => unknown): unknown =>
    guard('client', () => enterContext(contextTo(currentSink() ?? noopSink, undefined), work));
  return once(clients, client, () => ({
    ...openSink,
    capture: CAPTURE,
    start(run) {
      const posting = inOrder(undefined, () => call(() => client.createRun(createOf(run))));
      run.sinkState = posting;
      void posting?.then(() => {
        run.sinkState = undefined;
      });
      return true;
    },
    end(run) {
      const posting = run.sinkState as Promise<unknown> | undefined;
      void inOrder(posting, () => call(() => client.updateRun(run.id, createOf(run))));
    },
  }));
}

/**
 * Calls `next` at once, or after `earlier` has settled. Returns a promise that never rejects, or undefined if there is
 * nothing to wait for.
 */
export function inOrder(earlier: Promise<unknown> | undefined, next: () => unknown): Promise<unknown> | undefined {
  if (earlier !== undefined) return earlier.then(next).catch(() => {});
  const work = next();
  return types.isPromise(work) ? work.catch(() => {}) : undefined;
}

function createOf(run: EncodedRun): RunCreate {
  describeOpenRun(run);
  const attachments = run.attachments?.map(({ name, mimeType, bytes }) => [name, [mimeType, bytes]]);
  return { ...JSON.parse(wholeJson(run)), ...(attachments && { attachments: Object.fromEntries(attachments) }) };
}

/** An additional destination of runs: its options, or its project and the fields to change. */
export type Replica = ReplicaOptions | [projectName: string, updates?: KVMap];

/**
 * A destination of runs. Options that are not set are those of the client. If `apiUrl` has another origin than that of
 * the client, the client's key, workspace and headers are not used.
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
  /** Fields of the copy, of which only `reference_example_id` is recorded. */
  updates?: KVMap | undefined;
  /** Whether the runs keep their ids. */
  primary?: boolean | undefined;
  /** @default the client of the run */
  client?: ClientLike | undefined;
}

/**
 * Returns a sink that passes each run to all replicas. `sinkOf` is called once for each replica, and returns a function
 * that returns the exporter.
 */
export function replicaSink(
  replicas: readonly Replica[],
  client: ClientLike | undefined,
  isForced: boolean,
  sinkOf: (replica: ReplicaOptions) => () => RunSink,
): RunSink {
  const known = once(copies[isForced ? 1 : 0], client ?? replicas, () => new WeakMap<object, RunSink>());
  return once(known, replicas, () => copyingSink(targetsOf(replicas, sinkOf)));
}

function targetsOf(replicas: readonly Replica[], sinkOf: (replica: ReplicaOptions) => () => RunSink): Target[] {
  const options = replicas.map((it) => (Array.isArray(it) ? { projectName: it[0], updates: it[1] } : it));
  const hasPrimary = options.some(({ primary }) => primary === true);
  return options.map((replica): Target => {
    const { projectName, primary, updates } = replica;
    return {
      sink: sinkOf(replica),
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
}

/** Returns the ids of a copy of a run. Two projects of one service cannot contain runs with the same id. */
function idsIn({ id, traceId, parentRunId, dottedOrder }: EncodedRun, project: string): Partial<EncodedRun> {
  const known = new Map<string, string>();
  const idIn = (of: string): string => {
    const copied = known.get(of) ?? runIdFrom(`${project}:${of}`);
    known.set(of, copied);
    return copied;
  };
  return {
    id: idIn(id),
    traceId: idIn(traceId),
    parentRunId: parentRunId && idIn(parentRunId),
    dottedOrder: dottedOrder.replaceAll(/(?<=Z)[^.]+/g, idIn),
  };
}
