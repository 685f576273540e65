import type { RunnableConfig } from '@langchain/core/runnables';
import { INTERRUPT } from '@langchain/langgraph';
import {
  type ChannelVersions,
  type Checkpoint,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type PendingWrite,
  WRITES_IDX_MAP,
} from '@langchain/langgraph-checkpoint';
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres';

/**
 * LangGraph's saver, extended by channel versions that differ between branches, and by the run's ids in the metadata.
 */
export class ChatPostgresSaver extends PostgresSaver {
  override getNextVersion(current: number | undefined): number {
    return branchVersion(current);
  }

  override put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const write = super.put(config, checkpoint, withRunIds(config, metadata), newVersions);
    return reportFailure(config, write, config);
  }

  override putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    return reportFailure(config, super.putWrites(config, writes, taskId), undefined);
  }

  protected override async _loadWrites(...rows: Parameters<PostgresSaver['_loadWrites']>) {
    return openWrites(await super._loadWrites(...rows));
  }
}

/**
 * Returns a checkpoint's writes without the interrupts of tasks that have ended. If two tasks in a step interrupt,
 * LangGraph keeps the answered task's interrupt until the other task ends.
 */
export function openWrites(writes: CheckpointPendingWrite[]): CheckpointPendingWrite[] {
  const ended = new Set(writes.flatMap(([taskId, channel]) => (channel in WRITES_IDX_MAP ? [] : [taskId])));
  return writes.filter(([taskId, channel]) => channel !== INTERRUPT || !ended.has(taskId));
}

/**
 * Returns the version that follows `current`: the next integer plus a random fraction. A saver stores a channel's
 * values by version, so without the fraction, two branches of a thread would overwrite each other's values.
 */
export function branchVersion(current: number | undefined): number {
  return Math.floor(current ?? 0) + 1 + Math.random();
}

/** Adds `run_id` and `trace_id` to the metadata, to connect an answer in the history to its trace. */
export function withRunIds({ configurable }: RunnableConfig, metadata: CheckpointMetadata): CheckpointMetadata {
  const { run_id, trace_id } = configurable ?? {};
  return run_id === undefined ? metadata : Object.assign({}, metadata, { run_id, trace_id });
}

/**
 * Passes a write error to the run in the config, which then ends. Without this, the rejection would be unhandled and
 * end the process, because a graph awaits its writes too late.
 */
export async function reportFailure<Value>(
  { configurable }: RunnableConfig,
  write: Promise<Value>,
  failed: Value,
): Promise<Value> {
  try {
    return await write;
  } catch (error) {
    if (typeof configurable?.on_store_failure !== 'function') throw error;
    configurable.on_store_failure(error);
    return failed;
  }
}
