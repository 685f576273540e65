import { isDeepStrictEqual } from 'node:util';
import type { RunnableConfig } from '@langchain/core/runnables';
import { INTERRUPT } from '@langchain/langgraph';
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  getCheckpointId,
  type PendingWrite,
  WRITES_IDX_MAP,
} from '@langchain/langgraph-checkpoint';
import type { Database, Query, SqlValue } from './database.ts';

interface CheckpointRow {
  readonly thread_id: string;
  readonly checkpoint_ns: string;
  readonly checkpoint_id: string;
  readonly parent_checkpoint_id: string | null;
  readonly checkpoint_type: string;
  readonly checkpoint: Uint8Array;
  readonly metadata_type: string;
  readonly metadata: Uint8Array;
}

interface StoredValue {
  readonly channel: string;
  readonly type: string;
  /** Null if the value is empty, because the driver of SQLite binds an empty Uint8Array as NULL. */
  readonly value: Uint8Array | null;
}

/**
 * Returns SQL that creates the saver's tables. A channel's value is stored once per version, because most channels do
 * not change from one checkpoint to the next. `bytes` is the type of a column of bytes.
 */
export function saverTables(bytes: 'BLOB' | 'BYTEA'): string {
  return `
    CREATE TABLE checkpoints (
      thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT,
      checkpoint_type TEXT NOT NULL, checkpoint ${bytes} NOT NULL, metadata_type TEXT NOT NULL,
      metadata ${bytes} NOT NULL, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
    );
    CREATE TABLE channel_values (
      thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, channel TEXT NOT NULL, version TEXT NOT NULL,
      type TEXT NOT NULL, value ${bytes}, PRIMARY KEY (thread_id, checkpoint_ns, channel, version)
    );
    CREATE TABLE writes (
      thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL,
      idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT NOT NULL, value ${bytes},
      PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
    );
  `;
}

/**
 * Stores checkpoints of graphs in SQLite or PostgreSQL. LangGraph has a saver for each of them, but the one for SQLite
 * requires an install script, and in neither can two branches of a thread have different values of a channel.
 */
export class Saver extends BaseCheckpointSaver {
  readonly #database: Database;

  constructor(database: Database) {
    super();
    this.#database = database;
  }

  /**
   * Returns the version that follows `current`: the next integer plus a random fraction. Without the fraction, two
   * branches of a thread would overwrite each other's values.
   */
  override getNextVersion(current: number | undefined): number {
    return Math.floor(current ?? 0) + 1 + Math.random();
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const id = getCheckpointId(config);
    const { thread_id, checkpoint_ns = '' } = config.configurable ?? {};
    if (thread_id === undefined) return undefined;
    const place = { thread_id, checkpoint_ns, ...(id === '' ? {} : { checkpoint_id: id }) };
    for await (const tuple of this.list({ configurable: place }, { limit: 1 })) return tuple;
    return undefined;
  }

