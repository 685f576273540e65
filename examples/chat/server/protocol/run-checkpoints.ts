import type { RunnableConfig } from '@langchain/core/runnables';
import type { BaseCheckpointSaver } from '@langchain/langgraph';

/** Told of a run whose checkpoints cannot be written. */
export type CheckpointFailure = (runId: string, error: Error) => void;

/**
 * Has each checkpoint that a run writes say so, as `run_id` and `trace_id` of its metadata: by them an answer in the history is found again in the traces.
 *
 * What cannot be written is told to whoever runs the run, who ends it, and not to the graph: that awaits what it writes only later, and a rejection which nobody
 * awaits yet would end the process.
 */
export function withRuns<Saver extends BaseCheckpointSaver>(checkpointer: Saver, onFailure: CheckpointFailure): Saver {
  const put = checkpointer.put.bind(checkpointer);
  const putWrites = checkpointer.putWrites.bind(checkpointer);
  const told = async <Value>(config: RunnableConfig, write: () => Promise<Value>, failed: Value): Promise<Value> => {
    const runId = runOf(config);
    if (runId === undefined) return write();
    try {
      return await write();
    } catch (error) {
      onFailure(runId, error as Error);
      return failed;
    }
  };
  checkpointer.put = (config, checkpoint, metadata, versions) => {
    const { run_id, trace_id } = config.configurable ?? {};
    const ofRun = run_id === undefined ? metadata : Object.assign({}, metadata, { run_id, trace_id });
    return told(config, () => put(config, checkpoint, ofRun, versions), config);
  };
  checkpointer.putWrites = (config, writes, taskId) => told(config, () => putWrites(config, writes, taskId), undefined);
  return checkpointer;
}

function runOf({ configurable }: RunnableConfig): string | undefined {
  const runId: unknown = configurable?.run_id;
  return typeof runId === 'string' ? runId : undefined;
}
