import type { RunnableConfig } from '@langchain/core/runnables';
import type {
  ChannelVersions,
  Checkpoint,
  CheckpointListOptions,
  CheckpointMetadata,
  CheckpointTuple,
} from '@langchain/langgraph-checkpoint';
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres';
import { versionAfter } from './channel-version.ts';

/** LangGraph's saver, which would mix up the values of branches, and would fail with metadata that JSON of PostgreSQL does not take. */
export class ChatPostgresSaver extends PostgresSaver {
  override getNextVersion(current: number | undefined): number {
    return versionAfter(current);
  }

  override put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    return super.put(config, checkpoint, storable(metadata), newVersions);
  }

  override list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { filter } = options;
    return super.list(config, filter === undefined ? options : { ...options, filter: storable(filter) });
  }
}

/** The same, in whose texts U+FFFD stands for what PostgreSQL refuses: NUL, and halves of characters. */
function storable<Value>(value: Value): Value {
  if (typeof value === 'string') return wellFormed(value) as Value;
  if (Array.isArray(value)) return value.map(storable) as Value;
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, of]) => [wellFormed(key), storable(of)])) as Value;
}

function wellFormed(text: string): string {
  return text.replace(/\0|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, '\uFFFD');
}
