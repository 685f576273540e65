import type { BaseCheckpointSaver } from '@langchain/langgraph';

/** Has each checkpoint that a run writes say so, as `run_id` of its metadata: by it an answer in the history is found again in the traces. */
export function withRunIds<Saver extends BaseCheckpointSaver>(checkpointer: Saver): Saver {
  const put = checkpointer.put.bind(checkpointer);
  checkpointer.put = (config, checkpoint, metadata, versions) => {
    const runId: unknown = config.configurable?.run_id;
    const told = typeof runId === 'string' ? Object.assign({}, metadata, { run_id: runId }) : metadata;
    return put(config, checkpoint, told, versions);
  };
  return checkpointer;
}