  /**
   * Lists checkpoints, newest first. Each checkpoint is read when it is requested, so that a long history is not held
   * in memory.
   */
  override async *list(
    config: RunnableConfig,
    { before, limit = Number.POSITIVE_INFINITY, filter = {} }: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable ?? {};
    const conditions: [string, SqlValue | undefined][] = [
      ['thread_id =', thread_id],
      ['checkpoint_ns =', checkpoint_ns],
      ['checkpoint_id =', checkpoint_id],
      ['checkpoint_id <', before?.configurable?.checkpoint_id],
    ];
    const given = conditions.filter((condition): condition is [string, SqlValue] => condition[1] !== undefined);
    const where = given.map(([condition], index) => `${condition} $${index + 1}`).join(' AND ') || 'true';
    const keys = await this.#database.query<{ thread_id: string; checkpoint_ns: string; checkpoint_id: string }>(
      `SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints WHERE ${where} ORDER BY checkpoint_id DESC ${limit === 1 && Object.keys(filter).length === 0 ? 'LIMIT 1' : ''}`,
      ...given.map(([, value]) => value),
    );
    let left = limit;
    for (const key of keys) {
      if (left <= 0) return;
      const [row] = await this.#database.query<CheckpointRow>(
        'SELECT * FROM checkpoints WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = $3',
        ...[key.thread_id, key.checkpoint_ns, key.checkpoint_id],
      );
      if (row === undefined) continue;
      const metadata = await this.serde.loadsTyped(row.metadata_type, row.metadata);
      if (!Object.entries(filter).every(([key, value]) => isDeepStrictEqual(metadata[key], value))) continue;
      left -= 1;
      yield await this.#tupleOf(row, metadata);
    }
  }

  override async put(
    config: RunnableConfig,
    { channel_values, ...checkpoint }: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { thread_id, checkpoint_ns = '', checkpoint_id: parentId = null } = config.configurable ?? {};
    if (typeof thread_id !== 'string') throw new Error('Expected a thread_id in `configurable`.');
    const [head, meta] = await Promise.all([
      this.serde.dumpsTyped(checkpoint),
      this.serde.dumpsTyped(withRunIds(config, metadata)),
    ]);
    const values = await Promise.all(
      Object.entries(newVersions)
        .filter(([channel]) => Object.hasOwn(channel_values, channel))
        .map(async ([channel, version]) => {
          return [channel, String(version), ...(await this.serde.dumpsTyped(channel_values[channel]))] as const;
        }),
    );
    const write = this.#database.transaction(async (query) => {
      await query(
        `INSERT INTO checkpoints VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
          ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) DO UPDATE SET
            parent_checkpoint_id = excluded.parent_checkpoint_id, checkpoint_type = excluded.checkpoint_type,
            checkpoint = excluded.checkpoint, metadata_type = excluded.metadata_type, metadata = excluded.metadata`,
        ...[thread_id, checkpoint_ns, checkpoint.id, parentId, ...head, ...meta],
      );
      const sql = 'INSERT INTO channel_values VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING';
      for (const value of values) await query(sql, thread_id, checkpoint_ns, ...value);
    });
    await reportFailure(config, write);
    return { configurable: { thread_id, checkpoint_ns, checkpoint_id: checkpoint.id } };
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { thread_id, checkpoint_ns = '', checkpoint_id } = config.configurable ?? {};
    if (typeof thread_id !== 'string') throw new Error('Expected a thread_id in `configurable`.');
    if (typeof checkpoint_id !== 'string') throw new Error('Expected a checkpoint_id in `configurable`.');
    const dumped = await Promise.all(writes.map(([, value]) => this.serde.dumpsTyped(value)));
    const write = this.#database.transaction(async (query) => {
      for (const [index, [channel]] of writes.entries()) {
        const [type = '', value = null] = dumped[index] ?? [];
        // If a task runs again, its special writes, such as interrupts, replace the earlier ones. All other writes of
        // the repeated task are ignored.
        const idx = WRITES_IDX_MAP[channel] ?? index;
        const replacing = `(thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO UPDATE
          SET channel = excluded.channel, type = excluded.type, value = excluded.value`;
        await query(
          `INSERT INTO writes VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT ${idx < 0 ? replacing : 'DO NOTHING'}`,
          ...[thread_id, checkpoint_ns, checkpoint_id, taskId, idx, channel, type, value],
        );
      }
    });
    await reportFailure(config, write);
  }

  override async deleteThread(threadId: string): Promise<void> {
    await this.#database.transaction(async (query: Query) => {
      for (const table of ['checkpoints', 'channel_values', 'writes'])
        await query(`DELETE FROM ${table} WHERE thread_id = $1`, threadId);
    });
  }

  async #tupleOf(row: CheckpointRow, metadata: CheckpointMetadata): Promise<CheckpointTuple> {
    const { thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id } = row;
    const configOf = (id: string): RunnableConfig => ({
      configurable: { thread_id, checkpoint_ns, checkpoint_id: id },
    });
    const checkpoint: Checkpoint = await this.serde.loadsTyped(row.checkpoint_type, row.checkpoint);
    const versions = Object.entries(checkpoint.channel_versions).flatMap(([name, version]) => [name, String(version)]);
    const pairs = versions.flatMap((_, index) => (index % 2 === 0 ? `($${index + 3}, $${index + 4})` : []));
    const [values, writes] = await Promise.all([
      pairs.length === 0
        ? []
        : this.#database.query<StoredValue>(
            `SELECT channel, type, value FROM channel_values
              WHERE thread_id = $1 AND checkpoint_ns = $2 AND (channel, version) IN (VALUES ${pairs})`,
            ...[thread_id, checkpoint_ns, ...versions],
          ),
      this.#database.query<StoredValue & { readonly task_id: string }>(
        `SELECT task_id, channel, type, value FROM writes
          WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = $3 ORDER BY task_id, idx`,
        ...[thread_id, checkpoint_ns, checkpoint_id],
      ),
    ]);
    const load = ({ type, value }: StoredValue): Promise<unknown> =>
      this.serde.loadsTyped(type, value ?? new Uint8Array());
    const entries = values.map(async (stored) => [stored.channel, await load(stored)] as const);
    checkpoint.channel_values = Object.fromEntries(await Promise.all(entries));
    const pendingWrites = writes.map(async (stored): Promise<CheckpointPendingWrite> => {
      return [stored.task_id, stored.channel, await load(stored)];
    });
    return {
      config: configOf(checkpoint_id),
      checkpoint,
      metadata,
      pendingWrites: openWrites(await Promise.all(pendingWrites)),
      ...(parent_checkpoint_id !== null && { parentConfig: configOf(parent_checkpoint_id) }),
    };
  }
}

/**
 * Returns a checkpoint's writes without the interrupts of tasks that have ended. If two tasks in a step interrupt,
 * LangGraph keeps the answered task's interrupt until the other task ends.
 */
function openWrites(writes: CheckpointPendingWrite[]): CheckpointPendingWrite[] {
  const ended = new Set(writes.flatMap(([taskId, channel]) => (channel in WRITES_IDX_MAP ? [] : [taskId])));
  return writes.filter(([taskId, channel]) => channel !== INTERRUPT || !ended.has(taskId));
}

/** Adds `run_id` and `trace_id` to the metadata, to connect an answer in the history to its trace. */
function withRunIds({ configurable }: RunnableConfig, metadata: CheckpointMetadata): CheckpointMetadata {
  const { run_id, trace_id } = configurable ?? {};
  return run_id === undefined ? metadata : Object.assign({}, metadata, { run_id, trace_id });
}

/**
 * Passes a write error to the run in the config, which then ends. Without this, the rejection would be unhandled and
 * end the process, because a graph awaits its writes too late.
 */
async function reportFailure({ configurable }: RunnableConfig, write: Promise<void>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (typeof configurable?.on_store_failure !== 'function') throw error;
    configurable.on_store_failure(error);
  }
}
